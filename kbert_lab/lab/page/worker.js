// The model in a thread of its own, so that the page stays quick: {load} or {run}, each with a number
// that the answer repeats. Where a page may have no such thread, it calls the same functions.

import { Model } from "./model.js";

let model, from;

// The layers; then, unless data is to be saved, the whole vocabulary, so that it works without a line.
export async function load(folder, tell = () => {}) {
  from = folder;
  const card = await (await fetch(`${folder}model.json`)).json();
  let size = 0;
  const layers = await unpacked("layers", (more) => tell(Math.min(1, (size += more) / card.bytes)));
  model = new Model(card, layers);
  if (!navigator.connection?.saveData) follow(Math.ceil(card.count / card.rows)).catch(() => {});
}

async function follow(parts) {
  for (let part = 0; part < parts; part++) await take([part].filter((one) => !model.parts.has(one)));
  if (globalThis.WorkerGlobalScope) postMessage({});
}

function take(parts) {
  return Promise.all(parts.map(async (part) => model.add(part, await unpacked(`words-${part}`))));
}

async function unpacked(name, tell) {
  const response = await fetch(`${from}${name}.bin`);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  const counted = new TransformStream({ transform(part, to) { tell?.(part.length); to.enqueue(part); } });
  const plain = response.body.pipeThrough(counted).pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

export async function run(inputs) {
  await take(model.missing(inputs.ids));
  return model.run(inputs);
}

if (globalThis.WorkerGlobalScope) onmessage = async ({ data: { number, what, given } }) => {
  const answer = (rest) => postMessage({ number, ...rest });
  try {
    answer({ made: await { load, run }[what](given, (share) => answer({ share })) });
  } catch (error) { answer({ error: String(error) }); }
};
