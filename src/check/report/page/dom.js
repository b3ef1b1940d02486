// dom.js: elements made of names, attributes and text. Nothing here parses
// markup, so that what a stranger wrote is never more than text.
'use strict';

/** Add attributes, listeners and children to an element. */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false)
      continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else
      element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== '')
      element.append(child instanceof Node ? child : String(child));
  return element;
}

function html(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name),
              attributes, children);
}

/** A word in front of what follows it as a tooltip of a drawing. */
function tip(text) { return svg('title', {}, text); }

function plural(count, word) {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

function ctaText(cta) { return `CTA (${cta.join(', ')})`; }

function sameCta(a, b) { return a && b && a.every((x, i) => x === b[i]); }

/** "sums.cu:12" of a path. */
function placeText(at) {
  if (!at || !at.file)
    return at && at.ptx_line ? `PTX line ${at.ptx_line}` : '';
  return `${at.file.split('/').pop()}:${at.line}`;
}

function hex(number) { return '0x' + number.toString(16); }
