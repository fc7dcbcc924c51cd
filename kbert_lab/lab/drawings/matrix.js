// A square of cells on a canvas: hover, click and arrow keys name a cell. The canvas is as large as
// its window; a large matrix scrolls under its own row and column names. Texts are drawn on the
// canvas or set as textContent, never as HTML. Where cells stand is in layout.js, how they look in
// paint.js. It sends {do: "cell", looks, at}, {do: "token", token} and, of a cell clicked twice,
// {do: "link", looks, at}.

import { drawScale, HIDDEN, theme } from "./colours.js";
import { ARROWS, FONT, hovering, made, parts, sized } from "./elements.js";
import { checksum, clamp, fitted, heldByLarger, label, ONLY_BEFORE, runs, unpacked } from "./layout.js";
import { kinds, paintCells, paintMarks, paintWindow, palette, pictureOf } from "./paint.js";
import { save } from "./saved.js";
import { isSet } from "./settings.js";
import { sayWhy } from "./why.js";

const HTML = `<div class="keys"></div><div class="scroll"><div class="stack"><div class="view">
    <canvas class="base"></canvas><canvas class="over" role="application" tabindex="0"></canvas>
  </div></div></div>
  <div class="said" aria-live="polite"></div>
  <div class="foot">
    <div class="scale"><span class="low"></span><i></i><span class="high"></span></div>
    <div class="zoom"><button class="out">−</button><button class="in">+</button
      ><button class="fit">⤢</button></div>
    <button class="save">SVG</button>
    <label class="mass" hidden><span></span><input type="range" min="50" max="100" step="1">
      <output></output></label>
  </div>
  <p class="why" aria-live="polite"></p>
  <div class="tip" hidden><b></b><span></span></div>`;

export function draw(root, view, send) {
  const find = parts(root, HTML), [base, over] = [find(".base"), find(".over")];
  const own = root.own ??= { zoom: 0, mass: 100, token: null };  // what the visitor set here
  own.ended?.abort();
  const { signal } = own.ended = new AbortController();
  const m = { root, view, send, own, find, base, over, scroll: find(".scroll"), n: view.n,
    ...unpacked(view), theme: theme(root), small: document.createElement("canvas"), at: view.cell };
  m.small.width = m.small.height = m.n;
  m.colours = palette(view, m.theme.dark);
  m.mayHide = m.shares && view.kind === "attention";
  Object.assign(root.dataset, { n: m.n, kind: view.kind, sum: checksum(m.codes),
    tokens: view.tokens.join(" ") });
  over.setAttribute("aria-label", view.label);
  find(".scale").hidden = view.categorical;
  if (!view.categorical) drawScale(find(".scale"), view, m.colours);

  find(".keys").replaceChildren(...kinds(m).map(([code, name]) => {
    const box = made("i", { class: code === HIDDEN ? "hatched" : "" });
    if (code !== HIDDEN) box.style.background = `rgb(${m.colours[code]})`;
    return made("span", {}, box, name);
  }));
  zooming(m);
  thinning(m);
  pointing(m);
  const watcher = new ResizeObserver(() => place(m));
  watcher.observe(root);
  signal.addEventListener("abort", () => watcher.disconnect());
  addEventListener("resize", () => place(m), { signal });
  document.addEventListener("kbert-settings", () => place(m), { signal });
  place(m);
  caption(m);
  const token = view.token === null ? null : view.identities[view.token];
  if (token !== null && own.token !== token) reveal(m, view.token, view.cell?.[1] ?? view.token);
  own.token = token;
  m.scroll.dataset.ready = "1";
  return () => own.ended.abort();
}

// Give everything its size, then draw what is in the window.
function place(m) {
  const { root, view, n, own, scroll, base, over } = m;
  if (!root.clientWidth) return;
  m.letters = isSet("large") ? 1.4 : 1;
  const measure = base.getContext("2d");
  measure.font = `${13 * m.letters}px ${FONT}`;
  const shown = n * 10 > 620 ? runs(view, 10).map(([, name]) => name)
    : view.tokens.map((_, i) => label(view, i, m.cell ?? 16));
  const widest = Math.max(0, ...shown.map((text) => measure.measureText(text).width));
  const room = { width: root.clientWidth, height: innerHeight, above: view.above, letters: m.letters };
  Object.assign(m, fitted(n, widest, room, own.zoom));
  const whole = [m.left + n * m.cell + 2, m.top + n * m.cell + 2];
  const { style } = m.find(".stack");
  [style.width, style.height] = whole.map((size) => `${size}px`);
  const size = [Math.min(whole[0], scroll.clientWidth), Math.min(whole[1], scroll.clientHeight)];
  for (const canvas of [base, over]) sized(canvas, ...size);
  Object.assign(root.dataset, { cell: m.cell, left: m.left, top: m.top });
  m.find(".zoom").hidden = m.cell >= 16 && own.zoom === 0;
  show(m);
}

