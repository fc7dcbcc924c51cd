// A matrix on its two canvases: cells with their names; over them what is chosen and under the
// mouse. m is the matrix as matrix.js keeps it; seen is the part of it in the window.

import { ends, HIDDEN, pixel, pixels, rgb, scaleColours } from "./colours.js";
import { FONT } from "./elements.js";
import { label, ONLY_AFTER, ONLY_BEFORE, runs, together } from "./layout.js";
import { recording } from "./saved.js";

const CATEGORY = ["#7fb2d2", "#e69f00", "#009e73", "#98a2aa", "#d55e00", "#0072b2"];
const KEPT = 6, BLOCKED = 7, OPENED = 8, PART_BLOCKED = 9, PART_OPENED = 10;
const BRANCH = "#e69f00", TRUNK = "#0072b2";
const STROKE = 6;  // pixels from one to the next, where cells are hidden

// One colour a code.
export function palette({ kind, categorical }, dark) {
  const table = scaleColours(kind, dark);
  if (categorical) {
    CATEGORY.forEach((c, i) => { table[i] = rgb(c); });
    table[0] = dark ? [52, 112, 150] : rgb("#8dbcd8");
    table[KEPT] = dark ? [62, 73, 82] : [222, 228, 233];
    table[BLOCKED] = table[PART_BLOCKED] = dark ? [74, 44, 30] : [250, 222, 203];
    table[OPENED] = table[PART_OPENED] = dark ? [122, 115, 24] : [243, 233, 107];
  }
  table[ONLY_AFTER] = dark ? [128, 78, 105] : [226, 180, 206];
  table[ONLY_BEFORE] = dark ? [80, 58, 71] : [243, 228, 237];
  return table;
}

// All cells, a pixel each, on a small canvas; how many hold a value that counts.
// held: see layout.js, where only cells that hold the first `mass` per cent are coloured.
export function paintCells(small, { codes, colours, theme }, held, mass) {
  const { width: n } = small, image = new ImageData(n, n);
  const points = new Uint32Array(image.data.buffer);
  const painted = pixels(colours), blank = pixels([pixel(theme.page)])[0];
  let kept = 0;
  for (let i = 0; i < n * n; i++) {
    const code = codes[i];
    if (code === HIDDEN) continue;
    const counts = !held || held[i] < mass;
    points[i] = counts || code >= ONLY_BEFORE ? painted[code] : blank;  // seen, not coloured
    if (counts && code < ONLY_BEFORE) kept++;
  }
  small.getContext("2d").putImageData(image, 0, 0);
  return kept;
}

export function paintWindow(ctx, m, seen) {
  const { n, cell, left, top, view } = m;
  ctx.clearRect(0, 0, seen.width, seen.height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, seen.width - left, seen.height - top);
  ctx.clip();
  hatch(ctx, m, seen);
  ctx.imageSmoothingEnabled = cell < 1;
  ctx.drawImage(m.small, seen.x, seen.y, n * cell, n * cell);
  if (cell >= 7) lines(ctx, m, seen);
  if (cell >= 11) eachCell(m, seen, [ONLY_BEFORE, ONLY_AFTER], (code, x, y) => {
    Object.assign(ctx, { font: "11px sans-serif", textAlign: "center", textBaseline: "middle",
      fillStyle: m.theme.ink });
    ctx.fillText(code === ONLY_AFTER ? "+" : "−", x, y);
  });
  if (cell >= 5 && view.categorical)
    eachCell(m, seen, [BLOCKED, PART_OPENED], (code, x, y) => crossed(ctx, m, code, x, y));
  ctx.restore();
  for (const across of [false, true]) names(ctx, m, seen, across);
}

// The middles of the cells in the window that have one of some codes.
function eachCell({ n, cell, codes }, seen, [first, last], paint) {
  for (let i = seen.rows[0]; i <= seen.rows[1]; i++) {
    for (let j = seen.columns[0]; j <= seen.columns[1]; j++) {
      const code = codes[i * n + j];
      if (code >= first && code <= last)
        paint(code, seen.x + (j + 0.5) * cell, seen.y + (i + 0.5) * cell);
    }
  }
}

// Strokes through all that no cell covers, as far as they are in the window.
function hatch(ctx, { n, cell, left, top, theme }, seen) {
  const side = n * cell, [x, y] = [seen.x, seen.y], first = Math.max(0, left - x + top - y);
  const last = Math.min(2 * side, seen.width - x + seen.height - y);
  ctx.save();
  Object.assign(ctx, { strokeStyle: theme.ink, globalAlpha: theme.dark ? 0.3 : 0.24, lineWidth: 1 });
  ctx.beginPath();
  for (let at = STROKE * Math.ceil(first / STROKE); at < last; at += STROKE) {
    const [from, to] = [Math.max(0, at - side), Math.min(side, at)];
    ctx.moveTo(x + from, y + at - from);
    ctx.lineTo(x + to, y + at - to);
  }
  ctx.stroke();
  ctx.restore();
}

