// page.js: what is shown where, keys, links; the beginning.

const main = document.querySelector('main');
let current = 0; // the finding that keys are about; from 1

function articleOf(number) {
  return document.getElementById(`finding-${number}`);
}

/** Open a finding in the list, or close it. */
function toggleFinding(number, isOpen) {
  const article = articleOf(number);
  const finding = state.report.findings[number - 1];
  if (!article || !finding)
    return;
  const known = article.querySelector('.opened');
  if (isOpen === undefined)
    isOpen = !known;
  if (isOpen && !known)
    article.append(findingBody(finding));
  if (!isOpen && known)
    known.remove();
  article.classList.toggle('is-open', isOpen);
  const button = article.querySelector('button.toggle');
  if (button)
    button.setAttribute('aria-expanded', String(isOpen));
}

function focusFinding(number) {
  for (const other of document.querySelectorAll('.finding.current'))
    other.classList.remove('current');
  const article = articleOf(number);
  if (!article)
    return;
  current = number;
  article.classList.add('current');
  article.scrollIntoView({block: 'start'});
}

function showList() {
  const view = document.getElementById('launch-view');
  if (view)
    view.remove();
  for (const child of main.children)
    child.hidden = false;
}

function showLaunch(number, view, rest, interleaving) {
  showList();
  for (const child of main.children)
    child.hidden = true;
  main.prepend(launchPage(number, view in kViews ? view : 'source', rest,
                          interleaving));
  window.scrollTo(0, 0);
}

/** Show what the address names. */
function follow() {
  const hash = decodeURIComponent(location.hash.slice(1));
  const launch = /^launch-(\d+)(?:\/(\w+))?(?:\/(\d+))?$/.exec(hash);
  const finding = /^finding-(\d+)$/.exec(hash);
  if (launch)
    return showLaunch(Number(launch[1]), launch[2] || 'source', launch[3]);
  showList();
  if (finding) {
    toggleFinding(Number(finding[1]), true);
    focusFinding(Number(finding[1]));
  } else if (hash) {
    const element = document.getElementById(hash);
    if (element)
      element.scrollIntoView();
  }
}

/** Hide the findings that do not have the text, or are of other grades. */
function filterFindings() {
  const text = document.getElementById('filter').value.toLowerCase();
  const grade = document.getElementById('grade').value;
  let shown = 0;
  state.report.findings.forEach((finding, i) => {
    const article = articleOf(i + 1);
    if (!article)
      return;
    const isShown = (!grade || finding.grade === grade) &&
                    (!text || JSON.stringify(finding).toLowerCase().includes(text));
    article.parentNode.hidden = !isShown;
    shown += isShown;
  });
  document.getElementById('shown').textContent =
      text || grade ? `${shown} of ${state.report.findings.length} shown` : '';
}

/** The next finding that is shown, in that direction. */
function step(direction) {
  const count = state.report.findings.length;
  for (let i = current + direction; i >= 1 && i <= count; i += direction)
    if (articleOf(i) && !articleOf(i).parentNode.hidden)
      return focusFinding(i);
}

const kKeys = {
  j: ['the next finding', () => step(1)],
  k: ['the finding before', () => step(-1)],
  o: ['open or close it', () => current && toggleFinding(current)],
  s: ['its source and PTX', () => {
    const finding = state.report.findings[current - 1];
    const detail = finding && detailOf(finding);
    if (detail)
      location.hash = `launch-${detail.launch}/source/${finding.ptx_line}`;
  }],
  '/': ['search', () => document.getElementById('filter').focus()],
  '?': ['these keys', () => document.getElementById('keys').toggleAttribute('open')],
  Escape: ['back to the list', () => { location.hash = ''; }],
};

function onKey(event) {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey)
    return;
  if (isTyping) {
    if (event.key === 'Escape')
      event.target.blur();
    return;
  }
  const view = Object.keys(kViews)[Number(event.key) - 1];
  const launch = /^#launch-(\d+)/.exec(location.hash);
  if (view && launch)
    location.hash = `launch-${launch[1]}/${view}`;
  else if (kKeys[event.key])
    kKeys[event.key][1]();
  else
    return;
  event.preventDefault();
}

function addControls() {
  document.getElementById('controls').append(
      html('input', {id: 'filter', type: 'search', placeholder: 'search findings  /',
                     'aria-label': 'search findings', oninput: filterFindings}),
      html('select', {id: 'grade', 'aria-label': 'grade', onchange: filterFindings},
           ['', 'error', 'warning', 'note'].map(grade => html(
               'option', {value: grade}, grade || 'all grades'))),
      html('span', {id: 'shown', role: 'status'}),
      html('details', {id: 'keys'}, html('summary', {}, 'keys'),
           html('ul', {}, Object.entries(kKeys).map(([key, [what]]) => html(
                              'li', {}, html('kbd', {}, key), ` ${what}`)),
                html('li', {}, html('kbd', {}, '1'), ' to ', html('kbd', {}, '4'),
                     ' views of a launch'))));
}

/** Buttons and links on the plain list. */
function addButtons() {
  state.report.findings.forEach((finding, i) => {
    const article = articleOf(i + 1);
    if (!article)
      return;
    const heading = article.querySelector('h3');
    heading.prepend(html('button', {
      class: 'toggle', 'aria-expanded': 'false', 'aria-label': 'open the finding',
      onclick: () => { current = i + 1; toggleFinding(i + 1); }}, '▸'));
    heading.append(' ', html('a', {class: 'anchor', href: `#finding-${i + 1}`,
                                   title: 'link to this finding'}, '#'));
  });
  for (const row of document.querySelectorAll('tr[data-launch]')) {
    const number = row.dataset.launch;
    const head = row.firstElementChild;
    head.replaceChildren(html('a', {href: `#launch-${number}/source`}, number));
  }
}

async function start() {
  const text = document.getElementById('data').textContent;
  if (!text || typeof DecompressionStream === 'undefined')
    return; // the plain list says what there is
  state.report = await unpack(text);
  addControls();
  addButtons();
  document.addEventListener('keydown', onKey);
  window.addEventListener('hashchange', follow);
  window.addEventListener('beforeprint', () => {
    state.report.findings.slice(0, 50).forEach((_, i) => toggleFinding(i + 1, true));
  });
  if (state.report.findings.length === 1 && !location.hash)
    toggleFinding(1, true);
  follow();
  document.documentElement.dataset.ready = 'yes';
}

start();
