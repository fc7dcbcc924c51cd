// A text with its triples as one row of tokens: sentence tree, soft positions, branch codes, visible
// matrix. As kbert_core.kbert does it in sentence_tree.py, flat_tree.py and visible.py.

// The row: N ids, soft positions, branch and anchor codes, texts, names that identify the tokens.
// nodes: mentions with their branches; trunk: places of the text's tokens along N.
export function rowOf(text, graph, pieces, options) {
  const trunk = pieces.tokenize(text), all = [...text];
  const row = { text, all, ids: [], soft: [], branch: [], anchor: [], tokens: [], names: [], joined: [],
    nodes: [], trunk: [], trunkTokens: trunk, branches: [], full: false };
  const put = (id, soft, branch, anchor, token, name, joined = false) => {
    row.ids.push(id); row.soft.push(soft); row.branch.push(branch); row.anchor.push(anchor);
    row.tokens.push(token); row.names.push(JSON.stringify(name)); row.joined.push(joined);
  };
  let next = 0, position = 0;
  const trunkTo = (stop, anchor) => {
    for (; next < stop; next++) {
      const [start, end] = [trunk.starts[next], trunk.ends[next]];
      row.trunk.push(row.ids.length);
      put(trunk.ids[next], position++, 0, anchor, all.slice(start, end).join(""), ["trunk", 0, next],
        next > 0 && start === trunk.ends[next - 1]);
    }
  };
  put(pieces.first, position++, 0, 0, "[CLS]", ["special", 0]);
  let room = options.longest - trunk.ids.length - 2;
  graph.mentions(text).forEach((mention, number) => {
    const begin = trunk.ends.filter((end) => end <= mention.start).length;
    const stop = trunk.starts.filter((start) => start < mention.end).length;
    const used = graph.selected(mention, all.slice(mention.start, mention.end).join(""), options);
    const node = { ...mention, number: number + 1, from: 0, branches: [] };
    row.nodes.push(node);
    if (stop <= begin || begin < next) return;
    trunkTo(begin, 0);
    node.from = row.ids.length;
    trunkTo(stop, number + 1);
    for (const triple of used) {
      const fields = (options.tailOnly ? triple.slice(2) : triple.slice(1))
        .map((field) => ({ field: [...field], ...pieces.tokenize(field) }));
      const size = fields.reduce((sum, { ids }) => sum + ids.length, 0);
      if (size > room) row.full = true;
      if (!size || size > room) continue;
      room -= size;
      const start = row.ids.length, name = ["branch", 0, mention.start, triple];
      row.branches.push(triple);
      for (const { field, ids, starts, ends } of fields) ids.forEach((id, i) => {
        const offset = row.ids.length - start;
        put(id, position + offset, row.branches.length, number + 1,
          field.slice(starts[i], ends[i]).join(""), [...name, offset], i > 0 && starts[i] === ends[i - 1]);
      });
      const sizes = fields.map(({ ids }) => ids.length);
      node.branches.push({ triple, name: JSON.stringify(name), start, sizes });
    }
  });
  trunkTo(trunk.ids.length, 0);
  put(pieces.last, position, 0, 0, "[SEP]", ["special", 1]);
  return row;
}

// Which clause of Eq. 3 lets one token see another: 0 trunk, 1 branch, 2 a mention and its branch,
// 3 everything visible; HIDDEN: none.
export const HIDDEN = 255;
export function clauses({ branch, anchor }, visible) {
  const n = branch.length, codes = new Uint8Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
    const hangs = anchor[i] && anchor[i] === anchor[j] && (!branch[i] || !branch[j]);
    codes[i * n + j] = branch[i] === branch[j] ? (branch[i] ? 1 : 0) : hangs ? 2
      : visible === "all" ? 3 : HIDDEN;
  }
  return codes;
}

// What a model is given; equal values, equal predictions.
export function inputsOf(row, { positions, visible }) {
  return { ids: row.ids, positions: positions === "hard" ? [...row.ids.keys()] : row.soft,
    codes: clauses(row, visible) };
}