function lines(ctx, { n, cell, left, top, theme }, seen) {
  ctx.strokeStyle = theme.page;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let i = seen.rows[0]; i <= seen.rows[1] + 1; i++) {
    const y = Math.round(seen.y + i * cell) + 0.5;
    ctx.moveTo(left, y); ctx.lineTo(seen.x + n * cell, y);
  }
  for (let j = seen.columns[0]; j <= seen.columns[1] + 1; j++) {
    const x = Math.round(seen.x + j * cell) + 0.5;
    ctx.moveTo(x, top); ctx.lineTo(x, seen.y + n * cell);
  }
  ctx.stroke();
}

// What interventions changed: a cross where blocked, a ring where opened; half of it, or a dot,
// where only in some layers.
function crossed(ctx, { cell, theme }, code, x, y) {
  const reach = cell * 0.27, blocked = code === BLOCKED || code === PART_BLOCKED;
  ctx.lineWidth = Math.max(1, cell / 11);
  ctx.strokeStyle = ctx.fillStyle = blocked ? (theme.dark ? "#ff9457" : "#b34a00") : theme.ink;
  ctx.beginPath();
  if (code === OPENED) ctx.arc(x, y, reach, 0, 2 * Math.PI);
  if (code === PART_OPENED) ctx.arc(x, y, Math.max(1, reach / 2.2), 0, 2 * Math.PI);
  if (blocked) { ctx.moveTo(x - reach, y + reach); ctx.lineTo(x + reach, y - reach); }
  if (code === BLOCKED) { ctx.moveTo(x - reach, y - reach); ctx.lineTo(x + reach, y + reach); }
  if (code === PART_OPENED) ctx.fill(); else ctx.stroke();
}

// Names and roles of the rows, or of the columns; each keeps to its margin.
function names(ctx, m, seen, across) {
  const { n, cell, left, top, view, letters } = m, roomy = cell >= 10;
  const [first, last] = across ? seen.columns : seen.rows, start = across ? seen.x : seen.y;
  const named = roomy ? Array.from({ length: n }, (_, i) => [i + 0.5, label(view, i, cell)])
    : runs(view, cell);
  const size = Math.max(1, cell - (cell > 6 ? 1 : 0));
  ctx.save();
  ctx.beginPath();
  if (across) ctx.rect(left, 0, seen.width - left, top);
  else ctx.rect(0, top, left, seen.height - top);
  ctx.clip();
  ctx.font = `${roomy ? Math.min(13 * letters, cell - 1) : 10}px ${FONT}`;
  for (let i = first; i <= last; i++) {
    ctx.fillStyle = view.roles[i] === 1 ? BRANCH : TRUNK;
    ctx.globalAlpha = view.roles[i] === 0 ? 0.45 : 1;
    if (across) ctx.fillRect(start + i * cell, top - 5, size, 3);
    else ctx.fillRect(left - 5, start + i * cell, 3, size);
  }
  ctx.globalAlpha = 1;
  ctx.fillStyle = m.theme.ink;
  for (const [place, text] of named) {
    if (place < first - 1 || place > last + 2) continue;
    if (across) nameColumn(ctx, text, start + place * cell, top);
    else {
      Object.assign(ctx, { textAlign: "right", textBaseline: "middle" });
      ctx.fillText(text, left - 9, start + place * cell, left - 10);
    }
  }
  ctx.restore();
}

function nameColumn(ctx, text, x, top) {
  const one = [...text].length === 1;  // stands upright
  ctx.save();
  ctx.translate(x, top - 9);
  if (!one) ctx.rotate(-Math.PI / 2);
  ctx.textAlign = one ? "center" : "left";
  ctx.textBaseline = one ? "bottom" : "middle";
  ctx.fillText(text, 0, one ? 1 : 0, top - 10);
  ctx.restore();
}

// The kinds of cell that occur, [code, name].
export function kinds({ view, codes }) {
  return Object.entries(view.names).map(([code, name]) => [Number(code), name])
    .filter(([code]) => (view.categorical || code >= ONLY_BEFORE) && codes.includes(code));
}

