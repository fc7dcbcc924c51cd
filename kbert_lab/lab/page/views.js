// What the page draws, for the drawings of the Lab: tree and prediction as elements, matrices as data.
// As kbert_lab.lab.views does it.

import { LEVELS } from "./colours.js";
import { filled, made } from "./elements.js";
import { each, HIDDEN, trunkOf } from "./rows.js";

const LINE = 600, AROUND = 100;  // pixels of a trunk that surely fits, and beside a branch's tokens
const TINTS = ["#009E73", "#56B4E9", "#D55E00", "#F0E442", "#8A7FBF", "#7F8C8D"];
const UNSEEN = /[\p{Cc}\p{Cf}\p{Z}\p{Cs}]/u, ASCII = /^[\x00-\x7f]*$/;

export const percent = (p) => p > 0.999 ? "> 99.9 %" : `${(100 * p).toFixed(1)} %`;
const span = (names, ...inside) => made("span", { class: names }, ...inside);
const classes = (...names) => names.filter(Boolean).join(" ");

function plain(text) {
  const code = (c) => c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return Array.from(text, (c) => c === " " ? "␣" : UNSEEN.test(c) ? `U+${code(c)}` : c).join("") || "∅";
}

const underlined = (text) => text.split(/(_)/).map((part) =>
  part === "_" ? made("u", { class: "kb-under" }, part) : part);

// full: the row with every triple that could be switched on; row: what is read.
export function treeOf(full, row, codes, { isOn, isNew, token, hard, texts }) {
  const names = each(row, "name"), places = new Map(names.map((name, i) => [name, i]));
  const chosen = places.get(token), used = hard ? "kb-hard-used" : "kb-soft-used";

  function tokenOf({ name, text, joined }, kind) {
    const at = places.get(name), here = at !== undefined, picked = here && at === chosen;
    const unseen = here && codes[chosen * names.length + at] === HIDDEN;
    const handle = { role: "button", tabindex: -1, "aria-pressed": picked, "data-name": name };
    const written = kind === "kb-branch-tok" ? underlined(plain(text)) : [plain(text)];
    return made("span", { ...here && handle, class: classes("kb-tok", kind, joined && "kb-joined",
      picked && "kb-chosen", unseen && "kb-unseen") }, span("kb-text", ...written),
    ...here ? [span("kb-pos", made("b", { class: "kb-soft" }, row.tokens[at].soft), made("s"),
      made("b", { class: "kb-hard" }, at))] : []);
  }

  function branchOf({ triple, name, fields }) {
    const on = isOn(triple), said = `(${triple.join(", ")})`;
    const button = (text, attributes, ...inside) => {
      const label = filled(text, { triple: said });
      return made("span", { tabindex: 0, "aria-label": label, title: label, ...attributes }, ...inside);
    };
    return made("div", { "data-branch": name, title: said,
      class: classes("kb-branch", !on && "kb-removed", on && isNew(triple) && "kb-added") },
    ...fields.map((field) => span("kb-field", ...field.map((own) => tokenOf(own, "kb-branch-tok")))),
    button(on ? texts.off : texts.on, { class: "kb-switch kb-toggle", role: "switch",
      "data-switch": on ? "off" : "on", "aria-checked": on }, made("i"), on ? texts.is_on : texts.is_off),
    ...on ? [button(texts.edit, { class: "kb-switch", role: "button", "data-edit": "",
      "data-tail": triple[2] }, "✎")] : []);
  }

  const nodes = nodesOf(full).map(({ tokens, mention, branches, free }) =>
    made("div", { class: classes("kb-node", mention && "kb-mention", free && "kb-free") },
      made("div", { class: "kb-toks" }, ...tokens.map((own) =>
        tokenOf(own, own.name.startsWith('["special"') ? "kb-special" : "kb-trunk"))),
      ...branches.length ? [made("div", { class: "kb-branches" }, ...branches.map(branchOf))] : []));
  const keys = ["trunk", "mention", "branch"].map((name) =>
    span("kb-key", made("i", { class: `kb-k-${name}` }), texts[name]));
  const settings = ["details", "large"].map((name) => made("span", { class: "kb-setting", tabindex: 0,
    role: "switch", "aria-checked": false, "data-setting": name }, texts[name]));
  return [made("div", { class: `kb-legend ${used}` }, ...keys, ...settings),
    made("div", { class: `kb-tree ${used}`, role: "group", "aria-label": texts.tree }, ...nodes)];
}

