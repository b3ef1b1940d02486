// barriers.js: what became of each mbarrier.

function barrierEventText(event, barrier) {
  const who = event.warp === undefined ? ''
              : ` by warp ${event.warp}` +
                (sameCta(event.cta, barrier.cta) ? '' : ` of ${ctaText(event.cta)}`);
  switch (event.what) {
  case 'init':
    return `initialised for ${plural(barrier.expected, 'arrival')}${who}`;
  case 'arrive':
    return `${plural(event.lanes, 'arrival')}${who}`;
  case 'copy':
    return `a copy will count on it, issued${who}`;
  case 'phase':
    return `phase ${event.phase - 1} is complete`;
  case 'wait':
    return `a wait came true${who}, ${plural(event.lanes, 'lane')}`;
  default:
    return `invalidated${who}`;
  }
}

function barrierTitle(barrier) {
  return `${barrier.name || 'mbarrier'} · shared address ${barrier.address}` +
         ` · ${ctaText(barrier.cta)}`;
}

/** The history of one mbarrier. */
function barrierHistory(number, barrier, isOpen) {
  const rows = barrier.events.map(event => html(
      'tr', {class: event.what},
      html('td', {class: 'count'}, event.time),
      html('td', {}, barrierEventText(event, barrier)),
      html('td', {class: 'count'}, event.phase),
      html('td', {class: 'count'}, `${event.pending} of ${barrier.expected}`),
      html('td', {class: 'count'}, event.bytes),
      html('td', {}, sourceLink(number, event))));
  if (barrier.left_out)
    rows.splice(24, 0, html('tr', {class: 'gap'}, html('td', {colspan: 6},
        `${plural(barrier.left_out, 'event')} are left out here`)));
  return html('details', {class: 'barrier', open: isOpen,
                          'data-address': barrier.address},
              html('summary', {}, barrierTitle(barrier), ' ',
                   html('span', {class: 'note'}, barrierNow(barrier))),
              html('table', {}, html('thead', {}, html('tr', {},
                  ['time', 'what', 'phases complete', 'arrivals missing',
                   'bytes missing', 'where'].map(text => html('th', {}, text)))),
                   html('tbody', {}, rows)));
}

/** What it is in the end. */
function barrierNow(barrier) {
  const last = barrier.events[barrier.events.length - 1];
  if (!last || last.what === 'inval')
    return '';
  return `${plural(last.phase, 'phase')} complete, ` +
         `${last.pending} of ${plural(barrier.expected, 'arrival')} missing` +
         (last.bytes ? `, ${last.bytes} bytes missing` : '');
}

/** The mbarriers that a finding is about. */
function barriersOf(finding, detail) {
  const lines = [finding.ptx_line, finding.other && finding.other.ptx_line];
  const waits = finding.waits || [];
  return detail.barriers.filter(barrier => {
    const isNamed = finding.space === 'shared' &&
                    finding.address >= barrier.address &&
                    finding.address < barrier.address + 8;
    const isAwaited = waits.some(one => one.kind === 'mbarrier' &&
                                        one.address === barrier.address &&
                                        sameCta(one.cta, barrier.cta));
    const isCounted = barrier.events.some(
        event => (event.what === 'copy' || event.what === 'arrive' ||
                  event.what === 'wait') && lines.includes(event.ptx_line));
    return isNamed || isAwaited || isCounted;
  });
}

function launchBarriers(number, detail) {
  if (!detail.barriers.length)
    return html('p', {}, 'This launch has no mbarriers.');
  return html('div', {class: 'view-barriers'},
              detail.barriers.map((barrier, i) =>
                  barrierHistory(number, barrier, i === 0)));
}
