// Names: how they are compared, and which of them a text holds. As kbert_core.knowledge does it in
// names.py, surface_forms.py, mentions.py and strategies.py, for the rules of the shipped models; a
// test compares the two. Places are numbers of characters, as in Python, and not of UTF-16 units.

import { ALIASES, APOSTROPHES, DASHES, NO_PLURALS, SIMPLIFIED } from "./tables.js";

const FOLDS = ["dashes", "spaces", "script", "case", "width"];
const WHITE = /[^\S\ufeff]|[\x1c-\x1f\x85]/;
const WORD = /[\p{L}\p{N}\p{M}_]/u;
const NO_SPACES = new RegExp(["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar",
  "Bopomofo", "Hangul", "Tibetan", "Yi"].map((script) => `\\p{Script=${script}}`).join("|") + "|ー", "u");
const EXTENDS = /^[\p{M}\u1160-\u11ff]/u;
const SENSE = /(?!(?<=[A-Za-z0-9])[(（][\x20-\x7e]*[)）]$)\s*[(（][^()（）]*[)）]$/;
const PLURAL_ENDING = /^[A-Za-z]{3}((?<=[sxzSXZ]|[hH])es|(?<![sS])s)/;
const DASH = DASHES.map((c) => `\\u{${c.codePointAt(0).toString(16)}}`).join("");
const RANGE = new RegExp(`(?<=[0-9])[${DASH}](?=[0-9])`, "gu");
const dashes = new Set(DASHES), apostrophes = new Set(APOSTROPHES), noPlurals = new Set(NO_PLURALS);
const simplified = new Map(SIMPLIFIED);

export const idOf = (triple) => triple.join("\t");
export const isWhite = (c) => WHITE.test(c);
export const extendsBefore = cached((c) => EXTENDS.test(c.normalize("NFKD")));
export const isWord = cached((c) => WORD.test(c) && !NO_SPACES.test(c));

export function cached(f) {
  const known = new Map();
  return (one) => {
    if (!known.has(one)) known.set(one, f(one));
    return known.get(one);
  };
}

const casefold = (text) =>
  Array.from(text, (c) => c === "ı" ? c : c.toUpperCase().toLowerCase()).join("");
const fold = cached((chunk) => Array.from(casefold(chunk.normalize("NFKC")).normalize("NFKC"),
  (c) => isWhite(c) ? " " : c));

// The characters of a text, each with the accents after it: [text, start, end].
export function clusters(text) {
  const all = [...text], found = [];
  for (let start = 0, end; start < all.length; start = end) {
    end = start + 1;
    while (end < all.length && extendsBefore(all[end])) end++;
    found.push([all.slice(start, end).join(""), start, end]);
  }
  return found;
}

export function normalise(name) {
  return clusters(name).flatMap(([chunk]) => fold(chunk)).join("").replace(/ +/g, " ").trim();
}

// A text to look names up in: [character, start, end], without dashes and spaces.
function loosen(text) {
  return clusters(text.replaceAll("´", "'")).flatMap(([chunk, start, end]) =>
    fold(chunk).map((c) => [apostrophes.has(c) ? "'" : c === " " || dashes.has(c) ? ""
      : c < " " ? "\x02" : simplified.get(c) ?? c, start, end])).filter(([c]) => c);
}

const keyOf = (name) => loosen(name).map(([c]) => c).join("");

function withoutSense(name) {
  return /[)）]$/.test(name) && name.replace(SENSE, "") || name;
}

function singulars(name) {
  if (!name.endsWith("s") || noPlurals.has(name.split(/[^A-Za-z]/).at(-1).toLowerCase())) return [];
  const found = [];
  if (name.endsWith("ies")) found.push(name.slice(0, -3) + "y");
  else if (/(?:[sxz]|[cs]h)es$/.test(name)) found.push(name.slice(0, -2));
  if (!/(?:ss|us|is)$/.test(name)) found.push(name.slice(0, -1));
  return found.filter((one) => /[A-Za-z]{3}$/.test(one));
}

function keysOf(name) {
  const base = withoutSense(name), forms = [name, base, ...singulars(base)];
  if (/[A-Za-z][^\W\d_aeiou]y$/.test(base)) forms.push(base.slice(0, -1) + "ies");
  return [...new Set(forms.map(keyOf))].filter(Boolean);
}

