// What the page draws, for the drawings of the Lab: the tree and the prediction as HTML, matrices as
// data. As kbert_lab.lab.views does it; every text in it is escaped.

import { HIDDEN } from "./rows.js";

const FINE = 65000;  // steps of a value, see layout.js
const LINE = 600, AROUND = 100;  // pixels of a trunk that surely fits, and beside a branch's tokens
const TINTS = ["#009E73", "#56B4E9", "#D55E00", "#F0E442", "#8A7FBF", "#7F8C8D"];

export const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
export const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const shown = (text) => escape(plain(text));
const plain = (text) => Array.from(text, (c) => c === " " ? "␣" : /[\p{Cc}\p{Cf}\p{Z}\p{Cs}]/u.test(c)
  ? `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}` : c).join("") || "∅";

// full: the row with every triple that could be switched on; row: what is read.
export function treeHtml(full, row, codes, { isOn, isNew, token, hard, texts }) {
  const places = new Map(row.names.map((name, i) => [name, i])), chosen = row.names.indexOf(token);
  const one = (i, kind) => {
    const at = places.get(full.names[i]), under = kind === "kb-branch-tok";
    const sees = chosen < 0 || at === undefined || codes[chosen * row.ids.length + at] !== HIDDEN;
    const more = (full.joined[i] ? " kb-joined" : "") + (at === chosen && chosen >= 0 ? " kb-chosen" : "")
      + (sees ? "" : " kb-unseen");
    const handle = at === undefined ? "" : ` role="button" tabindex="-1" aria-pressed="${at === chosen}"
      data-name="${escape(full.names[i])}"`;
    const text = shown(full.tokens[i]);
    return `<span class="kb-tok ${kind}${more}"${handle}><span class="kb-text">${under
      ? text.replaceAll("_", '<u class="kb-under">_</u>') : text}</span>${at === undefined ? ""
      : `<span class="kb-pos"><b class="kb-soft">${row.soft[at]}</b><s></s><b class="kb-hard">${at}</b></span>`}</span>`;
  };
  const run = (from, size, kind) => Array.from({ length: size }, (_, k) => one(from + k, kind)).join("");
  const branch = ({ triple, name, start, sizes }) => {
    const on = isOn(triple), said = `(${triple.join(", ")})`, state = on ? isNew(triple) ? " kb-added" : "" : " kb-removed";
    let at = start;
    const fields = sizes.map((size) => `<span class="kb-field">${run((at += size) - size, size, "kb-branch-tok")}</span>`);
    const turn = escape(filled(on ? texts.off : texts.on, { triple: said }));
    const edit = escape(filled(texts.edit, { triple: said }));
    return `<div class="kb-branch${state}" data-branch="${escape(name)}" title="${escape(said)}">${fields.join("")}
      <span class="kb-switch kb-toggle" role="switch" tabindex="0" data-switch="${on ? "off" : "on"}"
      aria-checked="${on}" aria-label="${turn}" title="${turn}"><i></i>${escape(on ? texts.is_on : texts.is_off)}</span>
      ${on ? `<span class="kb-switch" role="button" tabindex="0" aria-label="${edit}" title="${edit}" data-edit=""
      data-tail="${escape(triple[2])}">✎</span>` : ""}</div>`;
  };
  const nodes = [];
  for (let i = 0; i < full.ids.length; i++) {
    if (full.branch[i]) continue;
    const own = full.nodes[full.anchor[i] - 1], from = i;
    while (own && full.anchor[i + 1] === own.number && !full.branch[i + 1]) i++;
    nodes.push({ from, size: i + 1 - from, own, free: false });
  }
  markFree(nodes, full.tokens);
  const html = nodes.map(({ from, size, own, free }) => {
    const below = own?.branches.map(branch).join("");
    return `<div class="kb-node${own ? " kb-mention" : ""}${free ? " kb-free" : ""}"><div class="kb-toks">${run(from, size,
      full.names[from].includes("special") ? "kb-special" : "kb-trunk")}</div>${below
      ? `<div class="kb-branches">${below}</div>` : ""}</div>`;
  }).join("");
  const keys = ["trunk", "mention", "branch"].map((name) =>
    `<span class="kb-key"><i class="kb-k-${name}"></i>${escape(texts[name])}</span>`).join("");
  const settings = ["details", "large"].map((name) => `<span class="kb-setting" role="switch" tabindex="0"
    aria-checked="false" data-setting="${name}">${escape(texts[name])}</span>`).join("");
  const used = hard ? "kb-hard-used" : "kb-soft-used";
  return `<div class="kb-legend ${used}">${keys}${settings}</div><div class="kb-tree ${used}" role="group"
    aria-label="${escape(texts.tree)}">${html}</div>`;
}

