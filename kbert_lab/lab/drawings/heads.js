// Every layer's attention heads as small maps, a row a layer. The heads that read the triple that is
// followed are framed, and each has a bar as long as the share that it gives that triple's branch.
// It sends {do: "map", layer, head}.

import { bytes, drawScale, pixels, scaleColours, theme } from "./colours.js";
import { ARROWS, FONT, parts, sized } from "./elements.js";

const HTML = `<canvas role="application" tabindex="0"></canvas>
  <div class="foot"><div class="scale"><span class="low"></span>
  <i><b class="middle"></b></i><span class="high"></span></div>
  <div class="said" aria-live="polite"></div></div>`;
const LEFT = 24, TOP = 18, GAP = 8, BRANCH = "#e69f00";

export function draw(root, view, send) {
  const find = parts(root, HTML), canvas = find("canvas"), { ink, page, accent, dark } = theme(root);
  const { layers, heads, n, texts, chosen, shares, readers } = view;
  const colours = scaleColours(view.kind, dark), maps = sheet(view, colours);
  let size = 40, at = chosen.every((number) => number > 0) ? chosen : null;

  Object.assign(root.dataset, { layers, heads, n, kind: view.kind });
  canvas.setAttribute("aria-label", view.label);
  drawScale(find(".scale"), view, colours);

  function show() {
    if (!root.clientWidth) return;
    size = Math.max(14, Math.min(76, Math.floor((root.clientWidth - LEFT - 2) / heads) - GAP));
    Object.assign(root.dataset, { size, left: LEFT, top: TOP, gap: GAP });
    const ctx = sized(canvas, LEFT + heads * (size + GAP), TOP + layers * (size + GAP));
    Object.assign(ctx, { font: `12px ${FONT}`, fillStyle: ink, textAlign: "center",
      textBaseline: "middle" });
    for (let l = 1; l <= layers; l++) ctx.fillText(l, LEFT / 2 - 2, place(l, 1)[1] + size / 2);
    for (let h = 1; h <= heads; h++) ctx.fillText(h, place(1, h)[0] + size / 2, TOP / 2 - 1);
    ctx.imageSmoothingEnabled = n > size * (devicePixelRatio || 1);
    for (let l = 1; l <= layers; l++) for (let h = 1; h <= heads; h++) one(ctx, l, h);
    if (at && root.getRootNode().activeElement === canvas) frame(ctx, ...place(...at), accent, 3);
  }

  function one(ctx, l, h) {
    const [x, y] = place(l, h), [layer, head] = chosen;
    ctx.fillStyle = ink;
    ctx.globalAlpha = 0.12;
    ctx.fillRect(x, y, size, size);
    ctx.globalAlpha = 1;
    ctx.drawImage(maps, (h - 1) * n, (l - 1) * n, n, n, x, y, size, size);
    ctx.fillStyle = BRANCH;
    if (shares) ctx.fillRect(x, y + size + 2, size * shares[l - 1][h - 1], 3);
    if (readers.some(([a, b]) => a === l && b === h)) frame(ctx, x, y, BRANCH, 2);
    if (layer === l && head === h) frame(ctx, x, y, ink, 3);
    else if ((!layer || layer === l) && (!head || head === h)) frame(ctx, x, y, ink, 1);
  }

  function frame(ctx, x, y, colour, width) {
    for (const [paint, wide] of [[page, width + 2], [colour, width]]) {
      Object.assign(ctx, { strokeStyle: paint, lineWidth: wide });
      ctx.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
    }
  }

  function place(layer, head) {
    return [LEFT + (head - 1) * (size + GAP), TOP + (layer - 1) * (size + GAP)];
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const head = Math.floor((event.clientX - box.left - LEFT) / (size + GAP)) + 1;
    const layer = Math.floor((event.clientY - box.top - TOP) / (size + GAP)) + 1;
    return layer >= 1 && layer <= layers && head >= 1 && head <= heads ? [layer, head] : null;
  }

  function tell(where) {
    const [l, h] = where ?? [];
    const share = where && shares ? (100 * shares[l - 1][h - 1]).toFixed(1) : "";
    find(".said").textContent = where ? (shares ? texts.reads : texts.name)
      .replace("{layer}", l).replace("{head}", h).replace("{share}", share) : "";
  }

  function choose(where) {
    if (!where) return;
    at = where;
    send({ do: "map", layer: where[0], head: where[1] });
  }

  canvas.onmousemove = (event) => tell(under(event));
  canvas.onmouseleave = () => tell(null);
  canvas.onclick = (event) => choose(under(event));
  canvas.onfocus = canvas.onblur = show;
  canvas.onkeydown = (event) => {
    const move = ARROWS[event.key], within = (place, most) => Math.max(1, Math.min(most, place));
    if (event.key === "Enter") choose(at);
    if (!move) return;
    event.preventDefault();
    at = at ? [within(at[0] + move[0], layers), within(at[1] + move[1], heads)] : [1, 1];
    show();
    tell(at);
  };
  root.watcher?.disconnect();  // of the last run, which would draw what it was given
  root.watcher = new ResizeObserver(show);
  root.watcher.observe(root);
  show();
  root.dataset.ready = "1";
  return () => root.watcher.disconnect();
}

// All maps beside each other on one small canvas; they are drawn from there.
function sheet({ layers, heads, n, codes }, colours) {
  const made = document.createElement("canvas"), image = new ImageData(heads * n, layers * n);
  const points = new Uint32Array(image.data.buffer), painted = pixels(colours), all = bytes(codes);
  [made.width, made.height] = [heads * n, layers * n];
  let from = 0;
  for (let l = 0; l < layers; l++) for (let h = 0; h < heads; h++) for (let i = 0; i < n; i++) {
    const to = ((l * n + i) * heads + h) * n;
    for (let j = 0; j < n; j++) points[to + j] = painted[all[from++]];
  }
  made.getContext("2d").putImageData(image, 0, 0);
  return made;
}
