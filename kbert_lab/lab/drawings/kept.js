// A page that was kept as a file: its trees and matrices, drawn without anybody to send to.

import { draw as drawMatrix } from "./matrix.js";
import { draw as drawTree } from "./tree.js";

const nobody = () => {};

export function draw(page) {
  for (const place of page.querySelectorAll(".kb-linked")) {
    const root = place.querySelector(".kb-tree-root");
    drawTree(root, { html: root.innerHTML, group: place.dataset.group }, nobody);
  }
  for (const place of page.querySelectorAll(".kb-matrix")) {
    drawMatrix(place.querySelector(".root"),
      JSON.parse(place.querySelector("script").textContent), nobody);
  }
}