// Which nodes need no hole in the trunk for their branches: in a trunk of one line, where those after
// them have none. As _free in tree.py.
function markFree(nodes, tokens) {
  const wide = (from, size) => tokens.slice(from, from + size).reduce((sum, text) =>
    sum + 13 + Array.from(text, (c) => c < "\x80" ? 9 : 17).reduce((a, b) => a + b, 0), 0);
  let room = LINE - nodes.reduce((sum, { from, size }) => sum + wide(from, size), 0);
  if (room < 0) return;
  for (const node of nodes.toReversed()) {
    room += wide(node.from, node.size);
    if (!node.own?.branches.length) continue;
    const long = node.own.branches.map(({ start, sizes }) => wide(start, sizes.reduce((a, b) => a + b, 0)) + AROUND);
    node.free = Math.max(...long) <= room;
    room = 0;
  }
}

// codes: see clauses in rows.js; attention: (N, N) weights, or null for the visible matrix.
export function matrixView(row, codes, attention, { token, cell, visible, matrix }) {
  const n = row.ids.length, high = attention ? Math.max(...attention, 1e-6) : 1;
  const cells = attention ? Uint16Array.from(attention, (share, i) =>
    codes[i] === HIDDEN ? FINE + HIDDEN : Math.round(share / high * FINE)) : codes;
  const raw = Array.from(new Uint8Array(cells.buffer), (byte) => String.fromCharCode(byte)).join("");
  const at = (name) => row.names.indexOf(name), places = cell?.map(at);
  return { n, kind: attention ? "attention" : "visible", categorical: !attention, cells: btoa(raw),
    tokens: row.tokens.map(plain), identities: row.names, status: row.ids.map(() => "same"),
    roles: row.branch.map((branch, i) => branch ? 1 : row.anchor[i] ? 2 : 0),
    groups: row.branch.map((branch, i) => branch ? row.nodes.length + branch : row.anchor[i]),
    low: 0, high, above: 110, token: at(token) < 0 ? null : at(token), branch: [], group: "page",
    cell: places?.every((place) => place >= 0) ? places : null,
    names: matrix.cells, texts: matrix.texts, label: filled(matrix.label, { n }),
    why: { on: row.branch.map((branch, i) => [branch, row.anchor[i]]), all: visible === "all",
      branches: row.branches.map((triple) => triple.slice(1).join(" ")), texts: matrix.why,
      mentions: row.nodes.map(({ start, end }) => row.all.slice(start, end).join("")) } };
}

// What the colours of a visible matrix mean.
export function keysHtml(codes, names) {
  return [...new Set(codes)].sort((one, other) => one - other).map((code) =>
    `<span class="kb-key"><i class="kb-m-${code}"></i>${escape(names[code])}</span>`).join("");
}

export const percent = (p) => p > 0.999 ? "> 99.9 %" : `${(100 * p).toFixed(1)} %`;

// sides: [title, entities]; what the first of two hasn't is ringed.
export function predictionHtml(row, sides, { types, texts }) {
  const labels = Object.keys(types), { starts, ends } = row.trunkTokens;
  return `<div class="kb-ner">${sides.map(([title, entities], number) => {
    let html = "", end = 0;
    for (let i = 0; i < starts.length; i++) {
      const span = entities.find((one) => one.start === starts[i]);
      const other = span && sides[1 - number]?.[1].find((one) => one.start === span.start && one.end === span.end);
      const ring = span && sides.length > 1 && other?.label !== span.label ? number ? " kb-ring" : " kb-lost" : "";
      if (row.all.slice(end, starts[i]).length) html += '<span class="kb-gap"></span>';
      if (span) html += `<span class="kb-span${ring}" style="--tint:${TINTS[labels.indexOf(span.label)]}"><span>`;
      const text = row.all.slice(starts[i], ends[i]).join("");
      html += `<span class="kb-char${/^[\x00-\x7f]*$/.test(text) ? " kb-latin" : ""}"><span class="kb-text">${shown(text)}</span></span>`;
      const inside = entities.find((one) => one.start <= starts[i] && one.end > starts[i]);
      if (inside && inside.end <= ends[i]) html += `</span><span class="kb-tag"><b>${escape(types[inside.label])}</b>
        ${percent(inside.p)}</span></span>`;
      end = ends[i];
    }
    return `<div class="kb-side"><b>${escape(title)}</b>${entities.length ? "" : escape(texts.nothing)}</div><div class="kb-line">${html}</div>`;
  }).join("")}</div>`;
}
