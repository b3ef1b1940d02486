// timeline.js: who did what when, as a drawing: a row for each warp with its
// role, each unit beside the warps, each slot and each mbarrier; and the two
// accesses of a finding with the edge that is missing between them.

const kRow = 22, kLabel = 190, kTop = 26;

function rowKey(cta, agent, number) {
  return `${cta.join()}/${agent}/${agent === 'warp' || agent === 'wgmma' ? number : 0}`;
}

function rowLabel(detail, cta, agent, number) {
  const name = agent === 'warp' ? `warp ${number}`
               : agent === 'wgmma' ? `tensor core, warpgroup ${number}`
               : agent === 'tcgen05' ? 'tensor core'
               : agent === 'tma' ? 'TMA' : agent;
  const role = agent === 'warp' ? roleOf(detail, cta, number) : '';
  return role ? `${name} · ${role}` : name;
}

/** Rows of a CTA: units, warps, slots, mbarriers; each with what it draws. */
function timelineRows(detail, ctas, marks) {
  const rows = new Map();
  const add = (key, row) => {
    if (!rows.has(key))
      rows.set(key, {...row, events: [], marks: []});
    return rows.get(key);
  };
  const order = ['tma', 'cp.async', 'wgmma', 'tcgen05', 'warp'];
  const events = detail.timeline.filter(
      event => ctas.some(cta => sameCta(cta, event.cta)));
  for (const mark of marks)
    add(rowKey(mark.cta, mark.unit, mark.number),
        {cta: mark.cta, rank: order.indexOf(mark.unit), number: mark.number,
         label: rowLabel(detail, mark.cta, mark.unit, mark.number)});
  for (const event of events)
    add(rowKey(event.cta, event.agent, event.number),
        {cta: event.cta, rank: order.indexOf(event.agent), number: event.number,
         label: rowLabel(detail, event.cta, event.agent, event.number)})
        .events.push(event);
  for (const event of events)
    if (event.slot !== undefined && event.kind === 'load')
      add(`${event.cta.join()}/slot/${event.slot}`,
          {cta: event.cta, rank: 5, number: event.slot,
           label: `slot ${event.slot}`})
          .events.push(event);
  for (const barrier of detail.barriers)
    if (ctas.some(cta => sameCta(cta, barrier.cta)))
      add(`${barrier.cta.join()}/mbarrier/${barrier.address}`,
          {cta: barrier.cta, rank: 6, number: barrier.address, barrier,
           label: barrier.name || `mbarrier ${barrier.address}`})
          .marks = barrier.events;
  return [...rows.entries()]
      .map(([key, row]) => ({key, ...row}))
      .sort((a, b) => a.cta[2] - b.cta[2] || a.cta[1] - b.cta[1] ||
                      a.cta[0] - b.cta[0] || a.rank - b.rank ||
                      a.number - b.number);
}

/** Where the two accesses of a finding were made, as far as that is known. */
function marksOf(finding) {
  const marks = [];
  const other = finding.other;
  if (other && other.cta && other.unit)
    marks.push({cta: other.cta, unit: other.unit, number: other.number,
                time: other.time, access: other.access, at: other, name: 'first'});
  if (finding.cta && finding.thread !== undefined)
    marks.push({cta: finding.cta, unit: 'warp', time: finding.time,
                number: Math.floor(finding.thread / 32), at: finding,
                name: other ? 'second' : 'here'});
  return marks;
}

/** A drawing of [from, to]; `options`: marks, missing, width. */
function drawTimeline(number, detail, ctas, from, to, options) {
  const marks = options.marks || [];
  const isSeen = row => row.events.some(one => one.end >= from && one.start <= to) ||
                        row.marks.some(one => one.time >= from && one.time <= to) ||
                        marks.some(one => rowKey(one.cta, one.unit, one.number) === row.key);
  const rows = timelineRows(detail, ctas, marks).filter(isSeen);
  const width = options.width || 1000;
  const height = kTop + rows.length * kRow + 12;
  const span = Math.max(1, to - from);
  const x = time => kLabel + (time - from) / span * (width - kLabel - 16);
  const clamp = time => Math.min(Math.max(time, from), to);
  const drawing = svg('svg', {
    class: 'timeline', viewBox: `0 0 ${width} ${height}`, width, height,
    role: 'img', 'aria-label': 'timeline of the CTA'});
  const step = niceStep(span);
  for (let t = Math.ceil(from / step) * step; t <= to; t += step)
    drawing.append(
        svg('line', {class: 'grid', x1: x(t), x2: x(t), y1: kTop - 6, y2: height}),
        svg('text', {class: 'tick', x: x(t), y: 14}, t));
  const tops = new Map();
  rows.forEach((row, i) => {
    const y = kTop + i * kRow;
    tops.set(row.key, y);
    drawing.append(
        svg('text', {class: 'label', x: 4, y: y + 14}, tip(ctaText(row.cta)),
            ctas.length > 1 ? `${row.label} · ${row.cta.join()}` : row.label),
        svg('line', {class: 'lane', x1: kLabel, x2: width, y1: y + kRow - 2,
                     y2: y + kRow - 2}));
    for (const event of row.events) {
      if (event.end < from || event.start > to)
        continue;
      const left = x(clamp(event.start));
      const kind = event.kind + (event.complete === false ? ' incomplete' : '');
      drawing.append(svg('rect', {
        class: `event ${kind}`, x: left, y: y + 3, height: kRow - 8, rx: 2,
        width: Math.max(2, x(clamp(event.end)) - left)},
        tip(`${event.name}${event.object ? ' ' + event.object : ''}, ` +
            `${event.start} to ${event.end}, ` +
            placeText(placeOf(number, event)))));
    }
    for (const mark of row.marks) {
      if (mark.time < from || mark.time > to)
        continue;
      drawing.append(svg('path', {
        class: `mark ${mark.what}`,
        d: markShape(mark.what, x(mark.time), y + kRow / 2 - 1)},
        tip(barrierEventText(mark, row.barrier) +
            `, time ${mark.time}, ` + placeText(placeOf(number, mark)))));
    }
  });
  drawEdge(drawing, marks, tops, x, options.missing, width);
  return drawing;
}

