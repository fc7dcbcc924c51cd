// The model in a thread of its own, so that the page stays quick. It is named after the folder of its
// files. It is sent [number, inputs], and sends ["answer", [number, what the model says]].

import { Model } from "./model.js";

async function unpacked(file, tell) {
  const response = await fetch(`${name}${file}.bin`);
  if (!response.ok) throw new Error(`${file}: ${response.status}`);
  const counted = new TransformStream({ transform(part, to) { tell?.(part.length); to.enqueue(part); } });
  const plain = response.body.pipeThrough(counted).pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

async function load() {
  const card = await (await fetch(`${name}model.json`)).json();
  let size = 0;
  const tell = (more) => postMessage(["share", Math.min(1, (size += more) / card.bytes)]);
  return new Model(card, await unpacked("layers", tell));
}

async function take(parts) {
  const own = await model;
  await Promise.all(parts.map(async (part) => own.add(part, await unpacked(`words-${part}`))));
}

const model = load();
onmessage = async ({ data: [number, inputs] }) => {
  try {
    const own = await model;
    await take(own.missing(inputs.ids));
    postMessage(["answer", [number, own.run(inputs)]]);
  } catch { postMessage(["answer", [number, null]]); }
};

// Then, unless data is to be saved, the whole vocabulary, so that it works without a line.
try {
  const { rows, count, parts } = await model;
  postMessage(["model"]);
  if (!navigator.connection?.saveData) {
    for (let part = 0; part * rows < count; part++) await take([part].filter((one) => !parts.has(one)));
    postMessage(["words"]);
  }
} catch { postMessage(["failed"]); }
