// A square of cells on a canvas: hover, click and arrow keys name a cell; below colours.js.
// The canvas is as large as its window; a large matrix scrolls under its own row and column
// names. Texts are drawn on the canvas or set as textContent, never as HTML.

const ONLY_BEFORE = 253, ONLY_AFTER = 254;
const CATEGORY = ["#7fb2d2", "#e69f00", "#009e73", "#98a2aa", "#d55e00", "#0072b2"];
const BRANCH = 1, LINK = 2, KEPT = 6, FINE = 65000;
const BLOCKED = 7, OPENED = 8, PART_BLOCKED = 9, PART_OPENED = 10;  // by interventions
const ZOOM = 1.4, LARGEST = 32;

export default function drawMatrix(component) {
  const { data: [data], parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".root");
  const scroll = root.querySelector(".scroll");
  const stack = root.querySelector(".stack");
  const base = root.querySelector("canvas.base");
  const over = root.querySelector("canvas.over");
  const tip = root.querySelector(".tip");
  const said = root.querySelector(".said");
  const reason = root.querySelector(".why");
  const { ink, page, accent, dark } = theme(root);
  const { n, tokens, status, roles, groups, names, texts } = data;
  const { codes, shares } = unpacked();
  const mayHide = shares && data.kind === "attention";
  const colours = palette();
  const small = document.createElement("canvas");  // a pixel a cell
  small.width = small.height = n;
  let held = null;  // made when the threshold is first moved
  let cell = 16, left = 40, top = 40;
  let at = data.cell;

  // What the visitor set here and Python never hears of; it outlives a rerun.
  const own = root.own ??= { zoom: 0, mass: 100, token: null };

  root.dataset.n = n;
  root.dataset.kind = data.kind;
  root.dataset.sum = checksum(codes);
  root.dataset.tokens = tokens.join(" ");
  over.setAttribute("aria-label", data.label);

  // Categories come as bytes; values in 16 bit, with kinds of cell above them.
  function unpacked() {
    const raw = bytes(data.cells);
    if (data.categorical) return { codes: raw, shares: null };
    const fine = new Uint16Array(raw.buffer), codes = new Uint8Array(n * n);
    const shares = new Float32Array(n * n);
    for (let i = 0; i < n * n; i++) {
      codes[i] = fine[i] > FINE ? fine[i] - FINE : Math.round(fine[i] / FINE * (LEVELS - 1));
      shares[i] = fine[i] > FINE ? 0 : data.low + fine[i] / FINE * (data.high - data.low);
    }
    return { codes, shares };
  }

  // Per cell how many whole per cent of its row's mass the larger cells hold; of equal cells
  // the first counts as larger. The fewest cells that hold p per cent are those below p.
  function heldByLarger() {
    const held = new Uint8Array(n * n), order = new Uint32Array(n);
    for (let i = 0; i < n * n; i += n) {
      let whole = 0, sum = 0;
      for (let j = 0; j < n; j++) {
        const fine = Math.round(shares[i + j] / data.high * FINE);
        order[j] = (FINE - fine) * 65536 + j;  // sorts by share, then by place
        whole += fine;
      }
      for (const key of order.sort()) {
        const j = key % 65536;
        held[i + j] = Math.floor(100 * sum / (whole || 1));
        sum += FINE - (key - j) / 65536;
      }
    }
    return held;
  }

  function palette() {
    const table = scaleColours(data.kind, dark);
    if (data.categorical) {
      CATEGORY.forEach((c, i) => { table[i] = rgb(c); });
      table[0] = dark ? [52, 112, 150] : rgb("#8dbcd8");
      table[KEPT] = dark ? [62, 73, 82] : [222, 228, 233];
      table[BLOCKED] = table[PART_BLOCKED] = dark ? [74, 44, 30] : [250, 222, 203];
      table[OPENED] = table[PART_OPENED] = dark ? [122, 115, 24] : [243, 233, 107];
    }
    table[ONLY_AFTER] = dark ? [128, 78, 105] : [226, 180, 206];
    table[ONLY_BEFORE] = dark ? [80, 58, 71] : [243, 228, 237];
    return table;
  }

  // One pixel a cell; done anew where the threshold changes.
  function paint() {
    const image = new ImageData(n, n);
    const points = new Uint32Array(image.data.buffer);
    const painted = pixels(colours), blank = pixels([pixel(page)])[0];
    const below = mayHide && own.mass < 100 ? held ??= heldByLarger() : null;
    let kept = 0;  // of the cells that hold a value
    for (let i = 0; i < n * n; i++) {
      const code = codes[i];
      if (code === HIDDEN) continue;
      const counts = !below || below[i] < own.mass;
      points[i] = counts || code >= ONLY_BEFORE ? painted[code] : blank;  // seen, not coloured
      if (counts && code < ONLY_BEFORE) kept++;
    }
    small.getContext("2d").putImageData(image, 0, 0);
    return kept;
  }

  function layout() {
    const ctx = base.getContext("2d");
    ctx.font = "13px " + font();
    let widest = 0;
    const shown = n * 10 > 620 ? runs(10).map((run) => run[1]) : tokens.map((_, i) => label(i));
    for (const text of shown) widest = Math.max(widest, ctx.measureText(text).width);
    left = Math.min(96, Math.ceil(widest) + 16);
    top = left;
    const room = Math.max(160, root.clientWidth - left - 4);
    const tall = Math.min(HEIGHT, Math.max(320, window.innerHeight - above())) - top - 4;
    const fit = Math.min(27, room / n, Math.max(tall / n, 3));
    cell = own.zoom === "fit" ? Math.min(fit, (HEIGHT - top - 4) / n)
      : Math.min(LARGEST, Math.max(3, fit) * ZOOM ** own.zoom);
    if (cell > 8) cell = Math.floor(cell);
  }

  // What stands above the cells on the page, and below them: while the page is built, and from
  // what a visitor does first on as it was then, for as long as the window stays as it is.
  function above() {
    if (data.kept) return BAR + BELOW;
    const size = `${window.innerWidth} ${window.innerHeight}`;
    if (own.window !== size) Object.assign(own, { window: size, fixed: false });
    if (!own.fixed) {
      const page = document.querySelector('[data-testid="stMain"]');  // root is in a shadow tree
      own.above = root.getBoundingClientRect().top + (page ? page.scrollTop : 0) + BELOW;
    }
    return own.above;
  }

  function label(i) {
    const mark = cell < 16 ? "" : { added: "+ ", removed: "− ", same: "" }[status[i]];
    const text = tokens[i];
    return mark + (text.length > 12 ? text.slice(0, 11) + "…" : text);
  }

  // Set the size of everything, then draw what is in the window.
  function draw() {
    if (!root.clientWidth) return;
    layout();
    const whole = [left + n * cell + 2, top + n * cell + 2];
    stack.style.width = whole[0] + "px";
    stack.style.height = whole[1] + "px";
    const width = Math.min(whole[0], scroll.clientWidth);
    const height = Math.min(whole[1], scroll.clientHeight);
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [base, over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = width + "px";
      canvas.style.height = height + "px";
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    Object.assign(root.dataset, { cell, left, top });
    root.querySelector(".zoom").hidden = cell >= 16 && own.zoom === 0;
    drawWindow();
  }

  // The places in the window: first and last row, first and last column, and where 0,0 is drawn.
  function inWindow() {
    const x = left - scroll.scrollLeft, y = top - scroll.scrollTop;
    const width = parseFloat(base.style.width), height = parseFloat(base.style.height);
    return {
      x, y, width, height,
      rows: [clamp(Math.floor((top - y) / cell)), clamp(Math.floor((height - y) / cell))],
      columns: [clamp(Math.floor((left - x) / cell)), clamp(Math.floor((width - x) / cell))],
    };
  }

  function drawWindow() {
    const ctx = base.getContext("2d");
    const view = inWindow();
    ctx.clearRect(0, 0, view.width, view.height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, view.width - left, view.height - top);
    ctx.clip();
    hatch(ctx, view);
    ctx.imageSmoothingEnabled = cell < 1;
    ctx.drawImage(small, view.x, view.y, n * cell, n * cell);
    if (cell >= 7) lines(ctx, view);
    if (cell >= 11) marks(ctx, view);
    if (cell >= 5 && data.categorical) crossings(ctx, view);
    ctx.restore();
    labels(ctx, view);
    highlight(null);
  }

  function hatch(ctx, view) {
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
    const pattern = ctx.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().translate(view.x, view.y));
    ctx.fillStyle = pattern;
    ctx.fillRect(view.x, view.y, n * cell, n * cell);
  }

  function lines(ctx, view) {
    ctx.strokeStyle = page;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let i = view.rows[0]; i <= view.rows[1] + 1; i++) {
      const y = Math.round(view.y + i * cell) + 0.5;
      ctx.moveTo(left, y); ctx.lineTo(view.x + n * cell, y);
    }
    for (let j = view.columns[0]; j <= view.columns[1] + 1; j++) {
      const x = Math.round(view.x + j * cell) + 0.5;
      ctx.moveTo(x, top); ctx.lineTo(x, view.y + n * cell);
    }
    ctx.stroke();
  }

  function marks(ctx, view) {
    ctx.font = "11px sans-serif";
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (let i = view.rows[0]; i <= view.rows[1]; i++) {
      for (let j = view.columns[0]; j <= view.columns[1]; j++) {
        const c = codes[i * n + j];
        if (c !== ONLY_AFTER && c !== ONLY_BEFORE) continue;
        ctx.fillStyle = ink;
        const x = view.x + (j + 0.5) * cell, y = view.y + (i + 0.5) * cell;
        ctx.fillText(c === ONLY_AFTER ? "+" : "−", x, y);
      }
    }
  }

  // What interventions changed: a cross where blocked, a ring where opened; half of it, or a dot,
  // where only in some layers.
  function crossings(ctx, view) {
    const reach = cell * 0.27;
    ctx.lineWidth = Math.max(1, cell / 11);
    for (let i = view.rows[0]; i <= view.rows[1]; i++) {
      for (let j = view.columns[0]; j <= view.columns[1]; j++) {
        const c = codes[i * n + j];
        if (c < BLOCKED || c > PART_OPENED) continue;
        const x = view.x + (j + 0.5) * cell, y = view.y + (i + 0.5) * cell;
        ctx.strokeStyle = ctx.fillStyle = c === BLOCKED || c === PART_BLOCKED
          ? (dark ? "#ff9457" : "#b34a00") : ink;
        ctx.beginPath();
        if (c === OPENED) ctx.arc(x, y, reach, 0, 2 * Math.PI);
        if (c === PART_OPENED) ctx.arc(x, y, Math.max(1, reach / 2.2), 0, 2 * Math.PI);
        if (c === BLOCKED || c === PART_BLOCKED) {
          ctx.moveTo(x - reach, y + reach); ctx.lineTo(x + reach, y - reach);
        }
        if (c === BLOCKED) { ctx.moveTo(x - reach, y - reach); ctx.lineTo(x + reach, y + reach); }
        if (c === PART_OPENED) ctx.fill(); else ctx.stroke();
      }
    }
  }

  // Names and roles of the rows, then of the columns; each keeps to its margin.
  function labels(ctx, view) {
    const roomy = cell >= 10;
    const named = roomy ? tokens.map((_, i) => [i + 0.5, label(i)]) : runs(cell);
    const size = Math.max(1, cell - (cell > 6 ? 1 : 0));
    for (const across of [false, true]) {
      const [first, last] = across ? view.columns : view.rows;
      const start = across ? view.x : view.y;
      ctx.save();
      ctx.beginPath();
      if (across) ctx.rect(left, 0, view.width - left, top);
      else ctx.rect(0, top, left, view.height - top);
      ctx.clip();
      ctx.font = (roomy ? Math.min(13, cell - 1) : 10) + "px " + font();
      for (let i = first; i <= last; i++) {
        ctx.fillStyle = roles[i] === 1 ? "#e69f00" : "#0072b2";
        ctx.globalAlpha = roles[i] === 0 ? 0.45 : 1;
        if (across) ctx.fillRect(start + i * cell, top - 5, size, 3);
        else ctx.fillRect(left - 5, start + i * cell, 3, size);
      }
      ctx.globalAlpha = 1;
      ctx.fillStyle = ink;
      for (const [place, text] of named) {
        const where = start + place * cell;
        if (place < first - 1 || place > last + 2) continue;
        if (across) nameColumn(ctx, text, where); else nameRow(ctx, text, where);
      }
      ctx.restore();
    }
  }

  function nameRow(ctx, text, y) {
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    ctx.fillText(text, left - 9, y, left - 10);
  }

  function nameColumn(ctx, text, x) {
    ctx.save();
    ctx.translate(x, top - 9);
    ctx.textBaseline = "middle";
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

  // Where there is no room for every token: whole mentions and branches, by name.
  function runs(size) {
    const found = [];
    let free = -1;
    for (let i = 0; i < n; ) {
      let end = i + 1;
      while (groups[i] && end < n && groups[end] === groups[i]) end++;
      const middle = (i + end) / 2;
      if ((groups[i] || i === 0 || i === n - 1) && middle * size - 5 >= free) {
        const text = tokens.slice(i, end).reduce((all, next) =>
          all + (/[\w]$/.test(all) && /^[\w]/.test(next) ? " " : "") + next);
        found.push([middle, text.length > 12 ? text.slice(0, 11) + "…" : text]);
        free = middle * size + 5;
      }
      i = end;
    }
    return found;
  }

  // What is chosen, and what is under the mouse; drawn over the cells.
  function highlight(hover, alike = []) {
    const ctx = over.getContext("2d");
    const view = inWindow();
    ctx.clearRect(0, 0, view.width, view.height);
    for (const [first, last] of together(data.branch)) edges(ctx, view, first, last, "#e69f00");
    if (data.cell) {  // who looks: its row; at whom: that one's column
      edges(ctx, view, data.cell[0], data.cell[0], ink, true, false);
      edges(ctx, view, data.cell[1], data.cell[1], ink, false, true);
    } else if (data.token !== null) edges(ctx, view, data.token, data.token, ink);
    if (hover) {
      band(ctx, view, hover[0], ink, 0.1, true, false);
      band(ctx, view, hover[1], ink, 0.1, false, true);
      if (hover[0] >= 0 && hover[1] >= 0 && hover[0] !== hover[1]) box(ctx, view, hover, 1.5);
    }
    for (const i of alike) band(ctx, view, i, ink, 0.1);
    if (at) box(ctx, view, at, 3);
  }

  // A row and a column, their names included.
  function band(ctx, view, i, colour, alpha, row = true, column = true) {
    if (i < 0) return;
    const x = view.x + i * cell, y = view.y + i * cell, size = Math.max(cell, 2);
    ctx.fillStyle = colour;
    ctx.globalAlpha = alpha;
    if (row && y + size > top) ctx.fillRect(0, Math.max(y, top), view.x + n * cell, size);
    if (column && x + size > left) ctx.fillRect(Math.max(x, left), 0, size, view.y + n * cell);
    ctx.globalAlpha = 1;
  }

  // Frames around the rows and the columns of neighbouring tokens; the names too, where there
  // is room for one a token.
  function edges(ctx, view, first, last, colour, row = true, column = true) {
    const size = Math.max(cell * (last - first + 1), 3), roomy = cell >= 7;
    const x = view.x + first * cell, y = view.y + first * cell;
    const from = [roomy ? 1 : left - 5, roomy ? 1 : top - 5];
    for (const [paint, width] of roomy ? [[page, 4], [colour, 2]] : [[colour, 1.5]]) {
      ctx.strokeStyle = paint;
      ctx.lineWidth = width;
      if (row && y >= top - 1) ctx.strokeRect(from[0], y, view.x + n * cell - from[0], size);
      if (column && x >= left - 1) ctx.strokeRect(x, from[1], size, view.y + n * cell - from[1]);
    }
  }

  // Places as runs of neighbours: first and last.
  function together(places) {
    const found = [];
    for (const i of places) {
      const run = found.at(-1);
      if (run && run[1] === i - 1) run[1] = i; else found.push([i, i]);
    }
    return found;
  }

  function box(ctx, view, where, width) {
    const size = Math.max(cell, 5);
    const x = view.x + where[1] * cell, y = view.y + where[0] * cell;
    if (x < left - 1 || y < top - 1) return;
    ctx.lineWidth = width + 2;
    ctx.strokeStyle = page;
    ctx.strokeRect(x, y, size, size);
    ctx.lineWidth = width;
    ctx.strokeStyle = ink;
    ctx.strokeRect(x, y, size, size);
  }

  // [row, column] under the mouse; -1 for one of them beside the cells, on a name.
  function place(event) {
    const frame = over.getBoundingClientRect();
    const view = inWindow();
    const x = event.clientX - frame.left, y = event.clientY - frame.top;
    const j = x < left ? -1 : Math.floor((x - view.x) / cell);
    const i = y < top ? -1 : Math.floor((y - view.y) / cell);
    return i >= n || j >= n || (i < 0 && j < 0) ? null : [i, j];
  }

  function value(where) {
    const c = codes[where[0] * n + where[1]];
    if (c >= ONLY_BEFORE || data.categorical) return names[c];
    const share = shares[where[0] * n + where[1]];
    const sign = data.kind === "difference" && share > 0 ? "+" : "";
    return sign + (100 * share).toFixed(1).replace("-", "−") + " %";
  }

  function tell(where, x, y) {
    if (!where) { tip.hidden = true; return; }
    const [i, j] = where;
    tip.querySelector("b").textContent =
      i < 0 || j < 0 ? tokens[Math.max(i, j)] : tokens[i] + " → " + tokens[j];
    tip.querySelector("span").textContent = i < 0 || j < 0 ? texts.row_column : value(where);
    tip.hidden = false;
    const frame = root.getBoundingClientRect();
    const right = x - frame.left + tip.offsetWidth + 24 > frame.width;
    tip.style.left = (x - frame.left + (right ? -tip.offsetWidth - 12 : 14)) + "px";
    tip.style.top = (y - frame.top + 14) + "px";
  }

  function caption() {
    const open = at && data.cell && at[0] === data.cell[0] && at[1] === data.cell[1];
    said.textContent = at
      ? `${tokens[at[0]]} → ${tokens[at[1]]} · ${value(at)}` + (open || !texts.hint ? "" : ` · ${texts.hint}`) : "";
    reason.textContent = data.why && data.cell ? sayWhy(data.cell, tokens, data.why) : "";
  }

  function choose(where) {
    if (where[0] < 0 || where[1] < 0) {
      setTriggerValue("token", Math.max(...where));
      return;
    }
    at = where;
    data.cell = where;  // framed at once; what the page says of it comes after
    highlight(null);
    caption();
    setTriggerValue("cell", where);
  }

  // Scroll so that a row and a column are in the window.
  function reveal(row, column) {
    const view = inWindow();
    const x = view.x + column * cell, y = view.y + row * cell;
    if (x < left || x + cell > view.width) scroll.scrollLeft = column * cell - view.width / 3;
    if (y < top || y + cell > view.height) scroll.scrollTop = row * cell - view.height / 3;
  }

  const hovered = hovering(root, data.group, (names, alike) => {
    const found = names.map((name) => data.identities.indexOf(name));
    if (alike) { highlight(null, found); return; }
    const [row, column] = [found[0] ?? -1, found[1] ?? found[0] ?? -1];
    highlight(names.length ? [row, column] : null);
    if (row >= 0) tellRow(row);
  });

  // Whom a row's token sees, or how it attends; the group's tree draws it.
  function tellRow(i) {
    if (data.kind === "difference") return;
    const weights = [];
    for (let j = 0; j < n; j++) {
      const code = codes[i * n + j];
      if (code === HIDDEN || code >= ONLY_BEFORE) continue;
      weights.push([data.identities[j], shares ? shares[i * n + j] : 1]);
    }
    const detail = { group: data.group, kind: data.kind, name: data.identities[i], weights };
    document.dispatchEvent(new CustomEvent("kbert-row", { detail }));
  }

  over.onmousemove = (event) => {
    const where = place(event);
    tell(where, event.clientX, event.clientY);
    hovered((where || []).filter((i) => i >= 0).map((i) => data.identities[i]));
  };
  over.onmouseleave = () => { hovered([]); tip.hidden = true; };
  over.onclick = (event) => {
    if (event.detail > 1) return;  // the second of two: what the first chose may stand elsewhere now
    own.clicked = place(event);
    if (own.clicked) choose(own.clicked);
  };
  over.ondblclick = () => {
    const where = own.clicked;
    if (where && Math.min(...where) >= 0) setTriggerValue("link", where);
  };
  over.onkeydown = (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key === "Enter" && at) { choose(at); return; }
    if (event.key === " " && at) { setTriggerValue("link", at); event.preventDefault(); return; }
    if (event.key === "Escape") { setTriggerValue("token", -1); return; }
    if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1 : -1);
    const move = step[event.key];
    if (!move || !n) return;
    event.preventDefault();
    at = at ? [clamp(at[0] + move[0]), clamp(at[1] + move[1])] : [0, 0];
    reveal(...at);
    highlight(null);
    caption();
  };
  over.onblur = () => { tip.hidden = true; };
  scroll.onscroll = () => { tip.hidden = true; drawWindow(); };

  // Zoom about the middle of the window, or about the chosen cell.
  function zoom(step) {
    const view = inWindow();
    const middle = at || [view.rows, view.columns].map(([a, b]) => Math.round((a + b) / 2));
    own.zoom = step === "fit" ? "fit" : (own.zoom === "fit" ? 0 : own.zoom) + step;
    if (own.zoom !== "fit") own.zoom = Math.max(-4, Math.min(8, own.zoom));
    draw();
    scroll.scrollLeft = (middle[1] + 0.5) * cell - (view.width - left) / 2;
    scroll.scrollTop = (middle[0] + 0.5) * cell - (view.height - top) / 2;
    drawWindow();
  }
  for (const button of root.querySelectorAll(".zoom button")) {
    const step = { in: 1, out: -1, fit: "fit" }[button.className];
    button.onclick = () => zoom(step);
    button.title = texts[step === "fit" ? "fit" : "zoom_" + button.className];
    button.setAttribute("aria-label", button.title);
  }

  // The threshold: done here, within a frame.
  const mass = root.querySelector(".mass");
  const slider = mass.querySelector("input");
  mass.hidden = !mayHide;
  mass.querySelector("span").textContent = texts.mass;
  slider.value = own.mass;
  slider.setAttribute("aria-label", texts.mass);
  slider.oninput = () => { own.mass = Number(slider.value); threshold(); drawWindow(); };
  function threshold() {
    const kept = paint();
    root.dataset.kept = kept;
    const rows = tokens.filter((_, i) => codes[i * n + i] < ONLY_BEFORE).length || 1;
    const all = own.mass >= 100;
    mass.querySelector("output").textContent = all ? texts.mass_all : texts.mass_kept
      .replace("{share}", own.mass).replace("{kept}", kept)
      .replace("{each}", (kept / rows).toFixed(1));
    slider.setAttribute("aria-valuetext", mass.querySelector("output").textContent);
  }

  function clamp(value) { return Math.max(0, Math.min(n - 1, value)); }
  function font() {
    return '"Source Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
  }

  const bar = root.querySelector(".scale");
  bar.hidden = data.categorical;
  if (!data.categorical) drawScale(bar, data, colours);

  threshold();
  own.watcher?.disconnect();  // of the last run, which would draw what it was given
  own.watcher = new ResizeObserver((all) => {
    if (!own.fixed || all.some(({ target }) => target === root)) draw();
  });
  own.watcher.observe(root);
  const block = document.querySelector('[data-testid="stMainBlockContainer"]');
  if (block && !data.kept) own.watcher.observe(block);  // what stands above may grow
  own.touched?.abort();
  own.touched = new AbortController();
  for (const kind of ["pointerdown", "keydown"])
    document.addEventListener(kind, () => { own.fixed ||= complete(); },
      { capture: true, signal: own.touched.signal });
  draw();
  caption();
  if (data.token !== null && own.token !== tokens[data.token] + data.token) {
    reveal(data.token, data.cell ? data.cell[1] : data.token);
  }
  own.token = data.token === null ? null : tokens[data.token] + data.token;
  scroll.dataset.ready = "1";
  return () => { own.watcher.disconnect(); own.touched.abort(); };
}

// Whether all of a page's run has been drawn.
function complete() {
  const app = document.querySelector('[data-testid="stApp"]');
  return !app || app.dataset.testScriptState === "notRunning";
}

const HEIGHT = 640;  // of the window on the matrix, at most
const BELOW = 26;
const BAR = 60;  // above what is scrolled to in a page that was kept

function checksum(bytes) {
  let sum = 7;
  for (const byte of bytes) sum = (sum * 31 + byte) >>> 0;
  return sum.toString(16);
}
