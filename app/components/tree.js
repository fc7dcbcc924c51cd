// The sentence tree: a click or Enter chooses a token, or switches a branch; arrow keys walk over
// the tokens.

const ELEMENTS = new Set(["DIV", "SPAN", "B", "I", "S", "U"]);
const ATTRIBUTES = /^(class|title|role|tabindex|aria-[a-z]+|data-token|data-switch)$/;

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".kb-tree-root");
  const held = root.contains(document.activeElement)
    ? document.activeElement.dataset.token : undefined;
  root.replaceChildren(plain(data.html));
  const tokens = [...root.querySelectorAll("[data-token]")]
    .sort((one, other) => one.dataset.token - other.dataset.token);
  const first = tokens.find((token) => token.matches(".kb-chosen")) || tokens[0];
  if (first) first.tabIndex = 0;
  if (held !== undefined) tokens.find((token) => token.dataset.token === held)?.focus();

  root.onclick = (event) => choose(event.target.closest("[data-token], [data-switch]"));
  root.onkeydown = (event) => {
    if (event.target.dataset.switch && (event.key === "Enter" || event.key === " ")) {
      choose(event.target);
      event.preventDefault();
    }
    const at = tokens.indexOf(event.target);
    if (at < 0) return;
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
      Home: 0, End: tokens.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") choose(event.target);
    else if (event.key === "Escape") setTriggerValue("token", -1);
    else if (to === undefined) return;
    else if (tokens[to]) {
      event.target.tabIndex = -1;
      tokens[to].tabIndex = 0;
      tokens[to].focus();
    }
    event.preventDefault();
  };

  function choose(token) {
    if (token?.dataset.switch) setTriggerValue("branch", Number(token.dataset.switch));
    else if (token) setTriggerValue("token", Number(token.dataset.token));
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
  return template.content;
}