function niceStep(span) {
  const raw = span / 8;
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  return [1, 2, 5, 10].map(f => f * power).find(f => f >= raw) || 10 * power;
}

function markShape(what, x, y) {
  if (what === 'phase')
    return `M${x - 5},${y + 5}L${x},${y - 6}L${x + 5},${y + 5}Z`;
  if (what === 'wait')
    return `M${x - 4},${y - 4}L${x + 4},${y}L${x - 4},${y + 4}Z`;
  return `M${x - 3},${y - 3}H${x + 3}V${y + 3}H${x - 3}Z`;
}

/** The accesses as dots and the edge between them, which is not there. */
function drawEdge(drawing, marks, tops, x, missing, width) {
  const dots = marks
      .filter(mark => mark.time !== undefined &&
                      tops.has(rowKey(mark.cta, mark.unit, mark.number)))
      .map(mark => ({...mark, x: x(mark.time),
                     y: tops.get(rowKey(mark.cta, mark.unit, mark.number)) +
                        kRow / 2 - 1}));
  if (dots.length === 2 && missing) {
    const [a, b] = dots;
    const bend = Math.max(30, Math.abs(b.x - a.x) / 2);
    drawing.append(
        svg('path', {class: 'missing-edge',
                     d: `M${a.x},${a.y}C${a.x + bend},${a.y} ` +
                        `${b.x - bend},${b.y} ${b.x},${b.y}`},
            tip(`missing: ${missing}`)),
        svg('text', {class: 'missing-label',
                     x: Math.min(Math.max(a.x, b.x) + 14, width - 60),
                     y: (a.y + b.y) / 2 + 4}, 'missing'));
  }
  for (const dot of dots)
    drawing.append(
        svg('circle', {class: `access ${dot.name}`, cx: dot.x, cy: dot.y, r: 6},
            tip(`the ${dot.name} access, time ${dot.time}, ` +
                placeText(dot.at))),
        svg('text', {class: 'access-label', x: dot.x, y: dot.y - 8},
            dot.name === 'first' ? '1' : dot.name === 'second' ? '2' : '!'));
}

/** The timeline around a finding; null: nothing is known of it. */
function findingTimeline(finding, detail) {
  const marks = marksOf(finding);
  const times = marks.map(mark => mark.time).filter(t => t !== undefined);
  if (!times.length && !finding.waits)
    return null;
  const end = detail.timeline.reduce((m, event) => Math.max(m, event.end), 0);
  const first = times.length ? Math.min(...times) : Math.max(0, end - 600);
  const last = times.length ? Math.max(...times) : end;
  // What is behind a deadlock is nothing; what led to it may be long ago.
  const before = finding.waits ? 300 : Math.max(40, Math.round((last - first) * 0.4));
  const after = finding.waits ? 20 : before;
  const ctas = marks.length ? marks.map(mark => mark.cta)
                            : (finding.waits || []).map(one => one.cta);
  const unique = ctas.filter((cta, i) =>
      ctas.findIndex(other => sameCta(other, cta)) === i).slice(0, 4);
  return drawTimeline(detail.launch, detail, unique,
                      Math.max(0, first - before), last + after,
                      {marks, missing: finding.missing});
}

/** All of a launch, with buttons to look closer. */
function launchTimeline(number, detail) {
  const ctas = [];
  for (const event of detail.timeline)
    if (!ctas.some(cta => sameCta(cta, event.cta)))
      ctas.push(event.cta);
  if (!ctas.length)
    return html('p', {}, 'Nothing waits, copies or multiplies in this launch.');
  const end = detail.timeline.reduce((m, event) => Math.max(m, event.end), 1);
  const view = {cta: ctas[0], zoom: 1};
  const place = html('div', {class: 'scroll', tabindex: 0});
  const show = () => {
    place.replaceChildren(drawTimeline(number, detail, [view.cta], 0, end,
                                       {width: 1000 * view.zoom}));
  };
  const zoom = factor => () => {
    view.zoom = Math.min(64, Math.max(1, view.zoom * factor));
    show();
  };
  const select = html('select', {
    'aria-label': 'CTA',
    onchange: event => { view.cta = ctas[event.target.value]; show(); }},
    ctas.map((cta, i) => html('option', {value: i}, ctaText(cta))));
  show();
  const left = detail.events_left_out;
  return html('div', {class: 'view-timeline'},
              html('p', {class: 'tools'}, select,
                   html('button', {onclick: zoom(2), title: 'closer'}, '+'),
                   html('button', {onclick: zoom(0.5), title: 'further'}, '−'),
                   ' time in warp instructions; logical, the same in every run'),
              left ? html('p', {class: 'note'},
                          `${plural(left, 'event')} from the middle of the ` +
                          'launch are left out.') : '',
              place, timelineLegend());
}

function timelineLegend() {
  return html('p', {class: 'legend'},
              [['wait', 'waits'], ['load', 'loads'], ['product', 'multiplies'],
               ['store', 'stores'], ['load incomplete', 'load that nobody was told of']]
                  .map(([kind, text]) => html('span', {class: `key ${kind}`}, text)),
              html('span', {class: 'key plain'},
                   'on mbarriers: ■ arrival or copy, ▲ phase complete, ▶ wait came true'));
}
