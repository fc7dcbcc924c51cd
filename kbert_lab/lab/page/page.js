// The page: a text, edits to a graph, and how the text is read; all is drawn anew after each change.
// A prediction is one of those stored with the scene, or the model makes it, once it has come.

import { filled, made } from "./elements.js";
import { draw as drawMatrix } from "./matrix.js";
import { entitiesOf } from "./model.js";
import { Graph, idOf } from "./names.js";
import { Pieces } from "./pieces.js";
import { draw as play } from "./play.js";
import { clauses, each, inputsOf, rowOf, trunkOf } from "./rows.js";
import { draw as drawTail } from "./tail.js";
import { draw as drawTree } from "./tree.js";
import { matrixView, percent, predictionOf, treeOf } from "./views.js";

const MOST_ADDED = 1000;  // triples at once
const SUGGESTED = 6;  // tails
const PAUSE = 250, WAITS = 5000;  // ms after a key; for what keeps the page
const KEPT = 100;  // results
const AS_TRAINED = { edits: [], positions: "soft", visible: "tree" };

const find = (id) => document.getElementById(id);
const say = (where, text) => { find(where).textContent = text; };
const folder = new URL(`${document.documentElement.lang}/`, document.baseURI).href;
const read = async (name) => (await fetch(folder + name)).json();
const [scene, card] = await Promise.all([read("scene.json"), read("model.json")]);
const { texts, answers } = scene, { injection } = card, pieces = new Pieces(card.pieces);
const options = { most: injection.max_triples, tailOnly: injection.tail_only, keepPlaces: true,
  longest: card.longest };
const rowIn = (graph) => rowOf(state.text, graph, pieces, options);
let state = { ...AS_TRAINED, text: scene.examples[0], token: null, cell: null, map: "" };

// The graph after edits, which are written as in a link to the Lab: [what, triple, new triple].
const original = new Graph(scene.triples, injection.names);
const given = new Set(scene.triples.map(idOf));
let lastly = { of: "[]", graph: original };
function graphAfter(edits) {
  const lasting = edits.filter(([what]) => what !== "switch_off"), of = JSON.stringify(lasting);
  if (lastly.of !== of) {
    const triples = lasting.reduce((all, [what, old, changed]) => what === "add" ? [...all, old]
      : all.map((triple) => idOf(triple) === idOf(old) ? changed : triple), scene.triples);
    lastly = { of, graph: new Graph(triples, injection.names) };
  }
  const off = edits.filter((edit) => !lasting.includes(edit)).map(([, triple]) => idOf(triple));
  return lastly.graph.with(new Set(off));
}

// The model, in a thread of its own, once it is asked for.
let model = null, ready = false;
const asked = [];
function load() {
  const size = (card.bytes / 1e6).toFixed(1), failed = () => {
    model = null;
    say("loading", texts.failed);
  };
  const heard = {
    share: (share) => say("loading", filled(texts.loading, { share: Math.round(100 * share), size })),
    model: () => {
      ready = true;
      say("loading", "");
      performance.mark("kbert-model");
      draw();
    },
    words: () => performance.mark("kbert-words"),  // all of them have come
    failed,
    answer: ([number, made]) => asked[number](made),
  };
  try {
    model ??= new Worker(new URL("worker.js", import.meta.url), { type: "module", name: folder });
    Object.assign(model, { onerror: failed, onmessage: ({ data: [what, said] }) => heard[what](said) });
  } catch { failed(); }
}

// What the model says of a row: {entities, attention}; null while there is neither an answer stored
// nor a model.
const known = new Map();
async function predicted(row, how) {
  const codes = ["id", "soft", "branch", "anchor"].map((name) => each(row, name));
  const key = [...codes, how.positions, how.visible].join(";");
  if (known.has(key)) return known.get(key);
  if (!ready) {
    if (answers[key]) return { entities: entitiesOf(row, answers[key], card.labels) };
    load();
    return null;
  }
  const made = await new Promise((answered) => {
    model.postMessage([asked.push(answered) - 1, inputsOf(row, how)]);
  });
  if (!made) {
    say("loading", texts.failed);
    return null;
  }
  if (known.size > KEPT) known.clear();
  known.set(key, { ...made, entities: entitiesOf(row, made.scores, card.labels) });
  return known.get(key);
}

