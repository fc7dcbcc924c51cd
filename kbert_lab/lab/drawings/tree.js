// The sentence tree: a click or Enter chooses a token, switches a branch, or opens its tail to be
// typed, as F2 does, see tail.js; arrow keys walk over the tokens. What is under the mouse is
// marked in every drawing on the page, see hover.js; what an edit changes moves, see moving.js.
// A branch that is switched is marked as asked for at once; the answer draws it anew.

const ELEMENTS = new Set(["DIV", "SPAN", "B", "I", "S", "U"]);
const ATTRIBUTES =
  /^(class|title|role|tabindex|aria-[a-z]+|data-(token|switch|edit|tail|branch|name))$/;
const TWICE = 400;  // ms between the two clicks of a double click, which switches once
const LEAST = 0.02;  // of a token's attention that is drawn as an arc

export default function drawTree(component) {
  const root = component.parentElement.querySelector(".kb-tree-root");
  root.data = component.data;
  root.tellPython = component.setTriggerValue;  // of the last run
  for (const asked of root.querySelectorAll(".kb-asked")) asked.classList.remove("kb-asked");
  showTree(root, plain(root.data.html));
}

function showTree(root, template) {
  if (root.drawn === template.innerHTML) return;  // so that what is typed stays
  root.drawn = template.innerHTML;
  root.closeTail?.();
  const focused = root.contains(document.activeElement) ? document.activeElement : null;
  const held = focused?.dataset.token;
  const switched = focused?.matches("[data-switch]")
    ? focused.closest("[data-branch]").dataset.branch : undefined;
  const before = standing(root);
  root.replaceChildren(template.content);
  turnCapsules();
  const tokens = [...root.querySelectorAll("[data-token]")]
    .sort((one, other) => one.dataset.token - other.dataset.token);
  const first = tokens.find((token) => token.matches(".kb-chosen")) || tokens[0];
  if (first) first.tabIndex = 0;
  if (held !== undefined) tokens.find((token) => token.dataset.token === held)?.focus();
  if (switched !== undefined)
    root.querySelector(`[data-branch="${CSS.escape(switched)}"] [data-switch]`)
      ?.focus({ preventScroll: true });
  const typed = [...root.querySelectorAll("[data-edit]")]
    .find((button) => button.dataset.tail === root.typed);
  if (typed) typed.focus({ preventScroll: true });
  root.typed = undefined;

  const named = new Map([...root.querySelectorAll("[data-name]")]
    .map((token) => [token.dataset.name, token]));
  const arcs = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  arcs.classList.add("kb-arcs");
  root.append(arcs);
  moveBranches(root, before);
  const tell = hovering(root, root.data.group, mark, follow);
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

  // Whom a token sees: the others fade; how it attends: arcs as wide as the weights.
  function follow(row) {
    arcs.replaceChildren();
    const seen = row && row.kind === "visible" ? new Set(row.weights.map(([name]) => name)) : null;
    for (const [name, token] of named)
      token.classList.toggle("kb-dim", seen !== null && !seen.has(name));
    const from = row && row.kind === "attention" && named.get(row.name);
    if (!from) return;
    const frame = root.getBoundingClientRect();
    const middle = (token) => {
      const box = token.getBoundingClientRect();
      return [box.left + box.width / 2 - frame.left, box.top - frame.top + 4];
    };
    const [x, y] = middle(from);
    for (const [name, weight] of row.weights) {
      const to = named.get(name);
      if (!to || to === from || weight < LEAST) continue;
      const [u, v] = middle(to), lift = Math.min(46, 12 + Math.abs(u - x) / 5);
      const arc = document.createElementNS(arcs.namespaceURI, "path");
      arc.setAttribute("d", `M${x},${y} C${x},${y - lift} ${u},${v - lift} ${u},${v}`);
      arc.style.strokeWidth = `${1 + 9 * weight}px`;
      arcs.append(arc);
    }
  }

  root.onclick = (event) => {
    const part = event.target.closest("[data-token], [data-switch], [data-edit]");
    if (part?.dataset.switch !== undefined && event.detail) {  // by the mouse
      const again = event.timeStamp - root.clicked < TWICE;
      root.clicked = event.timeStamp;
      if (again) return;
    }
    choose(part);
  };
  root.onkeydown = (event) => {
    const button = event.target.matches(".kb-switch") && event.target;
    const edit = event.target.closest(".kb-branch")?.querySelector("[data-edit]");
    if ((button && (event.key === "Enter" || event.key === " ")) || (edit && event.key === "F2")) {
      choose(event.key === "F2" ? edit : button);
      event.preventDefault();
      return;
    }
    const at = tokens.indexOf(event.target);
    if (at < 0) return;
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
      Home: 0, End: tokens.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") choose(event.target);
    else if (event.key === "Escape") root.tellPython("token", -1);
    else if (to === undefined) return;
    else if (tokens[to]) {
      event.target.tabIndex = -1;
      tokens[to].tabIndex = 0;
      tokens[to].focus();
    }
    event.preventDefault();
  };

  function choose(part) {
    const { token, edit, switch: button } = part?.dataset ?? {};
    const name = part?.closest("[data-branch]")?.dataset.branch;
    if (button !== undefined) {
      root.tellPython("branch", [name, button === "on"]);
      part.closest("[data-branch]").classList.add("kb-asked");
    } else if (token) root.tellPython("token", Number(token));
    else if (edit !== undefined) {
      root.closeTail = typeTail(root, part, {
        ask: (request, tails) => root.tellPython("ask", [name, request, tails]),
        take: (tail) => {
          root.typed = tail;
          root.tellPython("edit", [name, tail]);
        },
      });
    }
  }
}

// The page has escaped every text; a template runs nothing, and what isn't plain is dropped.
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
