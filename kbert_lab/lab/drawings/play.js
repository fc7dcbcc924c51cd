// The guided play of a new visitor: the first scene's small picture in a corner of the page, step by
// step; then the switch in the page's own tree is pointed at. It is played once in a browser, ends
// at the first click or key beside it, and isn't played at all where motion is to be reduced.

const SEEN = "kbert-play";
const POINT = { duration: 900, iterations: 4 };

export function draw(root, data) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  if (data.again ? document.kbertPlay === data.again : localStorage.getItem(SEEN)) return;
  if (document.querySelector(".kb-play")) return;
  document.kbertPlay = data.again;

  const panel = document.createElement("section");
  panel.className = "kb-play";
  panel.setAttribute("aria-label", data.title);
  panel.style.setProperty("--lasts", `${data.seconds}s`);
  panel.innerHTML = data.html;  // escaped, of what comes with the app
  const said = panel.appendChild(document.createElement("p"));
  said.setAttribute("aria-live", "polite");
  const button = panel.appendChild(document.createElement("footer"))
    .appendChild(document.createElement("button"));

  let timer, step = -1;
  const next = () => {
    if (++step === data.steps.length) return end(true);
    panel.dataset.step = step;
    said.textContent = data.steps[step];
    button.textContent = step === data.steps.length - 1 ? data.turn : data.skip;
    timer = setTimeout(next, 1000 * data.seconds / data.steps.length);
  };
  const end = (point) => {
    clearTimeout(timer);
    localStorage.setItem(SEEN, "seen");
    panel.remove();
    for (const kind of ["pointerdown", "keydown"]) document.removeEventListener(kind, beside);
    const own = point ? document.querySelector('.kb-tree [data-switch="off"]') : null;
    own?.scrollIntoView({ block: "nearest" });
    own?.animate([{ outline: "0 solid" }, { outline: "4px solid #E69F00", outlineOffset: "3px" },
      { outline: "0 solid" }], POINT);
  };
  const beside = (event) => {
    if (event.key === "Escape" || !panel.contains(event.target)) end(false);
  };
  button.addEventListener("click", () => end(step === data.steps.length - 1));
  for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, beside);
  root.append(panel);
  next();
}
