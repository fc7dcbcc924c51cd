// What the drawings share: elements, and what is under the mouse.

// An element with attributes and a text, or with the elements in it.
export function made(tag, attributes = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
}

export const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

// What a drawing is made of, put into its element the first time it is drawn.
export function parts(root, html) {
  if (!root.firstElementChild) root.innerHTML = html;  // a constant of a drawing, no one's text
  return (selector) => root.querySelector(selector);
}

// A canvas of a size in the page's pixels, sharp on every screen; what draws on it.
export function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1, ctx = canvas.getContext("2d");
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ctx;
}

export const FONT = '"Source Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// What the drawings of a page tell each other, within a frame and without their host: which tokens
// are under the mouse, by the names that identify them in every drawing, and how such a token sees.
// mark(names, alike): of all tokens under the mouse, a row's and a column's, or of one triple and all
// alike; follow(row): of the same group's matrix, or null.
export function hovering(root, group, mark, follow) {
  root.hovering?.abort();
  const { signal } = root.hovering = new AbortController();
  const listen = (kind, heard) => document.addEventListener(kind, (event) => {
    if (!root.isConnected) root.hovering.abort();
    else heard(event.detail);
  }, { signal });
  listen("kbert-hover", ({ names, alike }) => mark(names, alike));
  if (follow) listen("kbert-row", (row) => { if (row.group === group) follow(row); });
  return (names, alike = false) =>
    document.dispatchEvent(new CustomEvent("kbert-hover", { detail: { names, alike } }));
}
