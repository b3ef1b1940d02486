// finding.js: a finding, opened: both accesses with their bytes, the edge that
// is missing, the mbarriers, who waits for whom, the memory, and the rule.

/** Some lines of source around a place. */
function excerpt(at) {
  const lines = [];
  for (let line = Math.max(1, at.line - 2); line <= at.line + 2; ++line) {
    const text = sourceLine(at.file, line);
    if (text !== undefined)
      lines.push(html('span', {class: line === at.line ? 'here' : ''},
                      `${String(line).padStart(4)}  ${text}\n`));
  }
  return lines.length ? html('pre', {class: 'excerpt'}, lines) : '';
}

function frames(stack) {
  if (!stack || !stack.length)
    return '';
  return html('ol', {class: 'stack'}, stack.map(frame => html(
      'li', {}, `${frame.function} `,
      html('span', {class: 'place'}, placeText(frame)))));
}

/** The instruction at a line of the PTX. */
function instructionAt(number, line) {
  const rows = number ? listingOf(number) : null;
  const row = rows && rows.find(one => one.ptx_line === line);
  return row ? row.text : '';
}

function accessCard(number, title, who, at, instruction, time) {
  return html('section', {class: 'access-card'},
              html('h5', {}, title), html('p', {}, who),
              html('p', {}, 'at ', number ? sourceLink(number, at) : placeText(at),
                   time === undefined ? '' : `, time ${time}`),
              excerpt(at), instruction ? html('p', {}, html('code', {}, instruction)) : '',
              frames(at.stack));
}

/** The sixteen bytes around an address; those of the finding are marked. */
function byteCell(finding) {
  if (finding.address === undefined || finding.space === 'tensor')
    return '';
  const base = Math.floor(finding.address / 16) * 16;
  const first = finding.address - base;
  const count = finding.bytes || 1;
  const format = finding.space === 'global' ? hex : String;
  return html('div', {class: 'bytes'},
      html('p', {}, `${finding.space} ${format(finding.address)}` +
                    (finding.bytes ? `, ${plural(finding.bytes, 'byte')} that both touch` : '') +
                    (finding.buffer ? `, in ${finding.buffer}` : '')),
      html('div', {class: 'byte-row', role: 'img',
                   'aria-label': `bytes ${first} to ${first + count - 1} of 16`},
           Array.from({length: 16}, (_, i) => html(
               'span', {class: i >= first && i < first + count ? 'byte hit' : 'byte',
                        title: format(base + i)}, i))));
}

function accessesOf(finding, number) {
  const kindOf = access => access === 'write' ? 'writes' : 'reads';
  const cards = [];
  if (finding.other)
    cards.push(accessCard(number, '1: first access',
                          `${finding.other.who} ${kindOf(finding.other.access)}`,
                          finding.other,
                          instructionAt(number, finding.other.ptx_line),
                          finding.other.time));
  if (finding.instruction)
    cards.push(accessCard(number, finding.other ? '2: second access' : 'The access',
                          finding.cta ? `thread ${finding.thread} of ${ctaText(finding.cta)}` : '',
                          finding, finding.instruction, finding.time));
  return cards.length ? html('div', {class: 'accesses'}, cards, byteCell(finding)) : '';
}

function part(name, title, ...children) {
  return html('section', {class: `part ${name}`}, html('h4', {}, title), children);
}

function edgeOf(finding, detail) {
  const drawing = detail && findingTimeline(finding, detail);
  if (!drawing && !finding.missing)
    return '';
  return part('edge', finding.missing ? 'The missing edge' : 'The timeline',
              finding.missing ? html('p', {class: 'missing'}, 'missing: ',
                                     html('strong', {}, finding.missing)) : '',
              drawing ? [html('div', {class: 'scroll', tabindex: 0}, drawing),
                         timelineLegend()] : '');
}

function memoryOf(finding, detail) {
  if (!detail || finding.space !== 'shared' || finding.address === undefined)
    return '';
  const map = detail.shared.find(one => sameCta(one.cta, finding.cta));
  if (!map)
    return '';
  const marked = {begin: finding.address,
                  end: finding.address + (finding.bytes || 1)};
  return part('map', 'Shared memory', memoryMap(detail.launch, map, marked));
}

/** The rule of the plain list, here again. */
function ruleOf(finding) {
  const rule = document.getElementById(`rule-${finding.id}`);
  if (!rule)
    return '';
  const copy = [...rule.children].filter(child => child.tagName !== 'H3')
                   .map(child => child.cloneNode(true));
  return part('rule-text', `The rule: ${finding.id}`, copy);
}

/** What is known of a finding beside the plain list. */
function findingBody(finding) {
  const detail = detailOf(finding);
  const number = detail ? detail.launch : 0;
  const barriers = detail ? barriersOf(finding, detail) : [];
  return html('div', {class: 'opened'},
      accessesOf(finding, number),
      finding.waits ? part('graph', 'Who waits for whom',
                           waitGraph(number, finding, detail)) : '',
      edgeOf(finding, detail),
      barriers.length ? part('history', 'What became of the mbarriers',
                             barriers.map((barrier, i) =>
                                 barrierHistory(number, barrier, i < 3))) : '',
      memoryOf(finding, detail), ruleOf(finding),
      detail ? html('p', {}, html('a', {href: `#launch-${number}/source/${finding.ptx_line}`},
                                  `launch ${number}, source and PTX`))
             : html('p', {class: 'note'}, 'The report has no details of the launch ' +
                                          '(--detail on keeps them).'));
}
