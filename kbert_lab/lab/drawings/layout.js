// Where the cells of a matrix stand, and what they hold: numbers alone, without a page.

import { bytes, LEVELS } from "./colours.js";

export const ONLY_BEFORE = 253, ONLY_AFTER = 254;  // codes of cells; more in matrix.py
const FINE = 65000;  // steps of a value; above them kinds of cell
const HEIGHT = 640;  // of the window on the matrix, at most
const BELOW = 26;  // what stands below the cells, and is to be in sight
const LARGEST = 32, ZOOM = 1.4;

// Codes, and shares where there are any; packed, categories come as bytes, values in 16 bit.
export function unpacked({ n, cells, categorical, low, high, ...given }) {
  if (!cells) return given;
  const raw = bytes(cells);
  if (categorical) return { codes: raw, shares: null };
  const fine = new Uint16Array(raw.buffer), codes = new Uint8Array(n * n);
  const shares = new Float32Array(n * n);
  for (let i = 0; i < n * n; i++) {
    codes[i] = fine[i] > FINE ? fine[i] - FINE : Math.round(fine[i] / FINE * (LEVELS - 1));
    shares[i] = fine[i] > FINE ? 0 : low + fine[i] / FINE * (high - low);
  }
  return { codes, shares };
}

// Per cell how many whole per cent of its row's mass the larger cells hold; of equal cells
// the first counts as larger. The fewest cells that hold p per cent are those below p.
export function heldByLarger({ n, high }, shares) {
  const held = new Uint8Array(n * n), order = new Uint32Array(n);
  for (let i = 0; i < n * n; i += n) {
    let whole = 0, sum = 0;
    for (let j = 0; j < n; j++) {
      const fine = Math.round(shares[i + j] / high * FINE);
      order[j] = (FINE - fine) * 65536 + j;  // sorts by share, then by place
      whole += fine;
    }
    for (const key of order.sort()) {
      const j = key % 65536;
      held[i + j] = Math.floor(100 * sum / (whole || 1));
      sum += FINE - (key - j) / 65536;
    }
  }
  return held;
}

// The side of a cell, and the margins for names, in pixels.
// widest: of the names; room: of the drawing, and of the window that it is to be seen in.
export function fitted(n, widest, room, zoom) {
  const margin = Math.min(96 * room.letters, Math.ceil(widest) + 16);
  const wide = Math.max(160, room.width - margin - 4);
  const tall = Math.min(HEIGHT, Math.max(320, room.height - room.above - BELOW)) - margin - 4;
  const fit = Math.min(27 * room.letters, wide / n, Math.max(tall / n, 3));
  const cell = zoom === "fit" ? Math.min(fit, (HEIGHT - margin - 4) / n)
    : Math.min(LARGEST, Math.max(3, fit) * ZOOM ** zoom);
  return { cell: cell > 8 ? Math.floor(cell) : cell, left: margin, top: margin };
}

// Where there is no room for every token: whole mentions and branches, [middle, name].
export function runs({ n, tokens, groups }, size) {
  const found = [];
  let free = -1;
  for (let i = 0; i < n; ) {
    let end = i + 1;
    while (groups[i] && end < n && groups[end] === groups[i]) end++;
    const middle = (i + end) / 2;
    if ((groups[i] || i === 0 || i === n - 1) && middle * size - 5 >= free) {
      const text = tokens.slice(i, end).reduce((all, next) =>
        all + (/[\w]$/.test(all) && /^[\w]/.test(next) ? " " : "") + next);
      found.push([middle, short(text)]);
      free = middle * size + 5;
    }
    i = end;
  }
  return found;
}

export function label({ tokens, status }, i, cell) {
  const mark = cell < 16 ? "" : { added: "+ ", removed: "− ", same: "" }[status[i]];
  return mark + short(tokens[i]);
}

function short(text) { return text.length > 12 ? `${text.slice(0, 11)}…` : text; }

// Places as runs of neighbours: first and last.
export function together(places) {
  const found = [];
  for (const i of places) {
    const run = found.at(-1);
    if (run?.[1] === i - 1) run[1] = i; else found.push([i, i]);
  }
  return found;
}

export function clamp(value, n) { return Math.max(0, Math.min(n - 1, value)); }

export function checksum(codes) {
  let sum = 7;
  for (const code of codes) sum = (sum * 31 + code) >>> 0;
  return sum.toString(16);
}
