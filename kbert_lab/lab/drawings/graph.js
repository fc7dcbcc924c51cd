// A graph of triples: its places stay when something of it changes; a click chooses. What is under
// the mouse, here or in another drawing of the page, is marked in all, see hover.js.

const OPTIONS = {
  physics: false,
  interaction: { hover: true, multiselect: false, selectConnectedEdges: false },
  nodes: { shape: "box", borderWidth: 2, font: { size: 18 } },
  edges: { arrows: "to", font: { size: 13, strokeWidth: 4 } },
};

export default function (component) {
  const root = component.parentElement.querySelector(".root");
  root.component = component;  // of the last run; the network's handlers outlive it
  root.tell = hovering(root, "", (names) => { if (root.network) mark(root, names); });
  if (globalThis.vis) update(root);
  else {
    clearInterval(root.waiting);
    root.waiting = setInterval(() => {
      if (!globalThis.vis) return;
      clearInterval(root.waiting);
      update(root);
    }, 40);
  }
}

function update(root) {
  const { data } = root.component;
  const net = root.querySelector(".net");
  net.setAttribute("aria-label", data.texts.alt);
  const wanted = data.nodes.map((node) => painted(node, data.colours));
  const edges = data.edges.map((edge) => ({ ...edge, color: data.colours[edge.color],
    plain: { width: edge.width, color: data.colours[edge.color] }, marked: false,
    font: { color: data.colours.text, strokeColor: data.colours.page } }));
  const known = root.nodes && wanted.some((node) => root.nodes.get(node.id));
  if (!known) {  // another neighbourhood
    root.network?.destroy();
    root.nodes = new vis.DataSet(wanted);
    root.edges = new vis.DataSet(edges);
    root.network = new vis.Network(net, { nodes: root.nodes, edges: root.edges }, OPTIONS);
    root.network.on("click", (event) => clicked(root, event));
    root.network.on("hoverEdge", () => { net.style.cursor = "pointer"; });
    root.network.on("blurEdge", () => { net.style.cursor = ""; });
    for (const [kind, set] of [["Edge", "edges"], ["Node", "nodes"]]) {
      root.network.on(`hover${kind}`, (event) => {
        root.tell(root[set].get(event[kind.toLowerCase()]).names, true);
      });
      root.network.on(`blur${kind}`, () => root.tell([]));
    }
  } else {
    renew(root.nodes, wanted, (node) => (root.nodes.get(node.id) ? placeless(node) : node));
    renew(root.edges, edges, (edge) => edge);
    if (wanted.length !== root.count) root.network.fit();
  }
  root.count = wanted.length;
  edit(root);
  Object.assign(root.dataset, { nodes: wanted.length, edges: edges.length,
    chosen: data.edges.findIndex((edge) => edge.chosen) });
}

// Where a name stands stays as it is, or as it was dragged to.
function placeless({ x, y, ...node }) { return node; }

function renew(set, wanted, change) {
  const stay = new Set(wanted.map(({ id }) => id));
  set.remove(set.getIds().filter((id) => !stay.has(id)));
  set.update(wanted.map(change));
}

function painted(node, colours) {
  const background = node.tint ?? (node.head ? colours.head : colours.page);
  const border = node.tint ?? (node.head ? colours.head : colours.branch);
  const text = node.tint ? "#0E161C" : node.head ? "#FFFFFF" : colours.text;
  return { ...node, marked: false, plain: { borderWidth: 2 }, borderWidth: 2, font: { color: text },
    color: { background, border, highlight: { background, border: colours.text } } };
}

// Sets off what has one of these tokens: a triple's line, an entity's box.
function mark(root, names) {
  const { text } = root.component.data.colours;
  for (const set of [root.edges, root.nodes]) {
    const changed = set.get().filter((one) =>
      one.marked !== one.names.some((name) => names.includes(name)));
    set.update(changed.map(({ id, marked, plain }) => ({ id, marked: !marked,
      ...(marked ? plain : { ...plain, ...(set === root.edges
        ? { width: plain.width + 3, color: text } : { borderWidth: 5 }) }) })));
  }
  const marked = root.edges.get().filter((edge) => edge.marked);
  root.dataset.marked = marked.map((edge) => edge.number).join(" ");
}

function clicked(root, { nodes, edges }) {
  const { setTriggerValue } = root.component;
  if (nodes.length) setTriggerValue("node", nodes[0]);
  else if (edges.length) setTriggerValue("edge", root.edges.get(edges[0]).number);
}

// The chosen triple, to change its tail or to switch it.
function edit(root) {
  const { data, setTriggerValue } = root.component;
  const form = root.querySelector(".edit");
  const chosen = data.edges.find((edge) => edge.chosen);
  form.hidden = !chosen || !data.editable;
  if (form.hidden) return;
  const [head, relation, tail] = chosen.triple;
  const input = form.querySelector("input");
  form.querySelector("b").textContent = `${head} · ${relation} ·`;
  input.setAttribute("aria-label", data.texts.tail);
  const shown = [head, relation, tail].join("\t");
  if (form.dataset.of !== shown) input.value = tail;
  form.dataset.of = shown;
  form.querySelector(".save").setAttribute("aria-label", data.texts.save);
  const button = form.querySelector(".switch");
  button.textContent = chosen.on ? data.texts.off : data.texts.on;
  button.onclick = () => setTriggerValue("edit", [chosen.triple, null, !chosen.on]);
  form.onsubmit = (event) => {
    event.preventDefault();
    if (input.value.trim() !== tail) setTriggerValue("edit", [chosen.triple, input.value.trim()]);
  };
}
