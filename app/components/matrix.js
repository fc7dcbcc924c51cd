// A square of cells on a canvas: hover, click and arrow keys name a cell.
// Texts are drawn on the canvas or set as textContent, never as HTML.

const LEVELS = 250, ONLY_BEFORE = 253, ONLY_AFTER = 254, HIDDEN = 255;
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678",
  "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
const CATEGORY = ["#7fb2d2", "#e69f00", "#009e73", "#98a2aa", "#d55e00", "#0072b2"];
const KEPT = 6;

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".root");
  const scroll = root.querySelector(".scroll");
  const base = root.querySelector("canvas.base");
  const over = root.querySelector("canvas.over");
  const tip = root.querySelector(".tip");
  const style = getComputedStyle(root);
  const ink = style.getPropertyValue("--st-text-color").trim() || "#222222";
  const page = style.getPropertyValue("--st-background-color").trim() || "#ffffff";
  const dark = luminance(page) < 0.4;
  const { n, tokens, status, roles, groups, names } = data;
  const codes = Uint8Array.from(atob(data.codes), (c) => c.charCodeAt(0));
  const colours = palette();
  let cell = 16, left = 40, top = 40;
  let at = data.cell;

  root.dataset.n = n;
  root.dataset.kind = data.kind;
  root.dataset.sum = checksum(codes);
  root.dataset.tokens = tokens.join(" ");
  over.setAttribute("aria-label", data.label);

  function palette() {
    const table = new Array(256);
    for (let i = 0; i < LEVELS; i++) {
      const x = i / (LEVELS - 1);
      table[i] = data.kind === "difference"
        ? mix([[0, 114, 178], dark ? [42, 51, 59] : [250, 250, 250], [213, 94, 0]], x)
        : mix(CIVIDIS.map(rgb), x);
    }
    if (data.categorical) {
      CATEGORY.forEach((c, i) => { table[i] = rgb(c); });
      table[0] = dark ? [52, 112, 150] : rgb("#8dbcd8");
      table[KEPT] = dark ? [62, 73, 82] : [222, 228, 233];
    }
    table[ONLY_AFTER] = rgb("#cc79a7");
    table[ONLY_BEFORE] = dark ? [96, 66, 84] : [240, 218, 230];
    return table;
  }

  function layout() {
    const ctx = base.getContext("2d");
    ctx.font = "13px " + font();
    let widest = 0;
    const names = n * 10 > 620 ? runs().map((run) => run[1]) : tokens.map((_, i) => label(i));
    for (const text of names) widest = Math.max(widest, ctx.measureText(text).width);
    left = Math.min(96, Math.ceil(widest) + 16);
    top = left;
    const room = Math.max(160, root.clientWidth - left - 4);
    cell = Math.max(3, Math.min(27, room / n, Math.max(520 / n, 16)));
    if (cell > 8) cell = Math.floor(cell);
  }

  function label(i) {
    const mark = cell < 16 ? "" : { added: "+ ", removed: "− ", same: "" }[status[i]];
    const text = tokens[i];
    return mark + (text.length > 12 ? text.slice(0, 11) + "…" : text);
  }

  function draw() {
    if (!root.clientWidth) return;
    layout();
    Object.assign(root.dataset, { cell, left, top });
    const width = left + n * cell + 2, height = top + n * cell + 2;
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [base, over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = width + "px";
      canvas.style.height = height + "px";
    }
    const ctx = base.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    const small = document.createElement("canvas");
    small.width = small.height = n;
    const sctx = small.getContext("2d");
    const image = sctx.createImageData(n, n);
    for (let i = 0; i < n * n; i++) {
      const c = codes[i], colour = colours[c];
      if (c === HIDDEN || !colour) continue;
      image.data[4 * i] = colour[0];
      image.data[4 * i + 1] = colour[1];
      image.data[4 * i + 2] = colour[2];
      image.data[4 * i + 3] = 255;
    }
    sctx.putImageData(image, 0, 0);
    hatch(ctx);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(small, left, top, n * cell, n * cell);
    if (cell >= 7) lines(ctx);
    if (cell >= 11) marks(ctx);
    labels(ctx);
    highlight(null);
  }

  function hatch(ctx) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const t = tile.getContext("2d");
    t.strokeStyle = ink;
    t.globalAlpha = dark ? 0.3 : 0.24;
    t.lineWidth = 1;
    t.beginPath();
    t.moveTo(-1, 7); t.lineTo(7, -1);
    t.moveTo(-4, 4); t.lineTo(4, -4);
    t.moveTo(2, 10); t.lineTo(10, 2);
    t.stroke();
    ctx.fillStyle = ctx.createPattern(tile, "repeat");
    ctx.fillRect(left, top, n * cell, n * cell);
  }

  function lines(ctx) {
    ctx.strokeStyle = page;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let i = 0; i <= n; i++) {
      const x = Math.round(left + i * cell) + 0.5, y = Math.round(top + i * cell) + 0.5;
      ctx.moveTo(x, top); ctx.lineTo(x, top + n * cell);
      ctx.moveTo(left, y); ctx.lineTo(left + n * cell, y);
    }
    ctx.stroke();
  }

  function marks(ctx) {
    ctx.font = "11px sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (let i = 0; i < n * n; i++) {
      const c = codes[i];
      if (c !== ONLY_AFTER && c !== ONLY_BEFORE) continue;
      ctx.fillStyle = c === ONLY_AFTER ? "#ffffff" : ink;
      const x = left + (i % n + 0.5) * cell, y = top + (Math.floor(i / n) + 0.5) * cell;
      ctx.fillText(c === ONLY_AFTER ? "+" : "−", x, y);
    }
  }

  function labels(ctx) {
    const roomy = cell >= 10;
    ctx.font = (roomy ? Math.min(13, cell - 1) : 10) + "px " + font();
    for (let i = 0; i < n; i++) {
      ctx.fillStyle = roles[i] === 1 ? "#e69f00" : "#0072b2";
      ctx.globalAlpha = roles[i] === 0 ? 0.45 : 1;
      const size = Math.max(1, cell - (cell > 6 ? 1 : 0));
      ctx.fillRect(left - 5, top + i * cell, 3, size);
      ctx.fillRect(left + i * cell, top - 5, size, 3);
    }
    ctx.globalAlpha = 1;
    ctx.fillStyle = ink;
    for (const [place, text] of roomy ? tokens.map((_, i) => [i + 0.5, label(i)]) : runs()) {
      ctx.textAlign = "right";
      ctx.textBaseline = "middle";
      ctx.fillText(text, left - 9, top + place * cell, left - 10);
      ctx.save();
      ctx.translate(left + place * cell, top - 9);
      if ([...text].length > 1) {
        ctx.rotate(-Math.PI / 2);
        ctx.textAlign = "left";
        ctx.fillText(text, 0, 0, top - 10);
      } else {
        ctx.textAlign = "center";
        ctx.textBaseline = "bottom";
        ctx.fillText(text, 0, 1);
      }
      ctx.restore();
    }
  }

  // Where there is no room for every token: whole mentions and branches, by name.
  function runs() {
    const found = [];
    let free = -1;
    for (let i = 0; i < n; ) {
      let end = i + 1;
      while (groups[i] && end < n && groups[end] === groups[i]) end++;
      const middle = (i + end) / 2;
      if ((groups[i] || i === 0 || i === n - 1) && middle * cell - 5 >= free) {
        const text = tokens.slice(i, end).reduce((all, next) =>
          all + (/[\w]$/.test(all) && /^[\w]/.test(next) ? " " : "") + next);
        found.push([middle, text.length > 12 ? text.slice(0, 11) + "…" : text]);
        free = middle * cell + 5;
      }
      i = end;
    }
    return found;
  }

  function highlight(hover) {
    const ratio = window.devicePixelRatio || 1;
    const ctx = over.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, over.width, over.height);
    if (hover) {
      ctx.fillStyle = ink;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(0, top + hover[0] * cell, left + n * cell, cell);
      ctx.fillRect(left + hover[1] * cell, 0, cell, top + n * cell);
      ctx.globalAlpha = 1;
      box(ctx, hover, 1.5);
    }
    if (at) box(ctx, at, 3);
  }

  function box(ctx, where, width) {
    const size = Math.max(cell, 5);
    const x = left + where[1] * cell, y = top + where[0] * cell;
    ctx.lineWidth = width + 2;
    ctx.strokeStyle = page;
    ctx.strokeRect(x, y, size, size);
    ctx.lineWidth = width;
    ctx.strokeStyle = ink;
    ctx.strokeRect(x, y, size, size);
  }

  function place(event) {
    const frame = over.getBoundingClientRect();
    const j = Math.floor((event.clientX - frame.left - left) / cell);
    const i = Math.floor((event.clientY - frame.top - top) / cell);
    return i >= 0 && j >= 0 && i < n && j < n ? [i, j] : null;
  }

  function tell(where, x, y) {
    if (!where) { tip.hidden = true; return; }
    const c = codes[where[0] * n + where[1]];
    const special = c >= ONLY_BEFORE || data.categorical;
    const value = data.low + (c / (LEVELS - 1)) * (data.high - data.low);
    const sign = data.kind === "difference" && value > 0 ? "+" : "";
    tip.querySelector("b").textContent = tokens[where[0]] + " → " + tokens[where[1]];
    tip.querySelector("span").textContent = special
      ? names[c] : sign + (100 * value).toFixed(1) + " %";
    tip.hidden = false;
    const frame = root.getBoundingClientRect();
    const right = x - frame.left + tip.offsetWidth + 24 > frame.width;
    tip.style.left = (x - frame.left + (right ? -tip.offsetWidth - 12 : 14)) + "px";
    tip.style.top = (y - frame.top + 14) + "px";
  }

  function choose(where) {
    at = where;
    highlight(null);
    setTriggerValue("cell", where);
  }

  over.onmousemove = (event) => {
    const where = place(event);
    highlight(where);
    tell(where, event.clientX, event.clientY);
  };
  over.onmouseleave = () => { highlight(null); tip.hidden = true; };
  over.onclick = (event) => { const where = place(event); if (where) choose(where); };
  over.onkeydown = (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter" && at) { choose(at); return; }
    const move = step[event.key];
    if (!move || !n) return;
    event.preventDefault();
    const from = at || [0, 0];
    at = [clamp(from[0] + move[0]), clamp(from[1] + move[1])];
    highlight(null);
    const frame = over.getBoundingClientRect();
    tell(at, frame.left + left + at[1] * cell, frame.top + top + (at[0] + 1) * cell);
  };
  over.onblur = () => { tip.hidden = true; };

  function clamp(value) { return Math.max(0, Math.min(n - 1, value)); }
  function font() {
    return '"Source Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
  }

  scale();
  function scale() {
    const bar = root.querySelector(".scale");
    bar.hidden = data.categorical;
    if (data.categorical) return;
    const stops = [];
    for (let i = 0; i <= 10; i++) {
      stops.push("rgb(" + colours[Math.round(i / 10 * (LEVELS - 1))].join(",") + ")");
    }
    bar.querySelector("i").style.background = `linear-gradient(to right, ${stops.join(",")})`;
    const sign = data.kind === "difference" ? "+" : "";
    bar.querySelector(".low").textContent =
      (100 * data.low).toFixed(data.low ? 1 : 0).replace("-", "−") + " %";
    bar.querySelector(".high").textContent = sign + (100 * data.high).toFixed(1) + " %";
  }

  const watcher = new ResizeObserver(() => draw());
  watcher.observe(root);
  draw();
  scroll.dataset.ready = "1";
  return () => watcher.disconnect();
}

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function mix(stops, x) {
  const place = x * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(place));
  return stops[i].map((v, k) => Math.round(v + (stops[i + 1][k] - v) * (place - i)));
}

function luminance(colour) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = colour;
  ctx.fillRect(0, 0, 1, 1);
  const [r, g, b] = ctx.getImageData(0, 0, 1, 1).data;
  return (0.3 * r + 0.59 * g + 0.11 * b) / 255;
}

function checksum(bytes) {
  let sum = 7;
  for (const byte of bytes) sum = (sum * 31 + byte) >>> 0;
  return sum.toString(16);
}
