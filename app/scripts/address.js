// What the address bar says, without an entry of the history for each change; and what the tab
// remembers over a reload: the page's own link.

const KEPT = "kbert-page";

export default ({ data, setTriggerValue }) => {
  const query = new URLSearchParams(data.query).toString();
  const wanted = location.pathname + (query ? `?${query}` : "") + location.hash;
  if (location.pathname + location.search + location.hash !== wanted)
    history.replaceState(history.state, "", wanted);
  const kept = sessionStorage.getItem(KEPT);
  if (data.link) sessionStorage.setItem(KEPT, data.link);
  else if (data.link === "") sessionStorage.removeItem(KEPT);
  else if (data.begins && kept) setTriggerValue("found", kept);
};
