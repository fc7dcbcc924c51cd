// The page: a text, edits to a graph, and how the text is read; all is drawn anew after each change.
// A prediction is one of those stored with the scene, or the model makes it, once it has come.

import { draw as drawMatrix } from "./matrix.js";
import { entitiesOf } from "./model.js";
import { Graph, idOf } from "./names.js";
import { Pieces } from "./pieces.js";
import { draw as play } from "./play.js";
import { clauses, inputsOf, rowOf } from "./rows.js";
import { draw as drawTail } from "./tail.js";
import { draw as drawTree } from "./tree.js";
import { filled, keysHtml, matrixView, percent, predictionHtml, treeHtml } from "./views.js";

const find = (id) => document.getElementById(id), on = (id, kind, heard) => find(id).addEventListener(kind, heard);
const folder = new URL(`${document.documentElement.lang}/`, document.baseURI).href;
const [scene, card] = await Promise.all(["scene.json", "model.json"].map(async (name) =>
  (await fetch(folder + name)).json()));
const { texts, answers } = scene, { injection } = card, pieces = new Pieces(card.pieces);
const options = { most: injection.max_triples, tailOnly: injection.tail_only, keepPlaces: true, longest: card.longest };
const MOST_ADDED = 1000, SUGGESTED = 6, PAUSE = 250;  // triples at once; tails; ms after a key
const AS_TRAINED = { edits: [], positions: "soft", visible: "tree" };
let state = { ...AS_TRAINED, text: scene.examples[0], token: null, cell: null, map: "" };

// The graph after edits, which are written as in a link to the Lab: [what, triple, new triple].
const graphs = new Map();
function graphOf({ edits }) {
  const lasting = edits.filter(([what]) => what !== "switch_off"), key = JSON.stringify(lasting);
  if (!graphs.has(key)) {
    let triples = scene.triples;
    for (const [what, triple, changed] of lasting) triples = what === "add" ? [...triples, triple]
      : triples.map((one) => idOf(one) === idOf(triple) ? changed : one);
    graphs.clear();
    graphs.set(key, new Graph(triples, injection.names));
  }
  return graphs.get(key).with(new Set(edits.filter(([what]) => what === "switch_off").map(([, one]) => idOf(one))));
}

const original = new Graph(scene.triples, injection.names), given = new Set(scene.triples.map(idOf));

// The model, in a thread of its own where there may be one.
let run = null, loading = null;
function load() {
  loading ??= (async () => {
    const tell = (share) => say("loading", filled(texts.loading, { share: Math.round(100 * share), size: (card.bytes / 1e6).toFixed(1) }));
    try {
      run = await inThread(tell);
    } catch {
      const here = await import("./worker.js");
      await here.load(folder, tell);
      ({ run } = here);
    }
    say("loading", "");
    performance.mark("kbert-model");
    draw();
  })().catch(() => { loading = null; say("loading", texts.failed); });
}

async function inThread(tell) {
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" }), asked = [];
  const ask = (what, given) => new Promise((made, failed) => {
    worker.postMessage({ number: asked.push({ made, failed }) - 1, what, given });
  });
  worker.onmessage = ({ data: { number, share, error, made } }) => {
    if (share !== undefined) tell(share);
    else if (number === undefined) performance.mark("kbert-words");  // all of them have come
    else if (error) asked[number].failed(new Error(error));
    else asked[number].made(made);
  };
  worker.onerror = () => { for (const one of asked) one.failed(new Error("no thread")); };
  await ask("load", folder);
  return (inputs) => ask("run", inputs);
}

// What the model says of a row; null while there is neither an answer nor a model.
const known = new Map();
async function predicted(row, how) {
  const key = [row.ids, row.soft, row.branch, row.anchor, how.positions, how.visible].join(";");
  if (!known.has(key)) {
    if (run) known.set(key, await run(inputsOf(row, how)));
    else if (answers[key]) return entitiesOf(row, answers[key], card.labels).entities;
    else { load(); return null; }
    if (known.size > 200) known.delete(known.keys().next().value);
  }
  return Object.assign(entitiesOf(row, known.get(key).scores, card.labels).entities, { attention: known.get(key).attention });
}

// Drawn

function say(where, text) { find(where).textContent = text; }

let latest = 0;
async function draw() {
  const number = ++latest, { text } = state, graph = graphOf(state);
  const row = rowOf(text, graph, pieces, options), codes = clauses(row, state.visible);
  const base = rowOf(text, original, pieces, options);
  drawTree(find("tree"), { group: "page", html: treeHtml(rowOf(text, graph.with(new Set()), pieces, options), row, codes,
    { isOn: (triple) => graph.isOn(triple), isNew: (triple) => !given.has(idOf(triple)), token: state.token,
      hard: state.positions === "hard", texts: scene.tree }) }, heard);
  if (!state.map) drawMap(row, codes, null);
  find("undo").disabled = !past.length;
  find("reset").disabled = !changed();
  say("note", noteOn(row));
  link().then((href) => { find("lab").href = href; });
  if (row.ids.length > card.longest) return;
  try {
    const [before, now] = [await predicted(base, AS_TRAINED), await predicted(row, state)];
    if (number !== latest) return;
    find("prediction").classList.toggle("waits", !now || !before);
    if (!now || !before) return;
    const sides = changed() ? [[texts.before, before], [texts.now, now]] : [[texts.now, now]];
    find("prediction").innerHTML = predictionHtml(row, sides, { types: scene.types, texts });
    find("prediction").dataset.said = now.map(({ label }) => label).join(" ");
    if (state.map && now.attention) drawMap(row, codes, now.attention);
    else if (state.map) load();
  } catch { say("loading", texts.failed); }
}

