// Every layer's attention heads as small maps, a row a layer. The heads that read the triple that is
// followed are framed, and each has a bar as long as the share that it gives that triple's branch.
// It sends {do: "map", layer, head}.

import { bytes, drawScale, pixels, scaleColours, theme } from "./colours.js";
import { ARROWS, filled, made, parts } from "./elements.js";

const HTML = `<div class="maps" role="group"></div>
  <div class="foot"><div class="scale"><span class="low"></span>
  <i><b class="middle"></b></i><span class="high"></span></div>
  <div class="said"></div></div>`;
const COARSE = 40;  // cells a side of a map that is larger on the page

export function draw(root, view, send) {
  const find = parts(root, HTML), maps = find(".maps"), { layers, heads, n, texts, shares } = view;
  const colours = scaleColours(view.kind, theme(root).dark), painted = pixels(colours);
  const codes = bytes(view.codes), count = (size) => Array.from({ length: size }, (_, i) => i + 1);
  const at = [...maps.querySelectorAll("button")].findIndex((button) => button.matches(":focus"));

  function mapOf(layer, head) {
    const first = ((layer - 1) * heads + head - 1) * n * n, share = shares?.[layer - 1][head - 1];
    const canvas = made("canvas", { width: n, height: n, class: n < COARSE ? "coarse" : "" });
    const image = new ImageData(n, n), points = new Uint32Array(image.data.buffer);
    codes.subarray(first, first + n * n).forEach((code, i) => { points[i] = painted[code]; });
    canvas.getContext("2d").putImageData(image, 0, 0);
    const name = filled(shares ? texts.reads : texts.name,
      { layer, head, share: (100 * share).toFixed(1) });
    const picks = [layer, head].map((own, i) => !view.chosen[i] || view.chosen[i] === own);
    const button = made("button", { "aria-label": name, tabindex: -1, class: [
      picks.every(Boolean) ? view.chosen.every(Boolean) ? "chosen" : "among" : "",
      view.readers.some(([a, b]) => a === layer && b === head) ? "reads" : ""].join(" ") }, canvas);
    if (shares) button.append(made("i", { style: `width: ${100 * share}%` }));
    button.onclick = () => send({ do: "map", layer, head });
    button.onfocus = button.onmouseover = () => { find(".said").textContent = name; };
    return button;
  }

  Object.assign(root.dataset, { layers, heads, n, kind: view.kind });
  maps.setAttribute("aria-label", view.label);
  maps.style.setProperty("--heads", heads);
  maps.replaceChildren(made("b"), ...count(heads).map((head) => made("b", {}, head)),
    ...count(layers).flatMap((layer) =>
      [made("b", {}, layer), ...count(heads).map((head) => mapOf(layer, head))]));
  drawScale(find(".scale"), view, colours);
  const buttons = [...maps.querySelectorAll("button")];
  (buttons[at] ?? maps.querySelector(".chosen") ?? buttons[0]).tabIndex = 0;
  buttons[at]?.focus();
  maps.onkeydown = (event) => {
    const [down, right] = ARROWS[event.key] ?? [0, 0], own = buttons.indexOf(event.target);
    const column = own % heads + right, next = column in count(heads) && buttons[own + down * heads + right];
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    if (next) next.focus();
  };
  root.dataset.ready = "1";
}
