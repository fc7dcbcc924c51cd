// A branch's tail, typed in place: tails that its relation has in the graph, each with what would
// be predicted. They come after the box has opened, part by part, and are drawn in it.

import { made } from "./elements.js";

const SHOWN = 8;
const WIDE = 300, HIGH = 250;  // pixels, about, that the box needs
const PAUSE = 400;  // ms after a key before what was typed is asked about
let asked = 0;  // numbers the questions of all boxes

// A part of the answer to a question: for the box that asked.
export function draw(_, answer) {
  document.dispatchEvent(new CustomEvent("kbert-tails", { detail: answer }));
}

// Opens the box over the tail of an edit button's branch; returns what closes it.
// ask(number, tails): of all tails where there are none; take(tail): the new one.
export function typeTail(root, button, { ask, take }) {
  const was = button.dataset.tail;
  const tail = [...button.closest(".kb-branch").querySelectorAll(".kb-field")].pop();
  const id = `kb-tail-${asked}`;
  const box = made("div", { class: "kb-tail" });
  const input = made("input", { role: "combobox", "aria-label": button.getAttribute("aria-label"),
    "aria-controls": id, "aria-expanded": "true", "aria-autocomplete": "list", maxlength: 200,
    autocomplete: "off", spellcheck: "false", value: was });
  const list = made("ul", { id, role: "listbox" });
  const frame = root.getBoundingClientRect(), place = tail.getBoundingClientRect();
  const left = Math.max(0, Math.min(place.left - frame.left, root.clientWidth - WIDE));
  box.style.left = `${left}px`;
  if (place.top + HIGH > innerHeight && place.bottom > HIGH) {
    box.classList.add("kb-up");
    box.style.bottom = `${frame.bottom - place.bottom}px`;
  } else box.style.top = `${place.top - frame.top}px`;
  box.append(input, list);
  root.append(box);

  let names = null, glosses = {}, at = -1, number = question([]), later;
  const outcomes = new Map(), wanted = new Set();
  const told = new AbortController();
  document.addEventListener("kbert-tails", ({ detail }) => {
    if (!box.isConnected) return told.abort();
    if (detail.request !== number) return;
    if (detail.tails) ({ tails: names, glosses } = detail);
    for (const one of detail.asked) wanted.add(one);
    for (const [one, said] of Object.entries(detail.outcomes)) outcomes.set(one, said);
    show();
  }, { signal: told.signal });
  show();
  input.focus({ preventScroll: true });
  input.select();

  function question(tails) {
    ask(++asked, tails);
    return asked;
  }

  // What is offered: the commonest tails, or those that hold what was typed; it comes first itself.
  function offered() {
    const typed = input.value.trim(), part = typed.toLowerCase();
    if (!names || typed === was || !typed) return (names ?? []).slice(0, SHOWN);
    const fitting = names.filter((name) => name.toLowerCase().includes(part));
    fitting.sort((one, other) => other.toLowerCase().startsWith(part)
      - one.toLowerCase().startsWith(part));
    return [...new Set([typed, ...fitting])].slice(0, SHOWN);
  }

  function show() {
    const shown = offered();
    at = Math.min(at, shown.length - 1);
    list.replaceChildren(...shown.map((name, i) => {
      const [said, turns] = outcomes.get(name) ?? [wanted.has(name) ? "…" : "", false];
      const item = made("li", { role: "option", id: `${id}-${i}`, "aria-selected": i === at });
      item.append(made("span", {}, name, made("i", {}, glosses[name] ?? "")),
        made("small", { class: turns ? "kb-turns" : "" }, said));
      item.onpointerdown = (event) => event.preventDefault();  // the input keeps the focus
      item.onclick = () => commit(name);
      return item;
    }));
    if (!names) list.append(made("li", {}, "…"));
    list.hidden = !list.children.length;
    if (at < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `${id}-${at}`);
  }

  input.oninput = () => {
    at = -1;
    show();
    clearTimeout(later);
    later = setTimeout(() => {
      const missing = offered().filter((name) => !outcomes.has(name));
      if (box.isConnected && names && missing.length) number = question(missing);
    }, PAUSE);
  };

  input.onkeydown = (event) => {
    event.stopPropagation();
    if (event.isComposing) return;
    const shown = offered(), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      at = Math.max(-1, Math.min(shown.length - 1, at + step));
      show();
    } else if (event.key === "Enter") commit(at < 0 ? input.value.trim() : shown[at]);
    else if (event.key === "Escape") close(true);
    else return;
    event.preventDefault();
  };
  box.onfocusout = ({ relatedTarget }) => { if (!box.contains(relatedTarget)) close(false); };

  function commit(name) {
    close(true);
    if (name && name !== was) take(name);
  }

  function close(back) {
    told.abort();
    clearTimeout(later);
    box.onfocusout = null;
    box.remove();
    if (back) button.focus({ preventScroll: true });
  }
  return () => close(false);
}
