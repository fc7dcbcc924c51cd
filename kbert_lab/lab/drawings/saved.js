// A drawing as an SVG file, for a paper: what the browser shows, on white. Of a canvas a context
// that takes down what is painted; of HTML its boxes and texts, where they stand.

import { pixel } from "./colours.js";

const INK = "#222222", FONTS = "Helvetica, Arial, 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif";

function made(tag, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, typeof value === "number" ? +value.toFixed(2) : value);
  element.textContent = text;
  return element;
}

function picture(width, height) {
  const svg = made("svg", { width, height, viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
    "font-family": FONTS });
  svg.append(made("rect", { width: "100%", height: "100%", fill: "#ffffff" }));
  return svg;
}

export function save(svg, name) {
  const file = new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${name}.svg`;
  link.click();
}

// As much of a canvas' context as paint.js uses; nothing is clipped, since all is in sight.
export function recording(width, height) {
  const svg = picture(width, height), measure = document.createElement("canvas").getContext("2d");
  let group = svg, path = "", saved = [];
  const put = (tag, attributes, text) =>
    group.append(made(tag, { ...attributes, ...ctx.globalAlpha < 1 && { opacity: ctx.globalAlpha } }, text));
  const within = (transform) => {
    const inner = made("g", { transform });
    group.append(inner);
    group = inner;
  };
  const ctx = {
    svg, globalAlpha: 1, lineWidth: 1, fillStyle: INK, strokeStyle: INK, font: "10px sans-serif",
    textAlign: "left", textBaseline: "alphabetic",
    save() { saved.push([group, { ...ctx }]); },
    restore() { [group] = saved.at(-1); Object.assign(ctx, saved.pop()[1]); },
    translate: (x, y) => within(`translate(${x} ${y})`),
    rotate: (angle) => within(`rotate(${angle * 180 / Math.PI})`),
    beginPath() { path = ""; },
    moveTo(x, y) { path += `M${+x.toFixed(2)} ${+y.toFixed(2)}`; },
    lineTo(x, y) { path += `L${+x.toFixed(2)} ${+y.toFixed(2)}`; },
    arc(x, y, r) { path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; },
    rect() {}, clip() {}, clearRect() {},
    stroke() { put("path", { d: path, fill: "none", stroke: ctx.strokeStyle, "stroke-width": ctx.lineWidth }); },
    fill() { put("path", { d: path, fill: ctx.fillStyle }); },
    fillRect(x, y, w, h) { put("rect", { x, y, width: w, height: h, fill: ctx.fillStyle }); },
    fillText(text, x, y, most = Infinity) {
      measure.font = ctx.font;
      const size = parseFloat(ctx.font), long = measure.measureText(text).width;
      const lower = { middle: 0.35, bottom: -0.2 }[ctx.textBaseline] ?? 0;
      put("text", { x, y: y + lower * size, "font-size": size, fill: ctx.fillStyle,
        "text-anchor": { right: "end", center: "middle" }[ctx.textAlign] ?? "start",
        textLength: Math.min(long, most), lengthAdjust: "spacingAndGlyphs" }, text);
    },
    drawImage(small, x, y, width) {  // a pixel a cell; equal neighbours are one box
      const n = small.width, cell = width / n, { data } = small.getContext("2d").getImageData(0, 0, n, n);
      const points = new Uint32Array(data.buffer);
      for (let i = 0; i < n * n; ) {
        let end = i + 1;
        while (end % n && points[end] === points[i]) end++;
        if (data[4 * i + 3]) put("rect", { x: x + i % n * cell, y: y + Math.floor(i / n) * cell,
          width: (end - i) * cell, height: cell, fill: `rgb(${data.slice(4 * i, 4 * i + 3)})` });
        i = end;
      }
    },
  };
  return ctx;
}

// The boxes and texts of an element, but for those that a selector names.
export function pictureOf(root, without) {
  const style = root.getAttribute("style");
  Object.assign(root.style, { color: INK, colorScheme: "light" });
  const elements = [...root.querySelectorAll("*")].filter((own) => !own.closest(without) && own.getClientRects().length);
  const frame = root.getBoundingClientRect(), boxes = elements.map((own) => own.getBoundingClientRect());
  const most = (side) => Math.max(...boxes.map((box) => box[side])) - frame[side === "right" ? "left" : "top"];
  const svg = picture(most("right") + 8, most("bottom") + 8);
  const at = ({ left, top, width, height }) => [left - frame.left + 4, top - frame.top + 4, width, height];
  elements.forEach((own, i) => {
    const [x, y, width, height] = at(boxes[i]), before = getComputedStyle(own, "::before");
    paintBox(svg, x, y, width, height, getComputedStyle(own));
    if (before.content !== "none" && before.position === "absolute")
      paintBox(svg, x + parseFloat(before.left), y + parseFloat(before.top),
        parseFloat(before.width), parseFloat(before.height), before);
  });
  for (const own of elements) {
    for (const node of own.childNodes) if (node.nodeType === Node.TEXT_NODE && node.data.trim())
      paintText(svg, node, own, at);
  }
  if (style === null) root.removeAttribute("style"); else root.setAttribute("style", style);
  return svg;
}

function paintBox(svg, x, y, width, height, style) {
  const fill = onWhite(style.backgroundColor), rx = parseFloat(style.borderTopLeftRadius) || 0;
  if (fill !== "rgb(255,255,255)") svg.append(made("rect", { x, y, width, height, rx, fill }));
  for (const [side, d] of [["Top", `M${x} ${y}h${width}`], ["Left", `M${x} ${y}v${height}`],
    ["Bottom", `M${x} ${y + height}h${width}`], ["Right", `M${x + width} ${y}v${height}`]]) {
    const wide = parseFloat(style[`border${side}Width`]);
    if (wide) svg.append(made("path", { d, "stroke-width": wide, stroke: onWhite(style[`border${side}Color`]) }));
  }
  const wide = parseFloat(style.outlineWidth), off = parseFloat(style.outlineOffset);
  if (style.outlineStyle !== "none" && wide) svg.append(made("rect", { x: x - off, y: y - off,
    width: width + 2 * off, height: height + 2 * off, rx, fill: "none", stroke: onWhite(style.outlineColor),
    "stroke-width": wide, ...style.outlineStyle === "dashed" && { "stroke-dasharray": "4 3" } }));
}

function paintText(svg, node, own, at) {
  const style = getComputedStyle(own), range = document.createRange();
  if (style.visibility === "hidden") return;
  range.selectNodeContents(node);
  const [x, y, width, height] = at(range.getBoundingClientRect());
  svg.append(made("text", { x, y: y + 0.77 * height, fill: onWhite(style.color),
    textLength: width, lengthAdjust: "spacingAndGlyphs",
    "font-size": parseFloat(style.fontSize) * (own.currentCSSZoom ?? 1), "font-weight": style.fontWeight,
    ...style.textDecorationLine === "line-through" && { "text-decoration": "line-through" } }, node.data));
}

const whitened = new Map();
function onWhite(colour) {
  if (!whitened.has(colour)) whitened.set(colour, `rgb(${pixel(colour, "#ffffff")})`);
  return whitened.get(colour);
}
