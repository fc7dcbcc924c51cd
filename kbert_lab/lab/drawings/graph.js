// A graph of triples, by vis-network, which its host loads: its places stay when something of it
// changes; a click chooses. What is under the mouse, here or in another drawing of the page, is
// marked in all, see elements.js. It sends {do: "triple", triple}, {do: "name", name, token, triple},
// {do: "switch", triple, on} and {do: "tail", triple, tail}.

import { hovering, parts } from "./elements.js";

const HTML = `<div class="net" role="img"></div>
  <form class="edit" hidden><b></b><input maxlength="200"><button class="save">✓</button
    ><button class="switch" type="button"></button></form>`;
const OPTIONS = {
  physics: false,
  interaction: { hover: true, multiselect: false, selectConnectedEdges: false },
  nodes: { shape: "box", borderWidth: 2, font: { size: 18 } },
  edges: { arrows: "to", font: { size: 13, strokeWidth: 4 } },
};

export function draw(root, view, send) {
  parts(root, HTML);
  Object.assign(root, { view, send });  // of the last run; the network's handlers outlive it
  root.tell = hovering(root, "", (names) => { if (root.network) mark(root, names); });
  clearInterval(root.waiting);
  if (globalThis.vis) update(root);
  else root.waiting = setInterval(() => { if (globalThis.vis) draw(root, view, send); }, 40);
}

function update(root) {
  const { view } = root, net = root.querySelector(".net");
  net.setAttribute("aria-label", view.texts.alt);
  const nodes = view.nodes.map((node) => painted(node, view.colours));
  const edges = view.edges.map((edge) => ({ ...edge, color: view.colours[edge.color], marked: false,
    plain: { width: edge.width, color: view.colours[edge.color] },
    font: { color: view.colours.text, strokeColor: view.colours.page } }));
  if (!nodes.some((node) => root.nodes?.get(node.id))) begin(root, net, nodes, edges);
  else {
    renew(root.nodes, nodes, (node) => (root.nodes.get(node.id) ? placeless(node) : node));
    renew(root.edges, edges, (edge) => edge);
    if (nodes.length !== root.count) root.network.fit();
  }
  root.count = nodes.length;
  edit(root);
  Object.assign(root.dataset, { nodes: nodes.length, edges: edges.length,
    chosen: view.edges.findIndex((edge) => edge.chosen) });
}

// Another neighbourhood.
function begin(root, net, nodes, edges) {
  root.network?.destroy();
  root.nodes = new vis.DataSet(nodes);
  root.edges = new vis.DataSet(edges);
  root.network = new vis.Network(net, { nodes: root.nodes, edges: root.edges }, OPTIONS);
  root.network.on("click", (event) => {
    const node = root.nodes.get(event.nodes[0] ?? null), edge = root.edges.get(event.edges[0] ?? null);
    if (node) root.send({ do: "name", name: node.id, token: node.token, triple: node.triple });
    else if (edge) root.send({ do: "triple", triple: edge.triple });
  });
  for (const [kind, set] of [["Edge", "edges"], ["Node", "nodes"]]) {
    root.network.on(`hover${kind}`, (event) => {
      net.style.cursor = "pointer";
      root.tell(root[set].get(event[kind.toLowerCase()]).names, true);
    });
    root.network.on(`blur${kind}`, () => {
      net.style.cursor = "";
      root.tell([]);
    });
  }
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
  const { text } = root.view.colours;
  for (const set of [root.edges, root.nodes]) {
    const more = ({ plain }) => (set === root.edges ? { width: plain.width + 3, color: text }
      : { borderWidth: 5 });
    const changed = set.get().filter((one) =>
      one.marked !== one.names.some((name) => names.includes(name)));
    set.update(changed.map((one) => ({ id: one.id, marked: !one.marked, ...one.plain,
      ...(one.marked ? {} : more(one)) })));
  }
  const edges = root.view.edges.filter(({ id }) => root.edges.get(id).marked);
  root.dataset.marked = edges.map((edge) => root.view.edges.indexOf(edge)).join(" ");
}

// The chosen triple, to change its tail or to switch it.
function edit(root) {
  const { view, send } = root, form = root.querySelector(".edit");
  const chosen = view.edges.find((edge) => edge.chosen);
  form.hidden = !chosen || !view.editable;
  if (form.hidden) return;
  const { triple, on } = chosen, [head, relation, tail] = triple, input = form.querySelector("input");
  form.querySelector("b").textContent = `${head} · ${relation} ·`;
  input.setAttribute("aria-label", view.texts.tail);
  if (form.dataset.of !== triple.join("\t")) input.value = tail;
  form.dataset.of = triple.join("\t");
  form.querySelector(".save").setAttribute("aria-label", view.texts.save);
  const button = form.querySelector(".switch");
  button.textContent = on ? view.texts.off : view.texts.on;
  button.onclick = () => send({ do: "switch", triple, on: !on });
  form.onsubmit = (event) => {
    event.preventDefault();
    const typed = input.value.trim();
    if (typed !== tail) send({ do: "tail", triple, tail: typed });
  };
}
