// What an edit changes moves for 300 ms: branches slide in and out, or to their new places. Nothing
// waits for it, and nothing else moves.

const MOVE = { duration: 300, easing: "ease-out" };
const ASIDE = { opacity: 0, transform: "translateX(-1rem)" };
const HERE = { opacity: 1, transform: "none" };

// The branches of a tree by their names, where they stand, and the text that they hang from.
export function standing(root) {
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
export function moveBranches(root, before) {
  const now = standing(root), still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (still || now.text !== before.text) return;
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
