// Word pieces with their places, as the shipped tokenizers make them: of BERT, or a token a character.

import { clusters, isWhite } from "./names.js";

const CHINESE = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/u;
const PUNCTUATION = /[!-\/:-@\[-`{-~]|\p{P}/u, CONTROL = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\ufffd]/u;
const LONGEST = 100;  // characters of a word that BERT cuts into pieces

export class Pieces {
  // kind: "bert" or "characters"; words: the vocabulary in order; special: ids of [UNK], [CLS], [SEP].
  constructor({ kind, words, special }) {
    Object.assign(this, { ...special, cut: kind === "bert" ? bertWords : characterWords });
    this.ids = new Map(words.map((word, id) => [word, id]));
  }

  // {ids, starts, ends}
  tokenize(text) {
    const found = { ids: [], starts: [], ends: [] };
    for (const word of this.cut(text)) {
      for (const [id, from, to] of this.pieces(word)) {
        found.ids.push(id);
        found.starts.push(word[from][1]);
        found.ends.push(word[to - 1][2]);
      }
    }
    return found;
  }

  // The longest pieces of a word, one after the other; of one that has none, the unknown token.
  pieces(word) {
    const found = [], unknown = [[this.unknown, 0, word.length]];
    if (word.length > LONGEST) return unknown;
    for (let from = 0, to; from < word.length; from = to) {
      let id;
      for (to = word.length; to > from; to--) {
        id = this.ids.get((from ? "##" : "") + word.slice(from, to).map(([c]) => c).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) return unknown;
      found.push([id, from, to]);
    }
    return found;
  }
}

// Each word is a list of [character, start, end]. An accent that makes one character with the one
// before it has no place of its own.
function characterWords(text) {
  const words = [];
  for (const [chunk, start] of clusters(text)) {
    let read = [];
    [...chunk].forEach((given, i) => {
      const joint = [...(read.map(([c]) => c).join("") + given).normalize("NFKC")];
      read = joint.map((c, at) => [c, ...read[at]?.slice(1) ?? [start + i, start + i + 1]]);
    });
    for (const [c, ...place] of read)
      for (const small of c.toLowerCase()) if (!isWhite(small)) words.push([[small, ...place]]);
  }
  return words;
}

function bertWords(text) {
  const words = [];
  let word = [];
  const close = () => { if (word.length) words.push(word); word = []; };
  for (const [at, given] of [...text].entries()) {
    if (isWhite(given)) { close(); continue; }
    if (given === "\0" || CONTROL.test(given)) continue;
    for (const c of given.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase()) {
      const alone = CHINESE.test(given) || PUNCTUATION.test(c);
      if (alone) close();
      word.push([c, at, at + 1]);
      if (alone) close();
    }
  }
  close();
  return words;
}
