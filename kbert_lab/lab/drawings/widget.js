// The Lab in a cell of a notebook, as anywidget shows it: the kernel sends a view, and is told what
// is done in the drawings; see kbert_lab/lab/widget.py.

import { theme } from "./colours.js";
import { made } from "./elements.js";
import { draw as drawMatrix } from "./matrix.js";
import { draw as drawTails } from "./tail.js";
import { draw as drawTree } from "./tree.js";

const PATIENCE = 8000;  // ms for an answer
const THEMES = ["data-jp-theme-light", "data-vscode-theme-kind", "theme"];

export function render({ model, el }) {
  const undo = made("button"), map = made("select"), said = made("p", { role: "status" });
  const prediction = made("div"), tree = made("div"), matrix = made("div", { class: "root" });
  const frame = made("div", { class: "kb-matrix" }, map, matrix);
  el.classList.add("kb-widget");
  el.dataset.lmSuppressShortcuts = "true";  // JupyterLab would take the arrow keys
  el.append(made("div", { class: "kb-left" }, prediction, tree, said, undo), frame);

  let late;
  const send = (message) => {
    clearTimeout(late);
    late = setTimeout(() => { said.textContent = model.get("view").texts.late; }, PATIENCE);
    model.send(message);
  };
  undo.onclick = () => send({ do: "undo" });
  map.onchange = () => send({ do: "matrix", kind: map.value });

  const show = () => {
    clearTimeout(late);
    const view = model.get("view");
    el.style.colorScheme = theme(el).dark ? "dark" : "light";
    prediction.innerHTML = view.prediction;  // its texts are escaped in Python
    drawTree(tree, view.tree, send);
    said.textContent = view.said;
    undo.textContent = view.texts.undo;
    undo.hidden = !view.undo;
    map.replaceChildren(...view.maps.map(([value, name]) => made("option", { value }, name)));
    map.setAttribute("aria-label", view.texts.map);
    frame.hidden = !view.matrix;
    map.hidden = view.maps.length < 2;
    if (!view.matrix) return;
    map.value = view.matrix.kind;
    drawMatrix(matrix, view.matrix, send);
  };
  const answer = (message) => { clearTimeout(late); drawTails(null, message); };
  const sized = new ResizeObserver(() => { sized.disconnect(); show(); });  // once it is on the page
  const themed = new MutationObserver(show);
  sized.observe(el);
  themed.observe(document.body, { attributeFilter: THEMES });
  model.on("change:view", show);
  model.on("msg:custom", answer);
  return () => { themed.disconnect(); model.off("change:view", show); model.off("msg:custom", answer); };
}
