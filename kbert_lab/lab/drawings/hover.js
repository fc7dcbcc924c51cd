// What the drawings of a page tell each other, within a frame and without Python: which tokens are
// under the mouse, by the names that identify them in every drawing, and how such a token sees.

// mark(names, alike): of all tokens under the mouse, a row's and a column's, or of one triple and all
// alike; follow(row): of the same group's matrix, or null.
function hovering(root, group, mark, follow) {
  root.hovering?.abort();
  const { signal } = root.hovering = new AbortController();
  const listen = (kind, heard) => document.addEventListener(kind, (event) => {
    if (!root.isConnected) root.hovering.abort();
    else heard(event.detail);
  }, { signal });
  listen("kbert-hover", ({ names, alike }) => mark(names, alike));
  if (follow) listen("kbert-row", (row) => { if (row.group === group) follow(row); });
  return (names, alike = false) =>
    document.dispatchEvent(new CustomEvent("kbert-hover", { detail: { names, alike } }));
}
