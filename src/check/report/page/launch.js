// launch.js: a launch: its source, its timeline, its mbarriers, its memory.

const kViews = {
  source: ['Source and PTX', launchSource],
  timeline: ['Timeline', launchTimeline],
  barriers: ['Mbarriers', launchBarriers],
  memory: ['Memory', launchMemory],
};

/** A launch with one of its views; `rest`: what the view is to show. */
function launchPage(number, view, rest, interleaving) {
  const launch = launchOf(number);
  const details = detailsOf(number);
  if (!launch)
    return html('p', {}, `The report has no launch ${number}.`);
  const detail = details.find(one => one.interleaving === interleaving) || details[0];
  const tabs = Object.entries(kViews).map(([name, [title]], i) => html(
      'a', {class: 'tab', href: `#launch-${number}/${name}`, role: 'tab',
            'aria-selected': name === view ? 'true' : 'false',
            title: `key ${i + 1}`}, title));
  const place = html('div', {class: 'view'});
  const show = shown => place.replaceChildren(
      shown ? kViews[view][1](number, shown, rest && Number(rest))
            : html('p', {class: 'note'}, 'The report has no details of this ' +
                                         'launch (--detail on keeps them).'));
  show(detail);
  return html('section', {id: 'launch-view'},
      html('h2', {}, html('a', {href: '#', class: 'back', title: 'key Escape'}, '←'),
           ` Launch ${number}: `, html('span', {class: 'name'}, launch.kernel)),
      html('p', {}, `grid ${launch.grid.join('×')}, block ${launch.block.join('×')}, ` +
                    `cluster ${launch.cluster.join('×')}, ` +
                    `${launch.stats.instructions} warp instructions`,
           launch.launch_file ? `, ${launch.launch_file}` : ''),
      details.length > 1
          ? html('p', {class: 'tools'}, 'interleaving ', html('select', {
              'aria-label': 'interleaving',
              onchange: event => show(details[event.target.value])},
              details.map((one, i) => html(
                  'option', {value: i, selected: one === detail}, one.interleaving))))
          : detail ? html('p', {class: 'note'}, `interleaving ${detail.interleaving}`) : '',
      html('nav', {class: 'tabs', role: 'tablist'}, tabs), place,
      html('ul', {class: 'launch-findings'}, findingsOf(number).map(one => html(
          'li', {}, findingBadges([{...one, role: ''}]), ' ',
          one.finding.message.split('\n')[0]))));
}
