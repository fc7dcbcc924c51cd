// Every layer's attention heads as small maps, a row a layer; below colours.js.

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".root");
  const canvas = root.querySelector("canvas");
  const said = root.querySelector(".said");
  const { ink, page, accent, dark } = theme(root);
  const { layers, heads, n, texts } = data;
  const codes = bytes(data.codes);
  const colours = scaleColours(data.kind, dark);
  const maps = paint();
  const LEFT = 24, TOP = 18, GAP = 4;
  let size = 40, at = data.chosen.every((number) => number > 0) ? data.chosen : null;

  Object.assign(root.dataset, { layers, heads, n, kind: data.kind });
  canvas.setAttribute("aria-label", data.label);
  drawScale(root.querySelector(".scale"), data, colours);

  // All maps beside each other on one small canvas; they are drawn from there.
  function paint() {
    const sheet = document.createElement("canvas");
    sheet.width = heads * n;
    sheet.height = layers * n;
    const image = new ImageData(heads * n, layers * n);
    const points = new Uint32Array(image.data.buffer), painted = pixels(colours);
    let from = 0;
    for (let l = 0; l < layers; l++) for (let h = 0; h < heads; h++) for (let i = 0; i < n; i++) {
      const to = ((l * n + i) * heads + h) * n;
      for (let j = 0; j < n; j++) points[to + j] = painted[codes[from++]];
    }
    sheet.getContext("2d").putImageData(image, 0, 0);
    return sheet;
  }

  function draw() {
    if (!root.clientWidth) return;
    size = Math.max(14, Math.min(76, Math.floor((root.clientWidth - LEFT - 2) / heads) - GAP));
    Object.assign(root.dataset, { size, left: LEFT, top: TOP, gap: GAP });
    const width = LEFT + heads * (size + GAP), height = TOP + layers * (size + GAP);
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = '12px "Source Sans", "Noto Sans CJK SC", sans-serif';
    ctx.fillStyle = ink;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (let l = 1; l <= layers; l++) ctx.fillText(l, LEFT / 2 - 2, place(l, 1)[1] + size / 2);
    for (let h = 1; h <= heads; h++) ctx.fillText(h, place(1, h)[0] + size / 2, TOP / 2 - 1);
    ctx.imageSmoothingEnabled = n > size * ratio;
    for (let l = 1; l <= layers; l++) for (let h = 1; h <= heads; h++) {
      const [x, y] = place(l, h);
      ctx.globalAlpha = 0.12;
      ctx.fillRect(x, y, size, size);
      ctx.globalAlpha = 1;
      ctx.drawImage(maps, (h - 1) * n, (l - 1) * n, n, n, x, y, size, size);
      const [layer, head] = data.chosen;
      if (layer === l && head === h) frame(ctx, x, y, ink, 3);
      else if ((layer === 0 || layer === l) && (head === 0 || head === h)) {
        frame(ctx, x, y, ink, 1);
      }
    }
    if (at && document.activeElement && root.getRootNode().activeElement === canvas) {
      frame(ctx, ...place(...at), accent, 3);
    }
  }

  function frame(ctx, x, y, colour, width) {
    ctx.strokeStyle = page;
    ctx.lineWidth = width + 2;
    ctx.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
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
    said.textContent = where
      ? texts.name.replace("{layer}", where[0]).replace("{head}", where[1]) : "";
  }

  canvas.onmousemove = (event) => tell(under(event));
  canvas.onmouseleave = () => tell(null);
  canvas.onclick = (event) => { const where = under(event); if (where) choose(where); };
  canvas.onfocus = canvas.onblur = draw;
  canvas.onkeydown = (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter" && at) { choose(at); return; }
    const move = step[event.key];
    if (!move) return;
    event.preventDefault();
    at = at ? [within(at[0] + move[0], layers), within(at[1] + move[1], heads)] : [1, 1];
    draw();
    tell(at);
  };

  function choose(where) {
    at = where;
    setTriggerValue("map", where);
  }
  function within(value, most) { return Math.max(1, Math.min(most, value)); }

  root.watcher?.disconnect();  // of the last run, which would draw what it was given
  root.watcher = new ResizeObserver(draw);
  root.watcher.observe(root);
  draw();
  root.dataset.ready = "1";
  return () => root.watcher.disconnect();
}