function show(m) {
  paintWindow(m.base.getContext("2d"), m, inWindow(m));
  highlight(m, null);
}

function highlight(m, hover, alike = []) {
  paintMarks(m.over.getContext("2d"), m, inWindow(m), hover, alike);
}

// The places in the window: first and last row, first and last column, and where 0,0 is drawn.
function inWindow({ n, cell, left, top, scroll, base }) {
  const x = left - scroll.scrollLeft, y = top - scroll.scrollTop;
  const width = parseFloat(base.style.width), height = parseFloat(base.style.height);
  const between = (low, high) => [low, high].map((at) => clamp(Math.floor(at / cell), n));
  return { x, y, width, height, rows: between(top - y, height - y),
    columns: between(left - x, width - x) };
}

// Scroll so that a row and a column are in the window.
function reveal(m, row, column) {
  const { cell, left, top, scroll } = m, seen = inWindow(m);
  const x = seen.x + column * cell, y = seen.y + row * cell;
  if (x < left || x + cell > seen.width) scroll.scrollLeft = column * cell - seen.width / 3;
  if (y < top || y + cell > seen.height) scroll.scrollTop = row * cell - seen.height / 3;
}

// What is said

function value({ view, n, codes, shares }, [i, j]) {
  const code = codes[i * n + j], share = shares?.[i * n + j];
  if (code >= ONLY_BEFORE || view.categorical) return view.names[code];
  const sign = view.kind === "difference" && share > 0 ? "+" : "";
  return `${sign}${(100 * share).toFixed(1).replace("-", "−")} %`;
}

function caption(m) {
  const { at, view: { tokens, texts, cell, why } } = m;
  const open = at && cell && at[0] === cell[0] && at[1] === cell[1];
  const hint = open || !texts.hint ? "" : ` · ${texts.hint}`;
  m.find(".said").textContent =
    at ? `${tokens[at[0]]} → ${tokens[at[1]]} · ${value(m, at)}${hint}` : "";
  m.find(".why").textContent = why && cell ? sayWhy(cell, tokens, why) : "";
}

function tell(m, where, x, y) {
  const tip = m.find(".tip");
  tip.hidden = !where;
  if (!where) return;
  const [i, j] = where, { tokens, texts } = m.view, name = i < 0 || j < 0;
  tip.querySelector("b").textContent = name ? tokens[Math.max(i, j)] : `${tokens[i]} → ${tokens[j]}`;
  tip.querySelector("span").textContent = name ? texts.row_column : value(m, where);
  const frame = m.root.getBoundingClientRect(), right = x - frame.left + tip.offsetWidth + 24;
  tip.style.left = `${x - frame.left + (right > frame.width ? -tip.offsetWidth - 12 : 14)}px`;
  tip.style.top = `${y - frame.top + 14}px`;
}

// What is done in it

function choose(m, where) {
  const [looks, at] = where.map((i) => m.view.identities[i]);
  if (Math.min(...where) < 0) return m.send({ do: "token", token: looks ?? at });
  m.at = m.view.cell = where;  // framed at once; what is said of it comes after
  highlight(m, null);
  caption(m);
  m.send({ do: "cell", looks, at });
}

function link(m, where) {
  const [looks, at] = where.map((i) => m.view.identities[i]);
  m.send({ do: "link", looks, at });
}