// The trunk as mentions and other tokens. The last one with branches is free: it needs no hole in the
// trunk for them, where all fits in a line.
function nodesOf({ tokens, nodes: mentions }) {
  const nodes = [];
  for (const token of tokens.filter(({ branch }) => !branch)) {
    const { anchor } = token, own = mentions[anchor - 1];
    if (!anchor || nodes.at(-1).anchor !== anchor)
      nodes.push({ anchor, tokens: [], mention: Boolean(own), branches: own?.branches ?? [] });
    nodes.at(-1).tokens.push(token);
  }
  const wide = (some) => some.reduce((sum, { text }) =>
    sum + 13 + (ASCII.test(text) ? 9 : 17) * text.length, 0);
  const last = nodes.findLastIndex(({ branches }) => branches.length);
  const trunk = (some) => wide(some.flatMap((node) => node.tokens));
  const branches = (nodes[last]?.branches ?? []).map(({ fields }) => AROUND + wide(fields.flat()));
  if (trunk(nodes.slice(0, last)) + Math.max(trunk(nodes.slice(last)), ...branches) <= LINE)
    Object.assign(nodes[last] ?? {}, { free: true });
  return nodes;
}

// codes: see clauses in rows.js; attention: (N, N) weights, or null for the visible matrix.
export function matrixView(row, codes, attention, { token, cell, visible, matrix }) {
  const names = each(row, "name"), at = (name) => names.includes(name) ? names.indexOf(name) : null;
  const high = attention ? Math.max(...attention, 1e-6) : 1, places = (cell ?? [null]).map(at);
  const level = (share, i) => codes[i] === HIDDEN ? HIDDEN : Math.round(share / high * (LEVELS - 1));
  const of = (f) => row.tokens.map(f);
  return { n: names.length, kind: attention ? "attention" : "visible", categorical: !attention,
    codes: attention ? Uint8Array.from(attention, level) : codes, shares: attention,
    tokens: of(({ text }) => plain(text)), identities: names, status: of(() => "same"), low: 0, high,
    roles: of(({ branch, anchor }) => branch ? 1 : anchor ? 2 : 0), above: 110, branch: [],
    groups: of(({ branch, anchor }) => branch ? row.nodes.length + branch : anchor), group: "page",
    token: at(token), cell: places.includes(null) ? null : places, names: matrix.cells,
    texts: matrix.texts, label: filled(matrix.label, { n: names.length }),
    why: { on: of(({ branch, anchor }) => [branch, anchor]), all: visible === "all", texts: matrix.why,
      branches: row.triples.map((triple) => triple.slice(1).join(" ")),
      mentions: row.nodes.map(({ text }) => text) } };
}

// sides: [title, entities]; what the other side hasn't is ringed.
export function predictionOf(row, sides, { types, texts }) {
  const trunk = trunkOf(row).map((i) => row.tokens[i]), labels = Object.keys(types);

  function lineOf(entities, others, ring) {
    const line = made("div", { class: "kb-line" });
    let into = line, end = 0;
    trunk.forEach((token, i) => {
      if (token.start >= end) into = line;
      if (token.start > (trunk[i - 1]?.end ?? 0)) into.append(span("kb-gap"));
      const own = into === line && entities.find(({ start }) => start === token.start);
      if (own) {
        const same = others.some(({ start, end, label }) =>
          start === own.start && end === own.end && label === own.label);
        const tag = span("kb-tag", made("b", {}, types[own.label]), " ", percent(own.p));
        ({ end } = own);
        into = made("span");
        line.append(made("span", { class: classes("kb-span", !same && ring),
          style: `--tint:${TINTS[labels.indexOf(own.label)]}` }, into, tag));
      }
      into.append(span(classes("kb-char", ASCII.test(token.text) && "kb-latin"),
        span("kb-text", plain(token.text))));
    });
    return line;
  }

  return made("div", { class: "kb-ner" }, ...sides.flatMap(([title, entities], number) => [
    made("div", { class: "kb-side" }, made("b", {}, title), entities.length ? "" : texts.nothing),
    lineOf(entities, sides[1 - number]?.[1] ?? entities, number ? "kb-ring" : "kb-lost")]));
}