function drawMap(row, codes, attention) {
  find("keys").innerHTML = attention ? "" : keysHtml(codes, scene.matrix.cells);
  drawMatrix(find("matrix"), matrixView(row, codes, attention, { ...state, matrix: scene.matrix }), heard);
}

const changed = () => state.edits.length > 0 || state.positions !== "soft" || state.visible !== "tree";

function noteOn(row) {
  const letters = state.text.match(/\p{L}/gu) ?? [], own = new RegExp(`\\p{Script=${scene.script}}`, "u");
  if (!state.text.trim()) return texts.empty;
  if (row.trunk.length + 2 > card.longest) return filled(texts.long, { most: card.longest - 2, count: row.trunk.length });
  if (2 * letters.filter((c) => own.test(c)).length < letters.length) return texts.script;
  return row.full ? texts.full : row.nodes.length ? "" : texts.no_name;
}

async function link() {
  const shared = structuredClone(scene.shared), { positions, visible } = state;
  Object.assign(shared.scene, { sentences: [state.text], edits: state.edits, ablation: { positions, visible } });
  const packed = new Blob([JSON.stringify(shared)]).stream().pipeThrough(new CompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const value = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `${scene.lab}?scene=${value.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

// Done

const past = [];
function put(next) {
  state = next;
  if (find("text").value !== state.text) find("text").value = state.text;
  for (const id of ["positions", "visible"]) find(id).value = state[id];
  draw();
}

function change(next) {
  past.push(state);
  put({ ...state, ...next });
}

function heard({ do: what, triple, on: turned, tail, ...sent }) {
  if (what === "switch") {
    const rest = state.edits.filter(([kind, one]) => kind !== "switch_off" || idOf(one) !== idOf(triple));
    change({ edits: turned ? rest : [...rest, ["switch_off", triple]] });
  } else if (what === "tail") edit([["replace", triple, [triple[0], triple[1], tail]]]);
  else if (what === "ask") suggest(triple, sent);
  else if (what === "token" || what === "cell") {
    const { token = sent.looks, looks, at } = sent;
    put({ ...state, token: token === state.token && !looks ? null : token, cell: looks ? [looks, at] : null });
  }
}

// Adds triples or changes one, unless the graph has it already.
function edit(edits) {
  const has = new Set(graphOf(state).triples.map(idOf));
  const fresh = edits.filter((one) => one.at(-1).every(Boolean) && !has.has(idOf(one.at(-1))));
  say("note", "");
  if (fresh.length) change({ edits: [...state.edits, ...fresh] });
  if (fresh.length < edits.length) say("note", texts.there);
}

// The tails that a relation has, the commonest first, each with what would be predicted.
async function suggest(triple, { request, tails }) {
  const graph = graphOf(state), counts = new Map();
  for (const [, relation, tail] of scene.triples) if (relation === triple[1]) counts.set(tail, (counts.get(tail) ?? 0) + 1);
  const common = [...counts].sort((one, other) => other[1] - one[1]).map(([tail]) => tail);
  const asked = tails.length ? tails : common.slice(0, SUGGESTED);
  const answer = (outcomes) => drawTail(null, { request, tails: tails.length ? undefined : common, glosses: {}, asked, outcomes });
  answer({});
  for (const tail of asked) {
    const edits = [...state.edits, ["replace", triple, [...triple.slice(0, 2), tail]]];
    const row = rowOf(state.text, tail === triple[2] ? graph : graphOf({ edits }), pieces, options);
    const found = await predicted(row, state), mention = row.nodes.find(({ branches }) => branches.some(({ triple: [head] }) => head === triple[0]));
    const said = found?.find(({ start, end }) => mention && start < mention.end && end > mention.start);
    answer({ [tail]: [!found ? "" : said ? `${scene.types[said.label]} ${percent(said.p)}` : texts.nothing, false] });
  }
}

on("text", "input", () => {
  clearTimeout(find("text").later);
  find("text").later = setTimeout(() => change({ text: find("text").value, token: null, cell: null }), PAUSE);
});
for (const id of ["positions", "visible"]) on(id, "change", () => change({ [id]: find(id).value }));
on("map", "change", () => put({ ...state, map: find("map").value }));
on("undo", "click", () => put(past.pop()));
on("reset", "click", () => change(AS_TRAINED));
on("add", "submit", (event) => {
  event.preventDefault();
  const lines = find("triples").value.split("\n").filter((line) => line.trim());
  const triples = lines.map((line) => line.split(line.includes("\t") ? "\t" : /[,，]/).map((part) => part.trim()));
  if (lines.length > MOST_ADDED) say("note", filled(texts.many, { most: MOST_ADDED, count: lines.length }));
  else if (!lines.length || triples.some((triple) => triple.length !== 3 || !triple.every(Boolean))) say("note", texts.three);
  else edit(triples.map((triple) => ["add", triple]));
});
find("examples").append(...scene.examples.map((text) => {
  const button = document.createElement("button");
  button.textContent = text;
  button.onclick = () => change({ ...AS_TRAINED, text, token: null, cell: null });
  return button;
}));

find("text").value = state.text;
say("loading", "");
await draw();
play(document.body, scene.play);
document.documentElement.dataset.ready = "1";
if (!navigator.connection?.saveData) setTimeout(load, 1500);
