// memory.js: shared memory as it was left: who wrote what last, what nobody has
// written, what was in flight; and tensor memory.

const kCell = {bytes: 16, width: 9, height: 12, perRow: 64};

/** A colour for each instruction that wrote something. */
function writerColour(map) {
  const lines = [...new Set(map.runs.filter(run => run.ptx_line)
                                .map(run => run.ptx_line))];
  return run => run.unit === 'mbarrier' ? 'mbarrier'
                : run.state === 'unwritten' ? 'unwritten'
                : run.state === 'in flight' ? 'flight'
                : run.ptx_line ? `writer w${lines.indexOf(run.ptx_line) % 8}`
                : 'writer';
}

/** Rows of cells of the piece [begin, end) of a map, drawn run by run. */
function memoryPiece(number, map, begin, end, colour, marked) {
  const cells = Math.max(1, Math.ceil((end - begin) / kCell.bytes));
  const rows = Math.ceil(cells / kCell.perRow);
  const width = Math.min(cells, kCell.perRow) * kCell.width;
  const drawing = svg('svg', {class: 'memory', width: width + 2,
                              height: rows * kCell.height + 2, role: 'img',
                              'aria-label': 'a piece of shared memory'});
  const draw = (from, to, kind, title) => {
    let cell = Math.floor((from - begin) / kCell.bytes);
    const last = Math.ceil((to - begin) / kCell.bytes);
    while (cell < last) {
      const row = Math.floor(cell / kCell.perRow);
      const stop = Math.min(last, (row + 1) * kCell.perRow);
      drawing.append(svg('rect', {
        class: `cell ${kind}`, x: 1 + (cell % kCell.perRow) * kCell.width,
        y: 1 + row * kCell.height, width: (stop - cell) * kCell.width,
        height: kCell.height - 1}, tip(title)));
      cell = stop;
    }
  };
  for (const run of map.runs) {
    const from = Math.max(run.begin, begin), to = Math.min(run.end, end);
    if (from < to)
      draw(from, to, colour(run), runText(number, run));
  }
  if (marked && marked.begin < end && marked.end > begin)
    draw(Math.max(marked.begin, begin), Math.min(marked.end, end), 'marked',
         `the bytes of the finding: ${marked.begin} to ${marked.end - 1}`);
  return drawing;
}

function runText(number, run) {
  const bytes = `shared addresses ${run.begin} to ${run.end - 1}: `;
  if (run.state === 'unwritten')
    return bytes + 'nobody has written them';
  if (run.unit === 'mbarrier')
    return bytes + 'a live mbarrier';
  const who = run.unit && run.unit !== 'warp'
                  ? `${run.unit}${run.warp === undefined ? '' : `, issued by warp ${run.warp}`}`
                  : run.warp === undefined ? 'threads' : `warp ${run.warp}`;
  const verb = run.state === 'in flight' ? 'being written by' : 'last written by';
  return `${bytes}${verb} ${who} at ${placeText(placeOf(number, run))}`;
}

/** Objects with names, and what lies between them. */
function piecesOf(map) {
  const pieces = [];
  let at = map.begin;
  for (const object of map.objects) {
    if (object.begin > at)
      pieces.push({name: '', begin: at, end: object.begin});
    pieces.push(object);
    at = object.end;
  }
  if (at < map.end)
    pieces.push({name: '', begin: at, end: map.end});
  return pieces;
}

function memoryMap(number, map, marked) {
  const colour = writerColour(map);
  const writers = new Map();
  for (const run of map.runs)
    if (run.ptx_line && run.state === 'written')
      writers.set(colour(run), [...(writers.get(colour(run)) || []), run]);
  return html('div', {class: 'view-memory'},
      html('h4', {}, `Shared memory of ${ctaText(map.cta)}, ` +
                     `${map.end - map.begin} bytes, as it was left`),
      piecesOf(map).map(piece => html(
          'div', {class: 'piece', 'data-name': piece.name},
          html('div', {class: 'piece-name'},
               piece.name || '(no name)',
               html('span', {class: 'note'},
                    ` ${piece.begin} to ${piece.end - 1}` +
                    (piece.swizzle ? `, swizzle ${piece.swizzle}B` : ''))),
          memoryPiece(number, map, piece.begin, piece.end, colour, marked))),
      html('p', {class: 'legend'},
           html('span', {class: 'key unwritten'}, 'nobody has written it'),
           html('span', {class: 'key flight'}, 'in flight'),
           html('span', {class: 'key mbarrier'}, 'mbarrier'),
           [...writers.entries()].map(([kind, runs]) => html(
               'span', {class: `key ${kind}`}, 'last written at ',
               [...new Set(runs.map(run => placeText(placeOf(number, run))))]
                   .slice(0, 4).join(', ')))));
}

function tensorMap(number, map) {
  return html('div', {class: 'view-tensor'},
      html('h4', {}, `Tensor memory of ${ctaText(map.cta)}: columns that are allocated`),
      html('ul', {}, map.columns.map(one => html(
          'li', {class: one.written ? 'written' : 'unwritten'},
          `columns ${one.begin} to ${one.end - 1}: ` +
          (one.written ? 'written' : 'nobody has written them') +
          ', allocated at ', sourceLink(number, one)))));
}

function launchMemory(number, detail, marked) {
  const maps = detail.shared.filter(map => map.end > map.begin);
  if (!maps.length && !detail.tensor.length)
    return html('p', {}, 'This launch uses no shared memory.');
  return html('div', {}, maps.map(map => memoryMap(number, map, marked)),
              detail.tensor.map(map => tensorMap(number, map)));
}
