// Reads texts as the page does, for test_page_equality.py: node page_rows.mjs FOLDER < asked > answers
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const folder = process.argv[2], load = (name) => import(`${folder}/${name}.js`);
const { Graph } = await load("names"), { Pieces } = await load("pieces");
const { each, inputsOf, rowOf } = await load("rows"), { Model, entitiesOf } = await load("model");
const { triples, texts, scored } = JSON.parse(readFileSync(0, "utf8"));
const card = JSON.parse(readFileSync(`${folder}/model.json`, "utf8"));
const unpacked = (name) => new Uint8Array(gunzipSync(readFileSync(`${folder}/${name}.bin`))).buffer;
const model = new Model(card, unpacked("layers")), pieces = new Pieces(card.pieces);
const graph = new Graph(triples, card.injection.names);
const options = { most: card.injection.max_triples, keepPlaces: false, longest: card.longest };

const answers = texts.map((text, number) => {
  const read = rowOf(text, graph, pieces, options);
  const row = ["id", "soft", "branch", "anchor", "text"].map((name) => each(read, name));
  if (number >= scored) return { row };
  const inputs = inputsOf(read, { positions: "soft", visible: "tree" });
  for (const part of model.missing(row[0])) model.add(part, unpacked(`words-${part}`));
  const { scores } = model.run(inputs);
  const entities = entitiesOf(read, scores, card.labels).map((one) => [one.start, one.end, one.label]);
  return { row, scores: [...scores], entities };
});
process.stdout.write(JSON.stringify(answers));
