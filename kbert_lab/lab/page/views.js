// What the page draws, for the drawings of the Lab: tree and prediction as HTML, matrices as data. As
// kbert_lab.lab.views does it; every text in it is escaped.

import { HIDDEN } from "./rows.js";

const FINE = 65000;  // steps of a value, see layout.js
const LINE = 600, AROUND = 100;  // pixels of a trunk that surely fits, and beside a branch's tokens
const TINTS = ["#009E73", "#56B4E9", "#D55E00", "#F0E442", "#8A7FBF", "#7F8C8D"];
const UNSEEN = /[\p{Cc}\p{Cf}\p{Z}\p{Cs}]/u;

const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const shown = (text) => escape(plain(text));
export const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
export const percent = (p) => p > 0.999 ? "> 99.9 %" : `${(100 * p).toFixed(1)} %`;

function plain(text) {
  const code = (c) => c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return Array.from(text, (c) => c === " " ? "␣" : UNSEEN.test(c) ? `U+${code(c)}` : c).join("") || "∅";
}

// An element; its attributes are escaped here, and what is in it is HTML.
function html(tag, attributes, ...inside) {
  const given = Object.entries(attributes).map(([name, value]) => ` ${name}="${escape(value)}"`);
  return `<${tag}${given.join("")}>${inside.join("")}</${tag}>`;
}

// full: the row with every triple that could be switched on; row: what is read.
export function treeHtml(full, row, codes, { isOn, isNew, token, hard, texts }) {
  const places = new Map(row.names.map((name, i) => [name, i])), chosen = row.names.indexOf(token);

  function tokenHtml(i, kind) {
    const at = places.get(full.names[i]), here = at !== undefined, picked = here && at === chosen;
    const sees = chosen < 0 || !here || codes[chosen * row.ids.length + at] !== HIDDEN;
    const more = [full.joined[i] && " kb-joined", picked && " kb-chosen", !sees && " kb-unseen"];
    const handle = here && { role: "button", tabindex: -1, "aria-pressed": picked,
      "data-name": full.names[i] };
    const under = kind === "kb-branch-tok" ? html("u", { class: "kb-under" }, "_") : "_";
    const soft = html("b", { class: "kb-soft" }, row.soft[at]), own = html("b", { class: "kb-hard" }, at);
    return html("span", { class: `kb-tok ${kind}${more.filter(Boolean).join("")}`, ...handle },
      html("span", { class: "kb-text" }, shown(full.tokens[i]).replaceAll("_", under)),
      here ? html("span", { class: "kb-pos" }, soft, "<s></s>", own) : "");
  }

  const tokens = (from, size, kind) =>
    Array.from({ length: size }, (_, k) => tokenHtml(from + k, kind)).join("");

  function branchHtml({ triple, name, start, sizes }) {
    const on = isOn(triple), said = `(${triple.join(", ")})`;
    const button = (text, attributes, ...inside) => {
      const label = filled(text, { triple: said });
      return html("span", { tabindex: 0, "aria-label": label, title: label, ...attributes }, ...inside);
    };
    const status = on ? isNew(triple) ? " kb-added" : "" : " kb-removed";
    const fields = sizes.map((size, i) => html("span", { class: "kb-field" },
      tokens(start + (i ? sizes[0] : 0), size, "kb-branch-tok")));
    return html("div", { class: `kb-branch${status}`, "data-branch": name, title: said }, ...fields,
      button(on ? texts.off : texts.on, { class: "kb-switch kb-toggle", role: "switch",
        "data-switch": on ? "off" : "on", "aria-checked": on },
      "<i></i>", escape(on ? texts.is_on : texts.is_off)),
      on ? button(texts.edit, { class: "kb-switch", role: "button", "data-edit": "",
        "data-tail": triple[2] }, "✎") : "");
  }

  const nodes = nodesOf(full).map(({ from, size, own, free }) => {
    const kind = full.names[from].startsWith('["special"') ? "kb-special" : "kb-trunk";
    const below = own?.branches.map(branchHtml) ?? [];
    return html("div", { class: `kb-node${own ? " kb-mention" : ""}${free ? " kb-free" : ""}` },
      html("div", { class: "kb-toks" }, tokens(from, size, kind)),
      below.length ? html("div", { class: "kb-branches" }, ...below) : "");
  });
  const keys = ["trunk", "mention", "branch"].map((name) => key(`kb-k-${name}`, texts[name]));
  const settings = ["details", "large"].map((name) => html("span", { class: "kb-setting",
    role: "switch", tabindex: 0, "aria-checked": false, "data-setting": name }, escape(texts[name])));
  const used = hard ? "kb-hard-used" : "kb-soft-used";
  return html("div", { class: `kb-legend ${used}` }, ...keys, ...settings)
    + html("div", { class: `kb-tree ${used}`, role: "group", "aria-label": texts.tree }, ...nodes);
}

