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

// The characters of a text, each with the accents after it: {text, start, end}.
export function clusters(text) {
  const found = [];
  [...text].forEach((c, start) => {
    if (!start || !extendsBefore(c)) found.push({ text: "", start });
    const own = found.at(-1);
    Object.assign(own, { text: own.text + c, end: start + 1 });
  });
  return found;
}

export function normalise(name) {
  return clusters(name).flatMap(({ text }) => fold(text)).join("").replace(/ +/g, " ").trim();
}

// A text to look names up in, without dashes and spaces: {c, start, end}.
function loosen(text) {
  return clusters(text.replaceAll("´", "'")).flatMap(({ text: chunk, start, end }) =>
    fold(chunk).filter((c) => c !== " " && !dashes.has(c)).map((c) => ({ start, end,
      c: apostrophes.has(c) ? "'" : c < " " ? "\x02" : simplified.get(c) ?? c })));
}

const keyOf = (name) => loosen(name).map(({ c }) => c).join("");

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

// What it takes to read a name in a text: SPELT for each rule about spelling, and 1 for each other
// rule; Infinity: it isn't this name.
const SPELT = 100;
function cost(span, name, folds) {
  for (const [named, sense] of [[name, 0], [withoutSense(name), 1]]) {
    for (const [one, other, number] of inOneNumber(span, named)) {
      const needed = folded(one, other, folds);
      if (needed < Infinity) return SPELT * (needed + number) + sense;
    }
  }
  return Infinity;
}

// Both as they are, and then one of them in the singular.
function inOneNumber(span, name) {
  const isUpper = (text) => /\p{Lu}/u.test(text) && text === text.toUpperCase();
  const isAcronym = (text) => isUpper(text) && [...text].length <= 4;
  const others = /[A-Za-z]$/.test(span) ? [[span, name], [name, span]].flatMap(([many, written]) =>
    singulars(many).map((one) => [one, written, 1])) : [];
  return [[span, name, 0], ...others.filter(([one, written]) => isUpper(one) || !isAcronym(written))];
}

// How many folds make two names the same.
function folded(one, other, folds) {
  if (one === other) return 0;
  const tried = [folds, folds.filter((fold) => fold !== "spaces")];
  let taken = tried.find((some) => same(one, other, some));
  for (const fold of taken ?? []) {
    const fewer = taken.filter((own) => own !== fold);
    if (same(one, other, fewer)) taken = fewer;
  }
  return taken?.length ?? Infinity;
}

function same(one, other, folds) {
  return (folds.includes("dashes") ? ["", " "] : [""]).some((dash) =>
    canonical(one, folds, dash) === canonical(other, folds, dash));
}

function canonical(name, folds, dash) {
  name = name.normalize(folds.includes("width") ? "NFKC" : "NFC");
  if (folds.includes("case")) name = casefold(name);
  if (folds.includes("script")) name = Array.from(name, (c) => simplified.get(c) ?? c).join("");
  if (folds.includes("dashes")) name = Array.from(name.replace(RANGE, "\0"),
    (c) => dashes.has(c) ? dash : apostrophes.has(c) ? "'" : c).join("");
  name = name.trim().replace(/\s+/g, (run) => /^[ \t\u00a0\u3000]$/.test(run) ? " " : "\n");
  if (folds.includes("spaces") && name.includes(" ")) {
    const all = [...name], digit = (c) => /\p{Nd}/u.test(c);
    name = all.filter((c, i) => c !== " " || (isWord(all[i - 1]) && isWord(all[i + 1])
      && digit(all[i - 1]) === digit(all[i + 1]))).join("");
  }
  return name.replaceAll("\n", " ");
}

export class Graph {
  // triples: [head, relation, tail]; rules: names of those that the model reads names by; off: ids of
  // triples that are switched off.
  constructor(triples, rules, off = new Set()) {
    Object.assign(this, { triples, off, folds: FOLDS.filter((fold) => rules.includes(fold)),
      takesAliases: rules.includes("alias"), meant: new Map(), most: 0, entities: new Map() });
    for (const triple of triples) {
      const entity = normalise(triple[0]), before = this.entities.get(entity);
      const own = before ?? { triples: [], heads: new Set(), aliases: [] };
      own.triples.push(triple);
      own.heads.add(triple[0]);
      if (entity && !before) this.entities.set(entity, own);
    }
    for (const [entity, own] of this.entities) {
      this.name(entity, entity);
      for (const triple of own.triples) {
        const [alias, of] = aliasIn(triple)?.map(normalise) ?? [];
        this.entities.get(of)?.aliases.push(triple);
        this.name(alias, of);
      }
    }
  }

