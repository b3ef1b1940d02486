// source.js: the source beside the PTX, line by line, with what each costs and
// what was found there.

/** What a column says, for those that the simulator always has. */
const kColumns = {
  executions: ['executions', 'warps that executed it, with one lane at least'],
  divergent: ['divergent', 'executions in which lanes of the warp were elsewhere'],
  lanes: ['lanes', 'active lanes in these executions, on the average'],
};

/** A link to a line of the source view. */
function sourceLink(number, at) {
  const place = placeOf(number, at);
  const text = placeText(place);
  if (!text || !listingOf(number))
    return text;
  return html('a', {href: `#launch-${number}/source/${at.ptx_line || 0}`}, text);
}

function figureText(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

/** The figures of some instructions of the listing together. */
function figuresOf(figures, rows) {
  const result = {};
  for (const [name, values] of Object.entries(figures))
    result[name] = rows.reduce((sum, row) => sum + (values[row.index] || 0), 0);
  if (result.lanes && result.executions)
    result.lanes /= result.executions;
  return result;
}

/** Findings by the line of the PTX, and by "file:line". */
function findingsByPlace(number) {
  const map = new Map();
  const add = (key, one) => map.set(key, [...(map.get(key) || []), one]);
  for (const one of findingsOf(number)) {
    const {finding} = one;
    for (const at of [finding, finding.other].filter(x => x)) {
      const role = at === finding ? '' : ' (other access)';
      add(`ptx:${at.ptx_line}`, {...one, role});
      if (at.file)
        add(`${at.file}:${at.line}`, {...one, role});
    }
  }
  return map;
}

function findingBadges(list) {
  const seen = new Set();
  return (list || []).filter(one => {
    const key = one.number + one.role;
    return !seen.has(key) && seen.add(key);
  }).map(one => html('a', {class: `badge ${one.finding.grade}`,
                           href: `#finding-${one.number}`,
                           title: one.finding.message.split('\n')[0]},
                     `${one.finding.id}${one.role}`));
}

function columnHeads(all) {
  return Object.keys(all).sort(columnOrder).map(name => html(
      'th', {title: (kColumns[name] || ['', name])[1]},
      (kColumns[name] || [name.replaceAll('_', ' ')])[0]));
}

function columnOrder(a, b) {
  const rank = name => ['executions', 'divergent', 'lanes'].indexOf(name) + 1 || 9;
  return rank(a) - rank(b) || a.localeCompare(b);
}

function columnCells(all, rows) {
  const figures = figuresOf(all, rows);
  return Object.keys(figures).sort(columnOrder).map(name => html(
      'td', {class: `count ${name}${figures[name] ? '' : ' zero'}`},
      rows.length ? figureText(figures[name]) : ''));
}

/** Source and PTX of a launch; `wanted`: a line of the PTX to show. */
function launchSource(number, detail, wanted) {
  const rows = listingOf(number);
  if (!rows)
    return html('p', {}, 'The report has no listing of this launch.');
  const found = findingsByPlace(number);
  const figures = figuresOfLaunch(detail);
  const hasSource = rows.some(row => row.file && row.file !== 'PTX' &&
                                     !row.file.endsWith('.ptx'));
  const view = html('div', {class: hasSource ? 'view-source' : 'view-source alone'});
  const select = (keys, isFromPtx) => {
    for (const row of view.querySelectorAll('tr.selected'))
      row.classList.remove('selected');
    let first = null;
    for (const row of view.querySelectorAll('tr[data-at]'))
      if (keys.has(row.dataset.at) || keys.has(row.dataset.ptx)) {
        row.classList.add('selected');
        const isOther = row.dataset.ptx ? !isFromPtx : isFromPtx;
        first = first || (isOther ? row : null);
      }
    if (first)
      first.scrollIntoView({block: 'nearest'});
  };
  view.append(
      html('div', {class: 'pane source', tabindex: 0},
           sourceTables(figures, rows, found, select)),
      html('div', {class: 'pane ptx', tabindex: 0},
           ptxTable(figures, rows, found, select)));
  if (wanted) {
    const row = rows.find(one => one.ptx_line === wanted);
    setTimeout(() => {
      const keys = new Set([`ptx:${wanted}`]);
      if (row)
        keys.add(`${row.file}:${row.line}`);
      select(keys, true);
      const line = view.querySelector(`tr[data-ptx="ptx:${wanted}"]`);
      if (line)
        line.scrollIntoView({block: 'center'});
    });
  }
  return view;
}

function sourceTables(figures, rows, found, select) {
  const files = [...new Set(rows.map(row => row.file))].filter(
      file => file && file !== 'PTX' && !file.endsWith('.ptx'));
  if (!files.length)
    return html('p', {}, 'The PTX says of no line which source it is of ' +
                         '(nvcc -lineinfo writes it).');
  return files.map(file => {
    const used = new Map();
    for (const row of rows)
      if (row.file === file)
        used.set(row.line, [...(used.get(row.line) || []), row]);
    const source = (state.report.sources || []).find(one => one.file === file);
    const lines = source ? Object.keys(source.lines).map(Number)
                         : [...used.keys()];
    for (const line of used.keys())
      if (!lines.includes(line))
        lines.push(line);
    lines.sort((a, b) => a - b);
    let last = 0;
    const body = lines.map(line => {
      const ptx = used.get(line) || [];
      const gap = last && line > last + 1;
      last = line;
      return [
        gap ? html('tr', {class: 'gap'}, html('td', {colspan: 40}, '⋯')) : '',
        html('tr', {'data-at': `${file}:${line}`, class: ptx.length ? 'used' : '',
                    onclick: () => select(new Set([`${file}:${line}`]), false)},
             html('td', {class: 'number'}, line), columnCells(figures, ptx),
             html('td', {class: 'code'},
                  html('code', {}, source ? source.lines[line] || '' : ''),
                  findingBadges(found.get(`${file}:${line}`))))];
    });
    return html('table', {class: 'listing'},
                html('caption', {}, file, source ? '' : ' (not found here)'),
                html('thead', {}, html('tr', {}, html('th', {}, 'line'),
                                       columnHeads(figures), html('th', {}, 'source'))),
                html('tbody', {}, body));
  });
}

/** The functions that an instruction was inlined from, innermost first. */
function inlinedText(row) {
  return row.stack.slice(0, -1).map(frame =>
      `${frame.function} ${placeText(frame)}`).join(' ← ');
}

function ptxTable(figures, rows, found, select) {
  let last = '';
  const body = rows.map(row => {
    const inlined = inlinedText(row);
    const isNew = inlined && inlined !== last;
    last = inlined;
    return [
      isNew ? html('tr', {class: 'inlined'}, html('td', {}),
                   html('td', {colspan: 40}, `inlined: ${inlined}`)) : '',
      html('tr', {'data-at': `${row.file}:${row.line}`,
                  'data-ptx': `ptx:${row.ptx_line}`,
                  onclick: () => select(new Set([`${row.file}:${row.line}`]), true)},
           html('td', {class: 'number'}, row.ptx_line),
           columnCells(figures, [row]),
           html('td', {class: 'code'}, html('code', {}, row.text),
                findingBadges(found.get(`ptx:${row.ptx_line}`))))];
  });
  return html('table', {class: 'listing'}, html('caption', {}, 'PTX'),
              html('thead', {}, html('tr', {}, html('th', {}, 'line'),
                                     columnHeads(figures), html('th', {}, 'PTX'))),
              html('tbody', {}, body));
}
