// Word pieces with their places, as the shipped tokenizers make them: of BERT, or a token a character.

import { clusters, isWhite } from "./names.js";

const CHINESE = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/u;
const PUNCTUATION = /[!-\/:-@\[-`{-~]|\p{P}/u, CONTROL = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\ufffd]/u;
const LONGEST = 100;  // characters of a word that BERT cuts into pieces

export class Pieces {
  // kind: "bert" or "characters"; words: the vocabulary in order; special: ids of [UNK], [CLS], [SEP].
  constructor({ kind, words, special }) {
    Object.assign(this, { ...special, wordsOf: kind === "bert" ? bertWords : characterWords });
    this.ids = new Map(words.map((word, id) => [word, id]));
  }

  // Tokens {id, start, end, text, joined}; joined: to the token before it, without a space.
  tokenize(given) {
    const all = [...given], tokens = this.wordsOf(given).flatMap((word) => this.pieces(word));
    return tokens.map((token, i) => ({ ...token, text: all.slice(token.start, token.end).join(""),
      joined: tokens[i - 1]?.end === token.start }));
  }

  // The longest pieces of a word, one after the other; of one that has none, the unknown token.
  pieces(word) {
    const found = [], { start } = word[0], { end } = word.at(-1);
    const idOf = (from, to) =>
      this.ids.get((from ? "##" : "") + word.slice(from, to).map(({ c }) => c).join(""));
    for (let from = 0, to; from < word.length; from = to) {
      to = word.length;
      while (to > from && idOf(from, to) === undefined) to--;
      if (to === from || word.length > LONGEST) return [{ id: this.unknown, start, end }];
      found.push({ id: idOf(from, to), start: word[from].start, end: word[to - 1].end });
    }
    return found;
  }
}

// Each word is a list of characters {c, start, end}. An accent that makes one character with the one
// before it has no place of its own.
function characterWords(text) {
  return clusters(text).flatMap(({ text: chunk, start }) => {
    let read = [];
    [...chunk].forEach((given, i) => {
      const joint = read.map(({ c }) => c).join("") + given, place = { start: start + i, end: start + i + 1 };
      read = Array.from(joint.normalize("NFKC"), (c, at) => ({ ...(read[at] ?? place), c }));
    });
    return read.flatMap((own) => Array.from(own.c.toLowerCase(), (c) => [{ ...own, c }]))
      .filter(([{ c }]) => !isWhite(c));
  });
}

function bertWords(text) {
  const words = [];
  let word = null;  // that goes on
  [...text].forEach((given, start) => {
    if (isWhite(given)) word = null;
    else if (!CONTROL.test(given)) {
      for (const c of given.normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase()) {
        const alone = CHINESE.test(given) || PUNCTUATION.test(c);
        if (alone || !word) words.push(word = []);
        word.push({ c, start, end: start + 1 });
        if (alone) word = null;
      }
    }
  });
  return words;
}