  name(name, entity) {
    for (const key of this.entities.has(entity) ? keysOf(name) : []) {
      this.meant.set(key, (this.meant.get(key) ?? new Set()).add(entity));
      this.most = Math.max(this.most, key.length);
    }
  }

  // The same triples, others of them off.
  with(off) {
    return Object.assign(Object.create(Graph.prototype), this, { off });
  }

  isOn(triple) { return !this.off.has(idOf(triple)); }

  // What a span of a text, found by a key, may mean: [entity, cost], those spelt most like it.
  meanings(key, span) {
    const found = Array.from(this.meant.get(key), (entity) => {
      const { heads, aliases } = this.entities.get(entity);
      const said = this.takesAliases ? aliases.filter((triple) => this.isOn(triple)) : [];
      return [entity, Math.min(...Array.from(heads, (head) => cost(span, head, this.folds)),
        ...said.map((triple) => 1 + cost(span, aliasIn(triple)[0], this.folds)))];
    }).sort((one, other) => one[1] - other[1]);
    const spelling = ([, cost]) => Math.floor(cost / SPELT);
    return found.filter((one) => one[1] < Infinity && spelling(one) === spelling(found[0]));
  }

  // The entities that a text names, leftmost and longest: {start, end, text, entities}.
  mentions(text) {
    const all = [...text, "\0"], size = all.length, found = [];
    const loose = [...loosen(text), { c: "\0", start: size - 1, end: size }];
    const cut = loose.map(({ c, start }, i) => {  // where a border would cut a word or a character
      const before = loose[i - 1];
      return before?.start === start || (before?.end === start && isWord(c) && isWord(before.c));
    });
    for (let at = 0, free = 0; at < loose.length; at++) {
      if (cut[at] || loose[at].start < free) continue;
      for (let after = Math.min(at + this.most, loose.length - 1); after > at; after--) {
        const key = loose.slice(at, after).map(({ c }) => c).join("");
        if (!this.meant.has(key)) continue;
        const mention = this.read(all, key, loose[at].start, loose[after - 1].end, cut[after]);
        if (!mention || mention.start < free) continue;
        found.push(mention);
        free = mention.end;
        break;
      }
    }
    return found;
  }

  // The mention that a key makes: with a plural's ending, and with the dashes beside it where it is
  // written more like the graph's name so.
  read(all, key, start, last, cut) {
    const end = cut ? pluralEnd(all, last) : last;
    if (end === null) return null;
    const starts = [start, start - 1].filter((at) => at === start || dashes.has(all[at]));
    const ends = [end, end + 1].filter((at) => at === end || dashes.has(all[end]));
    let best = null, least = Infinity;
    for (const [from, to] of starts.flatMap((from) => ends.map((to) => [from, to]))) {
      const text = all.slice(from, to).join(""), meant = this.meanings(key, text);
      if (!meant.length || meant[0][1] > least) continue;
      best = { start: from, end: to, text, entities: meant.map(([entity]) => entity) };
      least = meant[0][1];
    }
    return best;
  }

  // The triples that hang on a mention: the first ones, where those switched off keep their places.
  selected({ entities, text }, { most, keepPlaces }) {
    const all = entities.flatMap((entity) => this.entities.get(entity).triples);
    const ranked = [...new Map(all.map((triple) => [idOf(triple), triple])).values()].filter((triple) =>
      (keepPlaces || this.isOn(triple)) && !(this.takesAliases && aliasIn(triple)
        && cost(text, triple[2], this.folds) < Infinity));
    return ranked.slice(0, most).filter((triple) => this.isOn(triple));
  }
}

// Where a plural ends that begins with a name: headache|s; null: the word goes on, or is none.
function pluralEnd(all, end) {
  const ending = PLURAL_ENDING.exec(all.slice(Math.max(end - 3, 0), end + 2).join(""))?.[1].length;
  return !ending || isWord(all[end + ending] ?? "") ? null : end + ending;
}
