// Why a cell of the visible matrix is visible or hidden, in the words that Python gave: see
// kbert_lab.lab.views.why, which says the same.

export function sayWhy([i, j], tokens, { on, branches, mentions, texts, all }) {
  const [[of_a, at_a], [of_b, at_b]] = [on[i], on[j]];  // branch and mention, from 1
  const clause = i === j ? "SAME" : of_a === of_b ? (of_a ? "SAME_BRANCH" : "TRUNK")
    : of_a && of_b ? (at_a === at_b ? "SIBLINGS" : "OTHER_MENTION")
      : at_a === at_b ? "MENTION_AND_BRANCH" : "OFF_MENTION";
  const hidden = ["SIBLINGS", "OTHER_MENTION", "OFF_MENTION"].includes(clause);
  const [one, other] = of_a ? [i, j] : [j, i];
  const names = { a: tokens[i], b: tokens[j], on_branch: tokens[one], on_trunk: tokens[other],
    of_a: branches[of_a - 1], of_b: branches[of_b - 1], branch: branches[on[one][0] - 1],
    mention_a: mentions[at_a - 1], mention_b: mentions[at_b - 1],
    mention: mentions[on[one][1] - 1] };
  const fill = (text) => text.replace(/\{(\w+)\}/g, (_, name) => names[name]);
  names.reason = fill(texts[clause]);
  return fill(texts[!hidden ? "visible" : all ? "all" : "hidden"]);
}
