// A text with its triples as one row of tokens: sentence tree, soft positions, branch codes, visible
// matrix. As kbert_core.kbert does it in sentence_tree.py, flat_tree.py and visible.py.

// tokens: N of {id, soft, branch, anchor, text, joined}, and name, which identifies it in drawings;
// nodes: mentions with their branches; full: whether a branch had no room.
export function rowOf(text, graph, pieces, options) {
  const trunk = pieces.tokenize(text), tokens = [], nodes = [], triples = [];
  let position = 0, placed = 0, full = false, room = options.longest - trunk.length - 2;
  const put = (token, name, branch, anchor, soft = position++) => tokens[tokens.push(
    { joined: false, ...token, name: JSON.stringify(name), branch, anchor, soft }) - 1];
  const trunkTo = (stop, anchor) => {
    for (; placed < stop; placed++) put(trunk[placed], ["trunk", 0, placed], 0, anchor);
  };
  put({ id: pieces.first, text: "[CLS]" }, ["special", 0], 0, 0);
  graph.mentions(text).forEach((mention) => {
    const node = { ...mention, branches: [] }, anchor = nodes.push(node);
    const begin = trunk.filter(({ end }) => end <= mention.start).length;
    const stop = trunk.filter(({ start }) => start < mention.end).length;
    if (stop <= begin || begin < placed) return;
    trunkTo(begin, 0);
    trunkTo(stop, anchor);
    for (const triple of graph.selected(mention, options)) {
      const fields = triple.slice(options.tailOnly ? 2 : 1).map((field) => pieces.tokenize(field));
      const all = fields.flat(), name = ["branch", 0, mention.start, triple];
      full ||= all.length > room;
      if (!all.length || all.length > room) continue;
      room -= all.length;
      triples.push(triple);
      let k = 0;
      node.branches.push({ triple, name: JSON.stringify(name), fields: fields.map((field) =>
        field.map((token) => put(token, [...name, k], triples.length, anchor, position + k++))) });
    }
  });
  trunkTo(trunk.length, 0);
  put({ id: pieces.last, text: "[SEP]" }, ["special", 1], 0, 0);
  return { text, tokens, nodes, triples, full };
}

// One property of all tokens; the trunk's places along N, without [CLS] and [SEP].
export const each = ({ tokens }, name) => tokens.map((token) => token[name]);
export const trunkOf = ({ tokens }) =>
  [...tokens.keys()].filter((i) => !tokens[i].branch).slice(1, -1);

// Which clause of Eq. 3 lets one token see another: 0 trunk, 1 branch, 2 a mention and its branch,
// 3 everything visible; HIDDEN: none.
export const HIDDEN = 255;
export function clauses({ tokens }, visible) {
  return Uint8Array.from(tokens.flatMap((one) => tokens.map((other) => {
    const hangs = one.anchor && one.anchor === other.anchor && (!one.branch || !other.branch);
    return one.branch === other.branch ? (one.branch ? 1 : 0) : hangs ? 2
      : visible === "all" ? 3 : HIDDEN;
  })));
}

// What a model is given; equal values, equal predictions.
export function inputsOf(row, { positions, visible }) {
  const soft = each(row, "soft");
  return { ids: each(row, "id"), positions: positions === "hard" ? [...soft.keys()] : soft,
    codes: clauses(row, visible) };
}