function pointing(m) {
  const { root, view, n, own, over, scroll } = m;
  const hovered = hovering(root, view.group, (names, alike) => {
    const found = names.map((name) => view.identities.indexOf(name));
    if (alike) return highlight(m, null, found);
    const [row, column] = [found[0] ?? -1, found[1] ?? found[0] ?? -1];
    highlight(m, names.length ? [row, column] : null);
    if (row >= 0) tellRow(m, row);
  });
  // [row, column] under the mouse; -1 for one of them beside the cells, on a name.
  const under = (event) => {
    const frame = over.getBoundingClientRect(), seen = inWindow(m);
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    const j = x < m.left ? -1 : Math.floor((x - seen.x) / m.cell);
    const i = y < m.top ? -1 : Math.floor((y - seen.y) / m.cell);
    return i >= n || j >= n || (i < 0 && j < 0) ? null : [i, j];
  };
  over.onmousemove = (event) => {
    const where = under(event);
    tell(m, where, event.clientX, event.clientY);
    hovered((where || []).filter((i) => i >= 0).map((i) => view.identities[i]));
  };
  over.onmouseleave = () => { hovered([]); tell(m, null); };
  over.onblur = () => tell(m, null);
  over.onclick = (event) => {
    if (event.detail > 1) return;  // the second of two: what the first chose may stand elsewhere now
    own.clicked = under(event);
    if (own.clicked) choose(m, own.clicked);
  };
  over.ondblclick = () => { if (own.clicked && Math.min(...own.clicked) >= 0) link(m, own.clicked); };
  over.onkeydown = (event) => {
    const { key } = event, move = ARROWS[key];
    if (key === "Enter" && m.at) choose(m, m.at);
    else if (key === " " && m.at) link(m, m.at);
    else if (key === "Escape") m.send({ do: "token", token: null });
    else if (key === "+" || key === "-") zoom(m, key === "+" ? 1 : -1);
    else if (move && n) {
      m.at = m.at ? m.at.map((place, i) => clamp(place + move[i], n)) : [0, 0];
      reveal(m, ...m.at);
      highlight(m, null);
      caption(m);
    } else return;
    event.preventDefault();
  };
  scroll.onscroll = () => { tell(m, null); show(m); };
}

// Whom a row's token sees, or how it attends; the group's tree draws it.
function tellRow({ view, n, codes, shares }, i) {
  if (view.kind === "difference") return;
  const weights = [];
  for (let j = 0; j < n; j++) {
    const code = codes[i * n + j];
    if (code === HIDDEN || code >= ONLY_BEFORE) continue;
    weights.push([view.identities[j], shares ? shares[i * n + j] : 1]);
  }
  const detail = { group: view.group, kind: view.kind, name: view.identities[i], weights };
  document.dispatchEvent(new CustomEvent("kbert-row", { detail }));
}

// Zoom about the middle of the window, or about the chosen cell.
function zoom(m, step) {
  const { own, scroll } = m, seen = inWindow(m);
  const middle = m.at || [seen.rows, seen.columns].map(([a, b]) => Math.round((a + b) / 2));
  own.zoom = step === "fit" ? "fit"
    : Math.max(-4, Math.min(8, (own.zoom === "fit" ? 0 : own.zoom) + step));
  place(m);
  scroll.scrollLeft = (middle[1] + 0.5) * m.cell - (seen.width - m.left) / 2;
  scroll.scrollTop = (middle[0] + 0.5) * m.cell - (seen.height - m.top) / 2;
  show(m);
}

function zooming(m) {
  for (const [name, step, text] of [["in", 1, "zoom_in"], ["out", -1, "zoom_out"], ["fit", "fit", "fit"]]) {
    const button = m.find(`button.${name}`);
    button.onclick = () => zoom(m, step);
    button.title = m.view.texts[text];
    button.setAttribute("aria-label", button.title);
  }
  const button = m.find("button.save");
  button.title = m.view.texts.save;
  button.onclick = () => save(pictureOf(m), m.view.kind);
}

// The least of attention that is coloured: done here, within a frame.
function thinning(m) {
  const { view, n, own, codes } = m, { texts } = view;
  const mass = m.find(".mass"), slider = m.find(".mass input"), output = m.find(".mass output");
  let held = null;  // made when the threshold is first moved
  const thin = () => {
    if (m.mayHide && own.mass < 100) held ??= heldByLarger(view, m.shares);
    const all = own.mass >= 100 || !m.mayHide;
    m.held = all ? null : held;
    const kept = paintCells(m.small, m, m.held, own.mass);
    const rows = view.tokens.filter((_, i) => codes[i * n + i] < ONLY_BEFORE).length || 1;
    output.textContent = all ? texts.mass_all : texts.mass_kept.replace("{share}", own.mass)
      .replace("{kept}", kept).replace("{each}", (kept / rows).toFixed(1));
    slider.setAttribute("aria-valuetext", output.textContent);
    m.root.dataset.kept = kept;
  };
  mass.hidden = !m.mayHide;
  mass.querySelector("span").textContent = texts.mass;
  slider.setAttribute("aria-label", texts.mass);
  slider.value = own.mass;
  slider.oninput = () => { own.mass = Number(slider.value); thin(); show(m); };
  thin();
}