// Drawn

const isChanged = () => state.edits.length > 0
  || ["positions", "visible"].some((name) => state[name] !== AS_TRAINED[name]);

let latest = 0;
async function draw() {
  const number = ++latest, graph = graphAfter(state.edits), row = rowIn(graph);
  const codes = clauses(row, state.visible), changed = isChanged();
  const tree = treeOf(rowIn(graph.with(new Set())), row, codes, { token: state.token, texts: scene.tree,
    hard: state.positions === "hard", isOn: (triple) => graph.isOn(triple),
    isNew: (triple) => !given.has(idOf(triple)) });
  const drawMap = (attention) =>
    drawMatrix(find("matrix"), matrixView(row, codes, attention, { ...state, matrix: scene.matrix }), heard);
  drawTree(find("tree"), { group: "page", html: tree.map((part) => part.outerHTML).join("") }, heard);
  if (!state.map) drawMap(null);
  find("undo").disabled = !past.length;
  find("reset").disabled = !changed;
  say("note", noteOn(row));
  link().then((href) => { find("lab").href = href; });
  if (isLong(row)) return find("prediction").replaceChildren();
  const before = await predicted(rowIn(original), AS_TRAINED), now = await predicted(row, state);
  if (number !== latest) return;
  find("prediction").classList.toggle("waits", !now || !before);
  if (!now || !before) return;
  const sides = [[texts.before, before.entities], [texts.now, now.entities]].slice(changed ? 0 : 1);
  find("prediction").replaceChildren(predictionOf(row, sides, { types: scene.types, texts }));
  find("prediction").dataset.said = now.entities.map(({ label }) => label).join(" ");
  if (state.map && now.attention) drawMap(now.attention);
  else if (state.map) load();
}

const isLong = (row) => trunkOf(row).length + 2 > card.longest;

function noteOn(row) {
  const own = new RegExp(`\\p{Script=${scene.script}}`, "u");
  const letters = state.text.match(/\p{L}/gu) ?? [], readable = letters.filter((c) => own.test(c));
  if (!state.text.trim()) return texts.empty;
  if (isLong(row)) return filled(texts.long, { most: card.longest - 2, count: trunkOf(row).length });
  if (2 * readable.length < letters.length) return texts.script;
  return row.full ? texts.full : row.nodes.length ? "" : texts.no_name;
}