// [alias, entity] of a triple that says another name; undefined: it says none.
const relationKey = cached((relation) => normalise(relation).replace(/[\s_-]+/g, ""));
function aliasIn([head, relation, tail]) {
  const [ofHead, ofTail] = ALIASES, compared = relationKey(relation);
  return ofHead.includes(compared) ? [tail, head]
    : ofTail.includes(compared) ? [head, tail] : undefined;
}

// The rules that are needed to read a name in a text; null: it isn't this name.
function agreement(span, name, rules) {
  const base = withoutSense(name), names = [[name, []]];
  if (rules.has("sense") && base !== name) names.push([base, ["sense"]]);
  for (const [named, sense] of names) {
    for (const [one, other, number] of inOneNumber(span, named, rules)) {
      const folds = folded(one, other, rules);
      if (folds) return [...folds, ...number, ...sense];
    }
  }
  return null;
}

function inOneNumber(span, name, rules) {
  const found = [[span, name, []]];
  const isUpper = (text) => /\p{Lu}/u.test(text) && text === text.toUpperCase();
  if (!rules.has("plural") || !/[A-Za-z]$/.test(span)) return found;
  for (const [singular, written] of [...singulars(span).map((one) => [one, name]),
    ...singulars(name).map((one) => [one, span])]) {
    const acronym = [...written].length <= 4 && isUpper(written);
    if (isUpper(singular) || !acronym) found.push([singular, written, ["plural"]]);
  }
  return found;
}

function folded(span, name, rules) {
  if (span === name) return [];
  let taken = FOLDS.filter((rule) => rules.has(rule));
  if (!same(span, name, taken)) {
    taken = taken.filter((rule) => rule !== "spaces");
    if (!same(span, name, taken)) return null;
  }
  for (const rule of taken) {
    const fewer = taken.filter((other) => other !== rule);
    if (same(span, name, fewer)) taken = fewer;
  }
  return taken;
}

function same(one, other, rules) {
  return (rules.includes("dashes") ? ["", " "] : [""]).some((dash) =>
    canonical(one, rules, dash) === canonical(other, rules, dash));
}

function canonical(name, rules, dash) {
  name = name.normalize(rules.includes("width") ? "NFKC" : "NFC");
  if (rules.includes("case")) name = casefold(name);
  if (rules.includes("script")) name = Array.from(name, (c) => simplified.get(c) ?? c).join("");
  if (rules.includes("dashes")) name = Array.from(name.replace(RANGE, "\0"),
    (c) => dashes.has(c) ? dash : apostrophes.has(c) ? "'" : c).join("");
  name = name.trim().replace(/\s+/g, (run) => /^[ \t\u00a0\u3000]$/.test(run) ? " " : "\n");
  if (rules.includes("spaces") && name.includes(" ")) {
    const all = [...name], digit = (c) => /\p{Nd}/u.test(c);
    name = all.filter((c, i) => c !== " " || (isWord(all[i - 1]) && isWord(all[i + 1])
      && digit(all[i - 1]) === digit(all[i + 1]))).join("");
  }
  return name.replaceAll("\n", " ");
}

const spelling = (rules) => rules.filter((rule) => rule !== "sense" && rule !== "alias").length;
const nearer = (one, other) => spelling(one) - spelling(other) || one.length - other.length;

export class Graph {
  // triples: [head, relation, tail]; off: ids of those that are switched off.
  constructor(triples, rules, off = new Set()) {
    Object.assign(this, { triples, rules: new Set(rules), off, meant: new Map(), most: 0 });
    this.entities = new Map();
    for (const triple of triples) {
      const entity = normalise(triple[0]);
      if (entity) this.entities.set(entity, [...this.entities.get(entity) ?? [], triple]);
    }
    const add = (name, entity) => {
      for (const key of keysOf(name)) {
        this.meant.set(key, this.meant.get(key) ?? new Set());
        this.meant.get(key).add(entity);
        this.most = Math.max(this.most, key.length);
      }
    };
    for (const [entity, own] of this.entities) {
      add(entity, entity);
      for (const [alias, of] of own.map(aliasIn).filter(Boolean)) add(normalise(alias), normalise(of));
    }
  }

  // The same triples, others of them off.
  with(off) {
    return Object.assign(Object.create(Graph.prototype), this, { off });
  }

  isOn(triple) { return !this.off.has(idOf(triple)); }

