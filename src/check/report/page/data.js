// data.js: the report, unpacked, and what belongs to what in it.

const state = {report: null, listings: new Map()};

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream =
      new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return JSON.parse(await new Response(stream).text());
}

function launchOf(number) {
  return state.report.launches.find(launch => launch.launch === number);
}

function detailsOf(number) {
  return (state.report.details || []).filter(one => one.launch === number);
}

/** The details that show a finding: of its first launch and interleaving. */
function detailOf(finding) {
  for (const number of finding.launches || []) {
    const details = detailsOf(number);
    const wanted = finding.interleavings || [];
    const found =
        details.find(one => wanted.includes(one.interleaving)) || details[0];
    if (found)
      return found;
  }
  return null;
}

/** The rows of a launch's listing: PTX, source and stack of each instruction. */
function listingOf(number) {
  const launch = launchOf(number);
  if (!launch || launch.listing === undefined)
    return null;
  if (!state.listings.has(launch.listing)) {
    const table = state.report.listings[launch.listing];
    const rows = table.texts.map((text, i) => ({
      index: i, text, ptx_line: table.ptx_lines[i],
      file: table.files[table.file[i]], line: table.line[i],
      stack: table.stacks[table.stack[i]],
    }));
    state.listings.set(launch.listing, rows);
  }
  return state.listings.get(launch.listing);
}

/** The place in the source of what has a line of the PTX. */
function placeOf(number, at) {
  if (at.file)
    return at;
  const rows = at.ptx_line ? listingOf(number) : null;
  const row = rows && rows.find(one => one.ptx_line === at.ptx_line);
  return row && row.file !== 'PTX' ? {...at, file: row.file, line: row.line} : at;
}

function sourceLine(file, line) {
  const source = (state.report.sources || []).find(one => one.file === file);
  return source ? source.lines[line] : undefined;
}

/** Figures of the instructions: those of the details, and of a profile. */
function figuresOfLaunch(detail) {
  const figures = {...detail.figures};
  const profile = (state.report.profiles || [])
      .find(one => (one.launches || []).includes(detail.launch));
  const rows = listingOf(detail.launch);
  if (!profile || !rows)
    return figures;
  const rowAt = new Map(rows.map(row => [row.ptx_line, row.index]));
  for (const one of profile.instructions || []) {
    const row = rowAt.get(one.ptx_line);
    for (const [name, value] of Object.entries(one.counts || one)) {
      if (row === undefined || typeof value !== 'number' || !value ||
          name === 'line' || name === 'ptx_line' || name in detail.figures)
        continue;
      figures[name] = figures[name] || new Array(rows.length).fill(0);
      figures[name][row] += value;
    }
  }
  return figures;
}

/** Findings of a launch with their numbers on the page, from 1. */
function findingsOf(number) {
  return state.report.findings
      .map((finding, i) => ({finding, number: i + 1}))
      .filter(one => (one.finding.launches || []).includes(number));
}

/** The role of a warp: "producer", or nothing. */
function roleOf(detail, cta, warp) {
  const found = detail.roles.find(
      one => one.warp === warp && sameCta(one.cta, cta));
  return found ? found.role : '';
}

/** "threads 0 to 127" of some waiting lanes. */
function threadsText(waiting) {
  return waiting.first === waiting.last
             ? `thread ${waiting.first}`
             : `threads ${waiting.first} to ${waiting.last}`;
}