// The whole matrix as an SVG picture: light, with what its colours stand for.
export function pictureOf(m) {
  const { n, cell, left, top, view } = m, side = n * cell, small = document.createElement("canvas");
  const page = { ink: "#222222", page: "#ffffff", dark: false };
  const keys = kinds(m);
  const height = top + side + 60 + 18 * keys.length, ctx = recording(Math.max(left + side, 300) + 4, height);
  small.width = small.height = n;
  const light = { ...m, small, theme: page, colours: palette(view, false) };
  paintCells(small, light, m.held, m.own.mass);
  paintWindow(ctx, light, { x: left, y: top, width: left + side, height: top + side,
    rows: [0, n - 1], columns: [0, n - 1] });
  Object.assign(ctx, { font: `11px ${FONT}`, textBaseline: "middle", fillStyle: page.ink });
  ctx.fillText(view.texts.axes, left, top + side + 14);
  let y = top + side + 36;
  if (!view.categorical) {
    scaleColours(view.kind, false).forEach((colour, i) => {
      ctx.fillStyle = `rgb(${colour})`;
      ctx.fillRect(left + i * 0.6, y - 6, 1, 10);
    });
    ctx.fillStyle = page.ink;
    ctx.fillText(ends(view).join(" … "), left + 160, y);
    y += 18;
  }
  for (const [code, name] of keys) {
    if (code === HIDDEN) hatch(ctx, { n: 2, cell: 6, left, top: y - 6, theme: page },
      { x: left, y: y - 6, width: left + 12, height: y + 6 });
    else {
      ctx.fillStyle = `rgb(${light.colours[code]})`;
      ctx.fillRect(left, y - 6, 12, 12);
      ctx.fillStyle = page.ink;
    }
    ctx.fillText(name, left + 18, y);
    y += 18;
  }
  return ctx.svg;
}

// What is chosen, and what is under the mouse: a row and a column, or tokens that are alike.
export function paintMarks(ctx, m, seen, hover, alike) {
  const { view, theme } = m, { ink } = theme;
  ctx.clearRect(0, 0, seen.width, seen.height);
  for (const [first, last] of together(view.branch)) edges(ctx, m, seen, first, last, BRANCH);
  if (view.cell) {  // who looks: its row; at whom: that one's column
    edges(ctx, m, seen, view.cell[0], view.cell[0], ink, true, false);
    edges(ctx, m, seen, view.cell[1], view.cell[1], ink, false, true);
  } else if (view.token !== null) edges(ctx, m, seen, view.token, view.token, ink);
  if (hover) {
    band(ctx, m, seen, hover[0], true, false);
    band(ctx, m, seen, hover[1], false, true);
    if (hover[0] >= 0 && hover[1] >= 0 && hover[0] !== hover[1]) box(ctx, m, seen, hover, 1.5);
  }
  for (const i of alike) band(ctx, m, seen, i, true, true);
  if (m.at) box(ctx, m, seen, m.at, 3);
}

// A row and a column, their names included.
function band(ctx, { n, cell, left, top, theme }, seen, i, row, column) {
  if (i < 0) return;
  const x = seen.x + i * cell, y = seen.y + i * cell, size = Math.max(cell, 2);
  ctx.fillStyle = theme.ink;
  ctx.globalAlpha = 0.1;
  if (row && y + size > top) ctx.fillRect(0, Math.max(y, top), seen.x + n * cell, size);
  if (column && x + size > left) ctx.fillRect(Math.max(x, left), 0, size, seen.y + n * cell);
  ctx.globalAlpha = 1;
}

// Frames around the rows and the columns of neighbouring tokens; the names too, where there
// is room for one a token.
function edges(ctx, m, seen, first, last, colour, row = true, column = true) {
  const { n, cell, left, top, theme } = m, roomy = cell >= 7;
  const size = Math.max(cell * (last - first + 1), 3);
  const x = seen.x + first * cell, y = seen.y + first * cell;
  const from = [roomy ? 1 : left - 5, roomy ? 1 : top - 5];
  for (const [paint, width] of roomy ? [[theme.page, 4], [colour, 2]] : [[colour, 1.5]]) {
    Object.assign(ctx, { strokeStyle: paint, lineWidth: width });
    if (row && y >= top - 1) ctx.strokeRect(from[0], y, seen.x + n * cell - from[0], size);
    if (column && x >= left - 1) ctx.strokeRect(x, from[1], size, seen.y + n * cell - from[1]);
  }
}

function box(ctx, { cell, left, top, theme }, seen, [i, j], width) {
  const size = Math.max(cell, 5), x = seen.x + j * cell, y = seen.y + i * cell;
  if (x < left - 1 || y < top - 1) return;
  for (const [paint, wide] of [[theme.page, width + 2], [theme.ink, width]]) {
    Object.assign(ctx, { strokeStyle: paint, lineWidth: wide });
    ctx.strokeRect(x, y, size, size);
  }
}
