// BERT with soft positions, a visible matrix and a head of tags, over typed arrays. A file of weights
// holds first what is in 32 bits (biases, norms, scales), then the matrices in whole numbers.

import { HIDDEN, trunkOf } from "./rows.js";

const WHOLE = { 8: Int8Array, 16: Int16Array };

// Tensors [name, rows, columns] of a file, by name; of whole numbers each group has a scale.
function opened(tensors, { bits, group }, buffer) {
  const size = ([, rows, columns = 1]) => rows * columns;
  const count = (some) => some.reduce((sum, one) => sum + size(one), 0);
  const many = bits < 32 ? count(tensors.filter(([, , columns]) => columns)) : 0;
  const few = count(tensors) - many, all = new Float32Array(few + many);
  all.set(new Float32Array(buffer, 0, few));
  if (many) {
    const halves = new Uint16Array(buffer, 4 * few, many / group);
    const scales = new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
    all.set(new WHOLE[bits](buffer, 4 * few + halves.byteLength), few);
    for (let i = 0; i < many; i++) all[few + i] *= scales[Math.floor(i / group)];
  }
  let at = 0;
  return Object.fromEntries(tensors.map((one) => [one[0], all.subarray(at, at += size(one))]));
}

export class Model {
  // card: see export.py; layers: the file of that name.
  constructor(card, layers) {
    Object.assign(this, card, { parts: new Map() });
    this.weights = opened(card.tensors, card, layers);
  }

  // The parts of the vocabulary that a row needs and aren't there yet.
  missing(ids) {
    const parts = new Set(ids.map((id) => Math.floor(id / this.rows)));
    return [...parts].filter((part) => !this.parts.has(part));
  }

  add(part, buffer) {
    const rows = Math.min(this.rows, this.count - part * this.rows);
    this.parts.set(part, opened([["words", rows, this.width]], this, buffer).words);
  }

  vector(id) {
    const from = id % this.rows * this.width;
    return this.parts.get(Math.floor(id / this.rows)).subarray(from, from + this.width);
  }

  // {scores: (N, labels) of every token, attention: (N, N), the mean of all layers and heads}; see
  // inputsOf in rows.js.
  run({ ids, positions, codes }) {
    const { width: h } = this, n = ids.length;
    const x = new Float32Array(n * h), attention = new Float32Array(n * n);
    for (let i = 0; i < n; i++) {
      const word = this.vector(ids[i]), place = this.weights.positions.subarray(positions[i] * h);
      for (let k = 0; k < h; k++) x[i * h + k] = word[k] + place[k];
    }
    let states = this.norm(x, "norm");
    for (let layer = 0; layer < this.layers; layer++) {
      const [query, key, value] = ["query", "key", "value"].map((name) =>
        this.linear(states, `${layer}.${name}`));
      const mixed = this.attend(query, key, value, codes, n, attention);
      states = this.norm(plus(this.linear(mixed, `${layer}.mixed`), states), `${layer}.norm1`);
      const inner = this.linear(states, `${layer}.inner`).map(gelu);
      states = this.norm(plus(this.linear(inner, `${layer}.outer`), states), `${layer}.norm2`);
    }
    return { scores: this.linear(states, "head"), attention };
  }

  // Two outputs of four tokens at a time, all tokens before the next outputs: what was read is used
  // more than once.
  linear(x, name) {
    const matrix = this.weights[name], bias = this.weights[`${name}.bias`], outs = bias.length;
    const ins = matrix.length / outs, last = x.length / ins - 1, y = new Float32Array((last + 1) * outs);
    for (let o = 0; o < outs; o += 2) {
      const next = Math.min(o + 1, outs - 1), at = o * ins, to = next * ins;
      for (let a = 0; a <= last; a += 4) {
        const b = Math.min(a + 1, last), c = Math.min(a + 2, last), d = Math.min(a + 3, last);
        const ia = a * ins, ib = b * ins, ic = c * ins, id = d * ins;
        let p = bias[o], q = p, r = p, s = p, t = bias[next], u = t, v = t, w = t;
        for (let k = 0; k < ins; k++) {
          const one = matrix[at + k], two = matrix[to + k];
          const xa = x[ia + k], xb = x[ib + k], xc = x[ic + k], xd = x[id + k];
          p += one * xa; q += one * xb; r += one * xc; s += one * xd;
          t += two * xa; u += two * xb; v += two * xc; w += two * xd;
        }
        y[a * outs + o] = p; y[b * outs + o] = q; y[c * outs + o] = r; y[d * outs + o] = s;
        y[a * outs + next] = t; y[b * outs + next] = u; y[c * outs + next] = v; y[d * outs + next] = w;
      }
    }
    return y;
  }