  // What a span of a text, found by a key, may mean: [entity, rules], the nearest alone.
  meanings(key, span) {
    const found = new Map(), { rules } = this;
    for (const entity of this.meant.get(key) ?? []) {
      const triples = this.entities.get(entity) ?? [];
      const said = [[entity, [...new Set(triples.map(([head]) => head))], []]];
      for (const triple of rules.has("alias") ? triples : []) {
        const alias = aliasIn(triple);
        if (!alias || !this.isOn(triple)) continue;
        const named = normalise(alias[1]);
        if (this.entities.has(named)) said.push([named, [alias[0]], ["alias"]]);
      }
      for (const [named, names, more] of said) {
        const ways = names.map((name) => agreement(span, name, rules)).filter(Boolean);
        if (!ways.length) continue;
        const taken = [...ways.sort((a, b) => a.length - b.length)[0], ...more];
        const before = found.get(named);
        if (!before || nearer(taken, before) < 0) found.set(named, taken);
      }
    }
    const least = Math.min(...Array.from(found.values(), spelling));
    const first = [...this.meant.get(key) ?? []].filter((entity) => found.has(entity));
    return first.map((entity) => [entity, found.get(entity)])
      .filter(([, taken]) => spelling(taken) === least).sort((a, b) => a[1].length - b[1].length);
  }

  // The entities that a text names, leftmost and longest: {start, end, entities}.
  mentions(text) {
    const all = [...text, "\0"], loose = [...loosen(text), ["\0", all.length - 1, all.length]];
    const size = loose.length, [cut, odd] = [0, 1].map(() => new Array(size + 1).fill(false));
    odd[0] = true;
    for (let i = 0; i < size; i++) {
      const [c, start, end] = loose[i];
      if (i) {
        const apart = loose[i - 1][2] !== start;
        cut[i] = (isWord(c) && isWord(loose[i - 1][0]) && !apart) || loose[i - 1][1] === start;
        odd[i] ||= cut[i] || apart;
      }
      if (end - start !== 1) odd[i] = odd[i + 1] = true;
    }
    const found = [];
    for (let at = 0, free = 0; at < size; at++) {
      if (cut[at] || loose[at][1] < free) continue;
      for (let after = Math.min(at + this.most, size - 1); after > at; after--) {
        const key = loose.slice(at, after).map(([c]) => c).join("");
        if (!this.meant.has(key)) continue;
        const start = loose[at][1], last = loose[after - 1][2];
        const [begin, end, meant] = odd[at] || odd[after]
          ? this.lookedAt(all, key, start, last, cut[after])
          : [start, last, this.meanings(key, all.slice(start, last).join(""))];
        if (!meant.length || begin < free) continue;
        found.push({ start: begin, end, entities: meant.map(([entity]) => entity) });
        free = end;
        break;
      }
    }
    return found;
  }

  // A key whose borders need a closer look: a plural ending, dashes beside it.
  lookedAt(all, key, start, last, cut) {
    const end = cut ? this.rules.has("plural") ? pluralEnd(all, last) : null : last;
    if (end === null) return [start, start, []];
    const read = (from, to) => [from, to, this.meanings(key, all.slice(from, to).join(""))];
    let best = read(start, end);
    const before = start > 0 && dashes.has(all[start - 1]), after = dashes.has(all[end]);
    for (const [from, to] of [after && [start, end + 1], before && [start - 1, end],
      before && after && [start - 1, end + 1]].filter(Boolean)) {
      const other = read(from, to);
      const [[[, rules] = []], [[, known] = []]] = [other[2], best[2]];
      if (rules && (!known || nearer(rules, known) <= 0)) best = other;
    }
    return best;
  }

  // The triples that hang on a mention: the first ones, where those switched off keep their places.
  selected({ entities }, name, { most, keepPlaces }) {
    const seen = new Map(entities.flatMap((entity) => this.entities.get(entity) ?? [])
      .map((triple) => [idOf(triple), triple]));
    const ranked = [...seen.values()].filter((triple) => (keepPlaces || this.isOn(triple))
      && !(this.rules.has("alias") && aliasIn(triple) && agreement(name, triple[2], this.rules)));
    return ranked.slice(0, most).filter((triple) => this.isOn(triple));
  }
}

// Where a plural ends that begins with a name: headache|s; null: the word goes on, or is none.
function pluralEnd(all, end) {
  const ending = PLURAL_ENDING.exec(all.slice(Math.max(end - 3, 0), end + 2).join(""))?.[1].length;
  return !ending || isWord(all[end + ending] ?? "") ? null : end + ending;
}
