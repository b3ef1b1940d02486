// waits.js: a deadlock as a graph: those who wait, what they wait for, and who
// could let them go on.

const kNode = {width: 250, height: 58, gapX: 190, gapY: 26};

/** Nodes that wait on one side, what they wait for on the other. */
function waitGraph(number, finding, detail) {
  const waits = finding.waits;
  const things = [];
  const thingOf = waits.map(one => {
    const key = one.kind === 'mbarrier'
                    ? `${one.cta.join()}/${one.address}`
                    : `${one.kind}/${one.cta.join()}/${one.what}`;
    let thing = things.find(other => other.key === key);
    if (!thing)
      things.push(thing = {key, kind: one.kind, waits: [], on: new Set(),
                           name: thingName(one), what: one.what});
    thing.waits.push(one);
    one.on.forEach(i => thing.on.add(i));
    return thing;
  });
  const columnX = [10, 10 + kNode.width + kNode.gapX];
  const y = i => 10 + i * (kNode.height + kNode.gapY);
  const rows = Math.max(waits.length, things.length);
  const width = columnX[1] + kNode.width + 10, height = y(rows) + 4;
  const drawing = svg('svg', {
    class: 'waits', viewBox: `0 0 ${width} ${height}`, width, height,
    role: 'img', 'aria-label': 'who waits for whom'},
    svg('defs', {}, ['waits', 'lets'].map(name => svg(
        'marker', {id: `arrow-${name}`, class: `arrow ${name}`, viewBox: '0 0 8 8',
                   refX: 8, refY: 4, markerWidth: 8, markerHeight: 8,
                   orient: 'auto'}, svg('path', {d: 'M0,0L8,4L0,8Z'})))));
  waits.forEach((one, i) => {
    const j = things.indexOf(thingOf[i]);
    drawing.append(arrow('waits', columnX[0] + kNode.width, y(i) + 18,
                         columnX[1], y(j) + 18,
                         `${threadsText(one)} wait for ${thingOf[i].name}`));
  });
  things.forEach((thing, j) => [...thing.on].forEach(i => drawing.append(
      arrow('lets', columnX[1], y(j) + 42, columnX[0] + kNode.width, y(i) + 42,
            `${thing.name} waits for ${threadsText(waits[i])}`))));
  waits.forEach((one, i) => {
    const warp = Math.floor(one.first / 32);
    const role = detail && one.kind !== 'lanes' ? roleOf(detail, one.cta, warp) : '';
    drawing.append(node('thread', columnX[0], y(i),
        [`${threadsText(one)}${role ? ' · ' + role : ''}`, ctaText(one.cta),
         placeText(one)], `${one.what}\n${one.source}`));
  });
  things.forEach((thing, j) => drawing.append(
      node(`object ${thing.kind}`, columnX[1], y(j), objectLines(thing),
           thing.what)));
  return html('figure', {class: 'graph'}, html('div', {class: 'scroll'}, drawing),
              html('figcaption', {},
                   html('span', {class: 'key waits'}, 'waits for'),
                   html('span', {class: 'key lets'},
                        'is waited for by it: has signalled it before, or has not arrived')));
}

function thingName(one) {
  return one.object || {barrier: 'a barrier of the CTA', lanes: 'lanes of its warp',
                        cluster: 'the cluster barrier', memory: 'memory',
                        registers: 'registers', loop: 'a loop',
                        launch: 'the launch ahead', wgmma: 'a wgmma',
                        'tensor-memory': 'tensor memory',
                        running: 'nothing: running'}[one.kind] || one.kind;
}

/** What is missing, of the sentence behind the name. */
function objectLines(thing) {
  const at = thing.what.lastIndexOf(': ');
  const words = (at < 0 ? thing.what : thing.what.slice(at + 2)).split(', ');
  return [thing.name, words[0], words.slice(1).join(', ')];
}

function node(kind, x, y, lines, title) {
  const cut = text => text.length > 36 ? text.slice(0, 35) + '…' : text;
  return svg('g', {class: `node ${kind}`}, tip(title),
             svg('rect', {x, y, width: kNode.width, height: kNode.height, rx: 6}),
             lines.filter(line => line).map((line, i) => svg(
                 'text', {class: i ? 'small' : 'title', x: x + 10,
                          y: y + 18 + i * 16}, cut(line))));
}

function arrow(kind, x1, y1, x2, y2, title) {
  const bend = (x2 - x1) / 2;
  return svg('path', {class: `edge ${kind}`, 'marker-end': `url(#arrow-${kind})`,
                      d: `M${x1},${y1}C${x1 + bend},${y1} ${x2 - bend},${y2} ` +
                         `${x2},${y2}`}, tip(title));
}