  attend(query, key, value, codes, n, attention) {
    const { heads, width: h } = this, d = h / heads, scale = 1 / Math.sqrt(d);
    const mixed = new Float32Array(n * h), shares = new Float64Array(n);
    for (let head = 0; head < heads; head++) for (let i = 0; i < n; i++) {
      const from = i * h + head * d;
      let most = -Infinity, sum = 0;
      for (let j = 0; j < n; j++) {
        if (codes[i * n + j] === HIDDEN) continue;
        let score = 0;
        for (let k = 0, to = j * h + head * d; k < d; k++) score += query[from + k] * key[to + k];
        most = Math.max(most, shares[j] = score * scale);
      }
      for (let j = 0; j < n; j++)
        sum += shares[j] = codes[i * n + j] === HIDDEN ? 0 : Math.exp(shares[j] - most);
      for (let j = 0; j < n; j++) {
        if (!shares[j]) continue;
        const share = shares[j] / sum;
        attention[i * n + j] += share / (heads * this.layers);
        for (let k = 0, to = j * h + head * d; k < d; k++) mixed[from + k] += share * value[to + k];
      }
    }
    return mixed;
  }

  norm(x, name) {
    const h = this.width, gain = this.weights[name], bias = this.weights[`${name}.bias`];
    for (let at = 0; at < x.length; at += h) {
      let mean = 0, spread = 0;
      for (let k = 0; k < h; k++) mean += x[at + k] / h;
      for (let k = 0; k < h; k++) spread += (x[at + k] - mean) ** 2 / h;
      const scale = 1 / Math.sqrt(spread + this.epsilon);
      for (let k = 0; k < h; k++) x[at + k] = (x[at + k] - mean) * scale * gain[k] + bias[k];
    }
    return x;
  }
}

function plus(x, y) {
  return x.map((value, i) => value + y[i]);
}

function gelu(x) {  // by the error function, within 2e-7 (Abramowitz and Stegun, 7.1.26)
  const z = Math.abs(x) / Math.SQRT2, t = 1 / (1 + 0.3275911 * z);
  const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027
    + t * 1.061405429)))) * Math.exp(-z * z);
  return x / 2 * (x > 0 ? 2 - tail : tail);
}

// The entities of a row: the likeliest consistent tags, and their spans.
export function entitiesOf(row, scores, labels) {
  const k = labels.length, trunk = trunkOf(row), found = [];
  const logs = trunk.map((i) => logSoftmax(scores.slice(i * k, (i + 1) * k)));
  bestTags(logs, labels).forEach((tag, i) => {
    const { start, end } = row.tokens[trunk[i]], log = logs[i][tag];
    if (labels[tag].startsWith("B-")) found.push({ start, label: labels[tag].slice(2), logs: [] });
    if (labels[tag] !== "O") Object.assign(found.at(-1), { end }).logs.push(log);
  });
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return found.map((own) => ({ ...own, p: Math.exp(mean(own.logs)) }));
}

function logSoftmax(scores) {
  const most = Math.max(...scores), sum = scores.reduce((all, score) => all + Math.exp(score - most), 0);
  return Array.from(scores, (score) => score - most - Math.log(sum));
}

// An I- tag may only follow a B- or I- tag of its own type (Viterbi).
function bestTags(logs, labels) {
  const may = (before, tag) => !labels[tag].startsWith("I-")
    || labels[before]?.slice(2) === labels[tag].slice(2);
  const likelier = (one, other) => other.sum > one.sum ? other : one;
  let best = [{ sum: 0, tags: [] }];  // the likeliest tags, by the last of them
  for (const own of logs) best = labels.flatMap((_, tag) => {
    const before = best.filter(({ tags }) => may(tags.at(-1), tag));
    if (!before.length) return [];
    const { sum, tags } = before.reduce(likelier);
    return [{ sum: sum + own[tag], tags: [...tags, tag] }];
  });
  return best.reduce(likelier).tags;
}
