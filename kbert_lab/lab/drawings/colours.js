// Colours that every canvas shares: from the page to blue for shares, blue-white-orange for
// differences.

export const LEVELS = 250, HIDDEN = 255;
const SHARES = ["#f7fafc", "#cfe2ef", "#8dbcd8", "#4292c6", "#0072b2", "#08306b"];
const SHARES_DARK = ["#1c252c", "#173a52", "#1a5f8a", "#2b8cc4", "#7cc0e8", "#e3f3fd"];

// The theme's ink and page, as the component's root inherits them.
export function theme(root) {
  const style = getComputedStyle(root);
  const ink = style.getPropertyValue("--kb-ink").trim() || "#222222";
  const page = style.getPropertyValue("--kb-page").trim() || "#ffffff";
  const accent = style.getPropertyValue("--kb-accent").trim() || "#0072b2";
  return { ink, page, accent, dark: luminance(page) < 0.4 };
}

// One colour a level, for attention or for its difference.
export function scaleColours(kind, dark) {
  const middle = dark ? [42, 51, 59] : [250, 250, 250];
  const stops = kind === "difference" ? [[0, 114, 178], middle, [213, 94, 0]]
    : (dark ? SHARES_DARK : SHARES).map(rgb);
  return Array.from({ length: LEVELS }, (_, i) => mix(stops, i / (LEVELS - 1)));
}

// The bar that says what the colours stand for.
export function drawScale(bar, data, colours) {
  const stops = [];
  for (let i = 0; i <= 10; i++) {
    stops.push("rgb(" + colours[Math.round(i / 10 * (LEVELS - 1))].join(",") + ")");
  }
  bar.querySelector("i").style.background = `linear-gradient(to right, ${stops.join(",")})`;
  const [low, high] = ends(data);
  bar.querySelector(".low").textContent = low;
  bar.querySelector(".high").textContent = high;
  const middle = bar.querySelector(".middle");  // where the scale isn't even
  if (middle) middle.textContent = data.middle ? (100 * data.middle).toFixed(1) + " %" : "";
}

// What the first and the last of its colours stand for.
export function ends({ kind, low, high }) {
  return [`${(100 * low).toFixed(low ? 1 : 0).replace("-", "−")} %`,
    `${kind === "difference" ? "+" : ""}${(100 * high).toFixed(1)} %`];
}

// A table of colours as whole pixels, for images written 32 bits at a time; 0 is clear.
export function pixels(table) {
  const found = new Uint32Array(256);
  const parts = new Uint8Array(found.buffer);
  table.forEach((colour, code) => parts.set([...colour, 255], 4 * code));
  return found;
}

export function bytes(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

export function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

export function mix(stops, x) {
  const place = x * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(place));
  return stops[i].map((v, k) => Math.round(v + (stops[i + 1][k] - v) * (place - i)));
}

// Any CSS colour as red, green, blue; on a page where it is not all that is seen.
export function pixel(colour, page = "transparent") {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const ctx = canvas.getContext("2d");
  for (ctx.fillStyle of [page, colour]) ctx.fillRect(0, 0, 1, 1);
  return [...ctx.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

function luminance(colour) {
  const [r, g, b] = pixel(colour);
  return (0.3 * r + 0.59 * g + 0.11 * b) / 255;
}

