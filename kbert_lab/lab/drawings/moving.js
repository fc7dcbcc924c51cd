// What an edit changes moves for 300 ms: branches slide in and out or to their new places, and the
// capsule of a changed prediction turns over. Nothing waits for it, and nothing else moves.

const MOVE = { duration: 300, easing: "ease-out" };
const ASIDE = { opacity: 0, transform: "translateX(-1rem)" };
const HERE = { opacity: 1, transform: "none" };

function still() { return matchMedia("(prefers-reduced-motion: reduce)").matches; }

// The branches of a tree by their names, where they stand, and the text that they hang from.
function standing(root) {
  const frame = root.getBoundingClientRect(), branches = new Map();
  for (const branch of root.querySelectorAll(".kb-branch")) {
    const { left, top } = branch.getBoundingClientRect();
    branches.set(branch.dataset.branch, { branch, gone: branch.matches(".kb-removed"),
      left: left - frame.left, top: top - frame.top });
  }
  const text = [...root.querySelectorAll(".kb-toks .kb-text")].map((token) => token.textContent);
  return { text: text.join(""), branches };
}

// Moves the branches of a tree that was drawn anew from where they stood.
function moveBranches(root, before) {
  const now = standing(root);
  if (still() || now.text !== before.text) return;
  for (const [name, { branch, gone, left, top }] of now.branches) {
    const was = before.branches.get(name);
    if (!was || was.gone !== gone) branch.animate([ASIDE, HERE], MOVE);
    else if (was.left !== left || was.top !== top) {
      const from = `translate(${was.left - left}px, ${was.top - top}px)`;
      branch.animate([{ transform: from }, { transform: "none" }], MOVE);
    }
  }
  for (const [name, { branch, left, top }] of before.branches) {
    if (now.branches.has(name)) continue;
    branch.inert = true;
    branch.className = "kb-gone";
    Object.assign(branch.style, { left: `${left}px`, top: `${top}px` });
    root.append(branch);
    branch.animate([HERE, ASIDE], MOVE).finished.finally(() => branch.remove());
  }
}

// Turns the capsules of a prediction whose label or extent has changed, wherever it is drawn.
function turnCapsules() {
  if (document.kbertCapsules) return;
  let before = [];
  const look = () => {
    const now = [...document.querySelectorAll(".kb-ner")].map(told);
    now.forEach(({ text, chars, capsules }, i) => {
      const was = before[i];
      if (!text || was?.text !== text || still()) return;
      for (const place of new Set([...was.capsules.keys(), ...capsules.keys()])) {
        const [span, said] = capsules.get(place) ?? [];
        const [, old, size] = was.capsules.get(place) ?? [];
        if (said === old) continue;
        const parts = span ? [span] : chars.slice(place, place + size);
        for (const part of parts)
          part.animate([{ transform: "rotateX(90deg)" }, { transform: "none" }], MOVE);
      }
    });
    if (now.length) before = now;
  };
  look();
  document.kbertCapsules = new MutationObserver(look);
  document.kbertCapsules.observe(document.body, { childList: true, subtree: true });
}

// The last line of a prediction's drawing: its text, and its capsules by their first characters.
function told(drawing) {
  const line = [...drawing.querySelectorAll(".kb-line")].pop();
  const chars = [...line?.querySelectorAll(".kb-char") ?? []], capsules = new Map();
  for (const span of line?.querySelectorAll(".kb-span") ?? []) {
    const own = span.querySelectorAll(".kb-char"), label = span.querySelector(".kb-tag b");
    capsules.set(chars.indexOf(own[0]),
      [span, `${label.textContent} ${own.length}`, own.length]);
  }
  const text = chars.map((char) => char.querySelector(".kb-text").textContent).join("");
  return { text, chars, capsules };
}
