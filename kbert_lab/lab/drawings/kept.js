// A page that was kept as a file: what is stored of a scene before and now, and of each set of its
// triples that may be off. A switch whose outcome isn't stored isn't offered.

import { draw as drawMatrix } from "./matrix.js";
import { draw as drawTree } from "./tree.js";

export function draw(page) {
  const { states, before } = JSON.parse(page.querySelector("script").textContent);
  const find = (selector) => page.querySelector(selector), tree = find("#tree");
  const keyOf = (off) => off.map((triple) => JSON.stringify(triple)).sort().join();
  const stored = new Map(states.map((state) => [keyOf(state.off), state]));
  let now = states[0];

  function after(triple, on) {
    const others = now.off.filter((other) => keyOf([other]) !== keyOf([triple]));
    return stored.get(keyOf(on ? others : [...others, triple]));
  }

  function heard({ do: what, triple, on }) {
    if (what !== "switch") return;
    now = after(triple, on);
    show();
  }

  function show() {
    const shown = find("#kb-before")?.checked ? before : now;
    find("#prediction").innerHTML = shown.prediction;  // escaped, as the Lab shows it
    find("#summary").textContent = shown.summary;
    drawTree(tree, { html: shown.tree, group: "" }, heard);
    for (const button of tree.querySelectorAll("[data-switch]")) {
      const triple = JSON.parse(button.closest("[data-branch]").dataset.branch)[3];
      button.hidden = shown === before || !after(triple, button.dataset.switch === "on");
    }
    page.querySelectorAll(".kb-matrix .root").forEach((root, i) =>
      drawMatrix(root, { ...shown.maps[i], group: "" }, heard));
  }

  for (const choice of page.querySelectorAll("[name=when]")) choice.onchange = show;
  show();
}
