// The sentence tree. A click or Enter chooses a token, switches a branch, or opens its tail to be
// typed, as F2 does, see tail.js; arrow keys walk over the tokens. What is under the mouse is
// marked in every drawing on the page, see elements.js; what an edit changes moves, see moving.js.
// A branch that is switched is marked as asked for at once; the answer draws it anew.
// It sends {do: "token", token}, {do: "switch", triple, on}, {do: "tail", triple, tail} and
// {do: "ask", triple, request, tails}.

import { hovering } from "./elements.js";
import { moveBranches, standing } from "./moving.js";
import { pictureOf, save } from "./saved.js";
import { settings } from "./settings.js";
import { typeTail } from "./tail.js";

const ELEMENTS = new Set(["DIV", "SPAN", "B", "I", "S", "U"]);
const ATTRIBUTES =
  /^(class|dir|title|role|tabindex|aria-[a-z]+|data-(switch|edit|tail|branch|name|setting|save))$/;
const TWICE = 400;  // ms between the two clicks of a double click, which switches once
const LEAST = 0.02;  // of a token's attention that is drawn as an arc

export function draw(root, view, send) {
  root.classList.add("kb-tree-root");
  Object.assign(root, { view, send });  // of the last run; what listens outlives it
  for (const asked of root.querySelectorAll(".kb-asked")) asked.classList.remove("kb-asked");
  const template = plain(view.html);
  if (root.drawn === template.innerHTML) return;  // so that what is typed stays
  root.drawn = template.innerHTML;
  root.closeTail?.();
  const hold = focused(root), before = standing(root);
  root.replaceChildren(template.content);
  settings(root);
  const button = root.querySelector("[data-save]");
  if (button) button.onclick = () => save(pictureOf(root, ".kb-switch, .kb-setting, .kb-arcs"), "tree");
  const tokens = [...root.querySelectorAll("[data-name]")];
  (tokens.find((token) => token.matches(".kb-chosen")) ?? tokens[0])?.setAttribute("tabindex", 0);
  hold();
  moveBranches(root, before);
  followMouse(root, tokens);
  listen(root, tokens);
}

// What gives the focus back, after the tree is drawn anew, to what had it or to what it became.
function focused(root) {
  const held = root.contains(document.activeElement) ? document.activeElement : null;
  const branch = held?.closest("[data-branch]")?.dataset.branch, typed = root.typed;
  root.typed = undefined;
  return () => {
    const found = [...root.querySelectorAll("[data-name], [data-switch], [data-edit]")].find((one) =>
      typed !== undefined ? one.dataset.tail === typed
        : held?.dataset.name ? one.dataset.name === held.dataset.name
          : held?.dataset.switch && one.dataset.switch
            && one.closest("[data-branch]").dataset.branch === branch);
    found?.focus({ preventScroll: true });
  };
}

// Marks what is under the mouse, here or elsewhere on the page; whom a token sees: the others fade;
// how it attends: arcs as wide as the weights.
function followMouse(root, tokens) {
  const named = new Map(tokens.map((token) => [token.dataset.name, token]));
  const arcs = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  arcs.classList.add("kb-arcs");
  root.append(arcs);
  const tell = hovering(root, root.view.group, mark, follow);
  root.onpointerover = (event) => {
    const name = event.target.closest("[data-name]")?.dataset.name;
    tell(name ? [name] : []);
  };
  root.onpointerleave = () => tell([]);

  function mark(names) {
    for (const [name, token] of named) token.classList.toggle("kb-hover", names.includes(name));
    for (const branch of root.querySelectorAll(".kb-branch"))
      branch.classList.toggle("kb-hover-branch", branch.querySelector(".kb-hover") !== null);
    follow(null);
  }

  function follow(row) {
    arcs.replaceChildren();
    const seen = row?.kind === "visible" ? new Set(row.weights.map(([name]) => name)) : null;
    for (const [name, token] of named)
      token.classList.toggle("kb-dim", seen !== null && !seen.has(name));
    const from = row?.kind === "attention" && named.get(row.name);
    if (!from) return;
    const frame = root.getBoundingClientRect(), [x, y] = middle(from, frame);
    for (const [name, weight] of row.weights) {
      const to = named.get(name);
      if (!to || to === from || weight < LEAST) continue;
      const [u, v] = middle(to, frame), lift = Math.min(46, 12 + Math.abs(u - x) / 5);
      const arc = document.createElementNS(arcs.namespaceURI, "path");
      arc.setAttribute("d", `M${x},${y} C${x},${y - lift} ${u},${v - lift} ${u},${v}`);
      arc.style.strokeWidth = `${1 + 9 * weight}px`;
      arcs.append(arc);
    }
  }
}

function middle(token, frame) {
  const box = token.getBoundingClientRect();
  return [box.left + box.width / 2 - frame.left, box.top - frame.top + 4];
}

function listen(root, tokens) {
  root.onclick = (event) => {
    const part = event.target.closest("[data-name], [data-switch], [data-edit]");
    if (part?.dataset.switch !== undefined && event.detail) {  // by the mouse
      const again = event.timeStamp - root.clicked < TWICE;
      root.clicked = event.timeStamp;
      if (again) return;
    }
    choose(root, part);
  };
  root.onkeydown = (event) => {
    const { key, target } = event, enters = key === "Enter" || key === " ";
    const edit = key === "F2" && target.closest(".kb-branch")?.querySelector("[data-edit]");
    const at = tokens.indexOf(target);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
      Home: 0, End: tokens.length - 1 }[key];
    if (enters && target.matches("[data-save]")) target.click();
    else if (edit || (enters && target.matches("[data-switch], [data-edit]"))) choose(root, edit || target);
    else if (at < 0) return;
    else if (enters) choose(root, target);
    else if (key === "Escape") root.send({ do: "token", token: null });
    else if (to === undefined) return;
    else if (tokens[to]) {
      target.tabIndex = -1;
      tokens[to].tabIndex = 0;
      tokens[to].focus();
    }
    event.preventDefault();
  };
}

function choose(root, part) {
  if (!part) return;
  const branch = part.closest("[data-branch]");
  const triple = branch && JSON.parse(branch.dataset.branch)[3];
  if (part.dataset.switch !== undefined) {
    root.send({ do: "switch", triple, on: part.dataset.switch === "on" });
    branch.classList.add("kb-asked");
  } else if (part.dataset.name) root.send({ do: "token", token: part.dataset.name });
  else root.closeTail = typeTail(root, part, {
    ask: (request, tails) => root.send({ do: "ask", triple, request, tails }),
    take: (tail) => {
      root.typed = tail;
      root.send({ do: "tail", triple, tail });
    },
  });
}

// Every text is escaped already; a template runs nothing, and what isn't plain is dropped.
function plain(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const element of [...template.content.querySelectorAll("*")]) {
    if (!ELEMENTS.has(element.tagName)) { element.remove(); continue; }
    for (const { name } of [...element.attributes]) {
      if (!ATTRIBUTES.test(name)) element.removeAttribute(name);
    }
  }
  return template;
}