// The address of the Lab with what is shown here, packed as share.py does it.
async function link() {
  const { text, edits, positions, visible } = state, shared = structuredClone(scene.shared);
  Object.assign(shared.scene, { sentences: [text], edits, ablation: { positions, visible } });
  const plain = new Blob([JSON.stringify(shared)]).stream();
  const packed = new Response(plain.pipeThrough(new CompressionStream("deflate")));
  const bytes = new Uint8Array(await packed.arrayBuffer());
  const value = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `${scene.lab}?scene=${value.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

// Done

const past = [];
function put(next) {
  state = next;
  for (const id of ["text", "positions", "visible"])
    if (find(id).value !== state[id]) find(id).value = state[id];
  draw();
}

function change(next) {
  past.push(state);
  put({ ...state, ...next });
}

function heard({ do: what, triple, on, tail, ...sent }) {
  if (what === "switch") {
    const others = state.edits.filter(([kind, old]) => kind !== "switch_off" || idOf(old) !== idOf(triple));
    change({ edits: on ? others : [...others, ["switch_off", triple]] });
  } else if (what === "tail") edit([["replace", triple, withTail(triple, tail)]]);
  else if (what === "ask") suggest(triple, sent);
  else if (what === "cell") put({ ...state, token: sent.looks, cell: [sent.looks, sent.at] });
  else if (what === "token")
    put({ ...state, token: sent.token === state.token ? null : sent.token, cell: null });
}

const withTail = ([head, relation], tail) => [head, relation, tail];

// Adds triples or changes one, unless the graph has them already; how many.
function edit(edits) {
  const has = new Set(graphAfter(state.edits).triples.map(idOf));
  const fresh = edits.filter((one) => !has.has(idOf(one.at(-1))) && has.add(idOf(one.at(-1))));
  if (fresh.length) change({ edits: [...state.edits, ...fresh] });
  if (fresh.length < edits.length) say("note", texts.there);
  return fresh.length;
}

// The tails that a relation has, the commonest first, each with what would be predicted.
async function suggest(triple, { request, tails }) {
  const counts = new Map();
  for (const [, relation, tail] of scene.triples)
    if (relation === triple[1]) counts.set(tail, (counts.get(tail) ?? 0) + 1);
  const common = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
  const asked = tails.length ? tails : common.slice(0, SUGGESTED);
  const answer = (outcomes) => drawTail(null, { request, asked, outcomes, glosses: {},
    tails: tails.length ? undefined : common });
  answer({});
  for (const tail of asked) {
    const edits = [...state.edits, ["replace", triple, withTail(triple, tail)]];
    const row = rowIn(graphAfter(edits)), found = await predicted(row, state);
    const mention = row.nodes.find(({ branches }) => branches.some((one) => one.triple[2] === tail));
    const said = found?.entities.find(({ start, end }) => start < mention?.end && end > mention?.start);
    const label = said ? `${scene.types[said.label]} ${percent(said.p)}` : texts.nothing;
    answer({ [tail]: [found ? label : "", false] });
  }
}

find("add").onsubmit = (event) => {
  event.preventDefault();
  const lines = find("triples").value.split("\n").filter((line) => line.trim()), count = lines.length;
  const parts = (line) => line.split(line.includes("\t") ? "\t" : /[,，]/).map((part) => part.trim());
  const triples = lines.map(parts), isTriple = (triple) => triple.length === 3 && triple.every(Boolean);
  if (count > MOST_ADDED) say("note", filled(texts.many, { most: MOST_ADDED, count }));
  else if (!count || !triples.every(isTriple)) say("note", texts.three);
  else if (edit(triples.map((triple) => ["add", triple]))) find("triples").value = "";
};

let typing;
find("text").value = state.text;
find("text").oninput = ({ target }) => {
  clearTimeout(typing);
  typing = setTimeout(() => change({ text: target.value, token: null, cell: null }), PAUSE);
};
for (const id of ["positions", "visible"])
  find(id).onchange = ({ target }) => change({ [id]: target.value });
find("map").onchange = ({ target }) => put({ ...state, map: target.value });
find("undo").onclick = () => put(past.pop());
find("reset").onclick = () => change(AS_TRAINED);
find("examples").append(...scene.examples.map((text) => {
  const button = made("button", {}, text);
  button.onclick = () => change({ ...AS_TRAINED, text, token: null, cell: null });
  return button;
}));

say("loading", "");
await draw();
play(document.body, scene.play);
document.documentElement.dataset.ready = "1";

// What came before offline.js did is kept now; then the model may follow.
async function keep() {
  const { serviceWorker } = navigator, loaded = performance.getEntriesByType("resource");
  await serviceWorker.register("offline.js");
  while (!serviceWorker.controller) await pause(100);
  await (await caches.open("kbert-try")).addAll([location.pathname, ...loaded.map(({ name }) => name)]);
}

const pause = (time) => new Promise((done) => { setTimeout(done, time); });
await Promise.race([keep().catch(() => {}), pause(WAITS)]);
if (!navigator.connection?.saveData) load();