// The trunk as mentions and other tokens. The last one with branches is free: it needs no hole in the
// trunk for them, where all fits in a line.
function nodesOf(row) {
  const nodes = [];
  for (let i = 0; i < row.ids.length; i++) {
    if (row.branch[i]) continue;
    const own = row.nodes[row.anchor[i] - 1], from = i;
    while (own && row.anchor[i + 1] === own.number && !row.branch[i + 1]) i++;
    nodes.push({ from, size: i + 1 - from, own });
  }
  const wide = (from, size) => {
    const text = row.tokens.slice(from, from + size).join("");
    return 13 * size + 9 * text.length + 8 * text.replace(/[\x00-\x7f]/g, "").length;
  };
  const trunk = (some) => some.reduce((sum, { from, size }) => sum + wide(from, size), 0);
  const last = nodes.findLastIndex(({ own }) => own?.branches.length);
  const long = nodes[last]?.own.branches.map(({ start, sizes }) => wide(start, sizes[0] + (sizes[1] ?? 0)));
  const room = LINE - trunk(nodes.slice(0, last));
  if (long && Math.max(trunk(nodes.slice(last)), AROUND + Math.max(...long)) <= room)
    nodes[last].free = true;
  return nodes;
}

const key = (colour, name) =>
  html("span", { class: "kb-key" }, html("i", { class: colour }), escape(name));

// codes: see clauses in rows.js; attention: (N, N) weights, or null for the visible matrix.
export function matrixView(row, codes, attention, { token, cell, visible, matrix }) {
  const high = attention ? Math.max(...attention, 1e-6) : 1, at = (name) => row.names.indexOf(name);
  const cells = attention ? Uint16Array.from(attention, (share, i) =>
    codes[i] === HIDDEN ? FINE + HIDDEN : Math.round(share / high * FINE)) : codes;
  const raw = Array.from(new Uint8Array(cells.buffer), (byte) => String.fromCharCode(byte));
  const chosen = at(token), places = cell?.map(at);
  return { n: row.ids.length, kind: attention ? "attention" : "visible", categorical: !attention,
    cells: btoa(raw.join("")), tokens: row.tokens.map(plain), identities: row.names,
    status: row.ids.map(() => "same"), low: 0, high, above: 110, branch: [], group: "page",
    roles: row.branch.map((branch, i) => branch ? 1 : row.anchor[i] ? 2 : 0),
    groups: row.branch.map((branch, i) => branch ? row.nodes.length + branch : row.anchor[i]),
    token: chosen < 0 ? null : chosen, cell: places?.every((place) => place >= 0) ? places : null,
    names: matrix.cells, texts: matrix.texts, label: filled(matrix.label, { n: row.ids.length }),
    why: { on: row.branch.map((branch, i) => [branch, row.anchor[i]]), all: visible === "all",
      branches: row.branches.map((triple) => triple.slice(1).join(" ")), texts: matrix.why,
      mentions: row.nodes.map(({ start, end }) => row.all.slice(start, end).join("")) } };
}

// sides: [title, entities]; what the other side hasn't is ringed.
export function predictionHtml(row, sides, { types, texts }) {
  const { starts, ends } = row.trunkTokens, colours = Object.keys(types);
  const words = starts.map((start, i) => {
    const text = row.all.slice(start, ends[i]).join(""), latin = /^[\x00-\x7f]*$/.test(text);
    return html("span", { class: latin ? "kb-char kb-latin" : "kb-char" },
      html("span", { class: "kb-text" }, shown(text)));
  });
  const gap = (i) => starts[i] > (ends[i - 1] ?? 0) ? html("span", { class: "kb-gap" }) : "";

  function entityHtml({ label, p }, inside, ring) {
    const style = `--tint:${TINTS[colours.indexOf(label)]}`, name = html("b", {}, escape(types[label]));
    return html("span", { class: `kb-span${ring}`, style }, html("span", {}, inside),
      html("span", { class: "kb-tag" }, name, " ", percent(p)));
  }

  function lineHtml(entities, others, ring) {
    const same = (one) => others.some(({ start, end, label }) =>
      start === one.start && end === one.end && label === one.label);
    let line = "";
    for (let i = 0, next; i < words.length; i = next) {
      const entity = entities.find(({ start }) => start === starts[i]);
      next = entity ? ends.lastIndexOf(entity.end) + 1 : i + 1;
      const inside = words.slice(i, next).map((word, k) => (k ? gap(i + k) : "") + word).join("");
      line += gap(i) + (entity ? entityHtml(entity, inside, same(entity) ? "" : ring) : inside);
    }
    return html("div", { class: "kb-line" }, line);
  }

  return html("div", { class: "kb-ner" }, ...sides.map(([title, entities], number) =>
    html("div", { class: "kb-side" }, html("b", {}, escape(title)),
      entities.length ? "" : escape(texts.nothing))
    + lineHtml(entities, sides[1 - number]?.[1] ?? entities, number ? " kb-ring" : " kb-lost")));
}
