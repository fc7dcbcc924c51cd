// How all drawings of this browser are shown, with or without details, in large letters or not: by
// classes of the document, which style sheets know. The browser remembers it; nobody else is told.

const NAMES = ["details", "large"];
const read = () => { try { return localStorage; } catch { return {}; } };  // a file may have none

export function isSet(name) { return document.documentElement.classList.contains(`kb-${name}`); }

// Makes the switches in an element work, and shows all as it was left.
export function settings(root) {
  const store = read(), all = document.documentElement.classList;
  for (const name of NAMES) all.toggle(`kb-${name}`, store[`kbert-${name}`] === "1");
  for (const button of root.querySelectorAll("[data-setting]")) {
    const name = button.dataset.setting;
    const show = () => button.setAttribute("aria-checked", isSet(name));
    button.onclick = () => {
      store[`kbert-${name}`] = all.toggle(`kb-${name}`) ? "1" : "0";
      document.dispatchEvent(new CustomEvent("kbert-settings"));
      show();
    };
    button.onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    };
    show();
  }
}
