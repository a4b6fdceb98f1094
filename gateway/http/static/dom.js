// Elements from data: what the page shows is never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** An element with attributes, listeners (`onclick`) and children. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same in a drawing. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Put something in place of an element's content; who had the focus keeps it. */
export function show(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const key = focused && (focused.getAttribute("href") || focused.id);
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (key) {
    const same = [...place.querySelectorAll("a[href], button, input, select")].find(
      (one) => (one.getAttribute("href") || one.id) === key,
    );
    if (same) same.focus({ preventScroll: true });
  }
}
