# %% [markdown]
# # 8 · Knowledge noise
#
# **Question.** What do triples that don't belong do to a prediction, and what holds them off?
#
# **You need** notebooks [2](02_soft_positions.ipynb), [3](03_visible_matrix.ipynb) and
# [5](05_from_bert_to_kbert.ipynb): soft positions, the visible matrix, and the model of clinical texts. **You get** a
# measure of noise, a split answer (the sentence is protected, the mention isn't), and what choosing triples can do
# about the rest.
#
# **After this notebook you can** measure how far noise moves a prediction, and say whom the visible matrix protects.

# %%
from _tools import ready

ready(
    "models/medical-ner-kbert",
    "results/selection/noise.jsonl.xz",
)

# %% [markdown]
# ## Pouring noise in, by hand
#
# The paper calls it **knowledge noise**: injected knowledge that diverts a sentence from its meaning. We make some
# ourselves. A mention gets triples that are said of *other* names: draw a triple of the graph, keep its relation and
# tail, and put our name before it. (A graph looks names up in lower case, so `triples_of("tim cook")` finds those of *Tim
# Cook*.) First on Figure 2:

# %%
import numpy as np

from kbert_core import KnowledgeGraph, Pipeline, Triple, load_graph

figure2 = load_graph("demo_kgs/figure2.spo")


def draw(name, count, said, own, seed):
    """Triples of others, said of this name; the same seed draws the same."""
    random = np.random.default_rng([seed, *name.encode()])
    drawn = []
    while len(drawn) < count:
        other = said[int(random.integers(len(said)))]
        triple = Triple(own[0].head, other.relation, other.tail)
        if triple not in (*own, *drawn) and other.tail.lower() != name:
            drawn.append(triple)
    return drawn


own = figure2.triples_of("tim cook")
noise = draw("tim cook", 2, list(figure2), own, seed=1)
print("true:  ", *own)
print("poured:", *noise)

# %% [markdown]
# `with_noise` of the library does the same for many names of a graph.

# %%
from kbert_lab.graphs.controls import with_noise

noisy = with_noise(figure2, ["tim cook"], 2, seed=1, place="before")

# %% tags=["test"]
assert noisy.triples_of("tim cook") == (*noise, *own)

# %%
from kbert_core import InjectionOptions
from kbert_lab.lab.widget import lab

three = InjectionOptions(max_triples=3)
lab("words", noisy, "Tim Cook is visiting Beijing now", options=three)

# %% [markdown]
# Look at the numbers below the tokens (*Details*). The soft positions (first) of *is*, *visiting* and the rest are those of the
# sentence, no matter what hangs from Tim Cook. And by the visible matrix only *Tim* and *Cook* see the branches. This
# is the paper's answer to noise: it can't get past its mention. Does that hold in a trained model?
#
# ## How far a prediction moves
#
# We need a number. A model gives each token a probability for every tag, $p(y)$. With noise it gives $q(y)$. Their
# distance is the **total variation**
#
# $$\mathrm{TV}(p, q) = \tfrac12 \sum_y |p(y) - q(y)|,$$
#
# 0 where they are the same and 1 where they have nothing in common: the largest difference that any tag, or set of
# tags, can show. The model is that of [notebook 5](05_from_bert_to_kbert.ipynb), the text 行胃镜检查，见胃体黏膜充血 (*gastroscopy
# was done, congestion of the stomach's mucosa was seen*). Every mention keeps the triples it has and gets 8 more.

# %%
kbert = Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu")
medical = load_graph("demo_kgs/medical_zh.spo")
text = "行胃镜检查，见胃体黏膜充血。"
OWN = kbert.card.reading.options.max_triples  # of its own triples, as trained


def poured(names, count, said, seed=1):
    """A graph in which each name has its first triples, and after them what is said of others."""
    triples = []
    for name in dict.fromkeys(names):
        own = medical.triples_of(name)
        triples += [*own[:OWN], *draw(name, count, said, own, seed)]
    return KnowledgeGraph(triples)


def read(text, count, ablation=None, said=tuple(medical), seed=1):
    """The text with `count` triples of noise for every mention."""
    quiet = kbert(text, graph=medical, ablation=ablation)
    names = [node.mention.entity for node in quiet.tree.nodes]
    if not count or not names:
        return quiet
    options = InjectionOptions(max_triples=OWN + count)
    return kbert(text, graph=poured(names, count, said, seed), options=options, ablation=ablation)


def trunk(trace):
    """Places of the sentence's tokens, without [CLS] and [SEP]."""
    return [i for i, branch in enumerate(trace.rows[0].branch_ids) if branch == 0][1:-1]


def moved(quiet, noisy):
    """Total variation of every token of the sentence."""
    p, q = (trace.logits[0, trunk(trace)].softmax(-1) for trace in (quiet, noisy))
    return (p - q).abs().sum(-1) / 2


quiet, noisy = read(text, 0), read(text, 8)
print(len(quiet.used), "triples without noise,", len(noisy.used), "with it")
for token, distance in zip([quiet.rows[0].tokens[i] for i in trunk(quiet)], moved(quiet, noisy)):
    print(f"{token}  {distance:.3f}  {'█' * round(40 * distance.item())}")

# %% [markdown]
# The two characters of 胃镜 move a long way, and so does 胃 (*stomach*), the other mention; all others stay about as they are. The
# library follows a prediction as noise grows. For 胃镜, with 8 triples of the same seed, it finds what we find.

# %%
from kbert_core.explain.case import Case
from kbert_lab.explain.noise import noise_curve

case = Case.of(kbert, text, graph=medical)
curve = noise_curve(case, counts=(0, 1, 2, 4, 8, 16), seeds=(1, 2, 3))
by_library = next(p for p in curve.points if (p.ablation, p.count, p.seed) == ("K-BERT", 8, 1))
by_hand = moved(quiet, noisy)[case.target.start : case.target.end].mean().item()
from _tools import show

print(f"by hand {by_hand:.4f}, by the library {by_library.moved:.4f}")
show(curve.figure(), "Score and distance from BERT of the span 胃镜, as noise grows")

# %% tags=["test"]
assert abs(by_hand - by_library.moved) < 1e-4

# %% [markdown]
# "Plain BERT" is the model without any knowledge. The right half of the picture shows the distance from *that*. (The
# distance that was just printed, by hand and by the library, is the one from K-BERT without noise.) Up to two triples
# the noise does little; with eight, what the right triple had given is lost, and by some draws (the shaded range) more
# than that. **For the mention itself K-BERT is no better off than with hard positions.** Try it:

# %%
from _tools import slider
from kbert_core import Ablation

WAYS = {
    "K-BERT": Ablation(),
    "hard positions": Ablation(positions="hard"),
    "everything visible": Ablation(visible="all"),
    "both": Ablation("hard", "all"),
}


def found(count, way="K-BERT"):
    """The entities with `count` triples of noise."""
    spans = read(text, count, WAYS[way]).prediction.spans
    return [(span.text, span.label, round(span.probability, 2)) for span in spans]


slider(found, count=(0, 16), way=list(WAYS))

# %%
for count in (0, 2, 4, 8, 16):
    print(f"{count:2} triples of noise: {found(count)}")

# %% [markdown]
# ## Who is protected
#
# So far one sentence. Here are 28 (written for this project), in four ways to read the tree; how far do the tokens of
# mentions move, and how far all others?

# %%
from statistics import mean

from kbert_lab.data.sources import read_present

parts = read_present("demo_kgs/example_data/medical_ner", "ner").values()  # train, dev and test
texts = list(dict.fromkeys(e.sentences[0].replace(" ", "") for part in parts for e in part))
print(len(texts), "sentences")


def how_far(ablation, said):
    """Mean distance for 4 triples of noise: tokens of mentions, and all others."""
    mentions, others = [], []
    for text in texts:
        quiet, noisy = read(text, 0, ablation), read(text, 4, ablation, said)
        for place, distance in zip(trunk(quiet), moved(quiet, noisy).tolist()):
            (mentions if quiet.rows[0].anchor_ids[place] else others).append(distance)
    return {"tokens of mentions": mean(mentions), "all other tokens": mean(others)}


from_itself = {name: how_far(way, tuple(medical)) for name, way in WAYS.items()}
for name, of in from_itself.items():
    print(f"{name:20}", "   ".join(f"{who} {distance:.3f}" for who, distance in of.items()))

# %% tags=["test"]
full, visible = from_itself["K-BERT"], from_itself["everything visible"]
assert full["all other tokens"] < 0.02 < 0.1 < visible["all other tokens"]
assert full["tokens of mentions"] > visible["tokens of mentions"]

# %% [markdown]
# **The sentence is protected, the mention isn't.** With the visible matrix noise doesn't get past its mention: other
# tokens hardly move. Where everything is visible they move nearly as much as the mentions. So far the paper's reason
# holds, and it is the matrix that does it: with hard positions the others move a little more, not much.
#
# But the mention must read what hangs from it, right or wrong; no matrix can help there. It even reads it more closely
# than a model does that sees everything at once. (This model was trained with soft positions and the matrix, so the
# other ways are strange to it. What happens when each is *trained* its own way: [notebook 7b](07b_ablations.ipynb).)
#
# Noise need not contradict. What we poured in says of a name what the same graph says of others, often a wrong kind.
# Facts of everyday things are just irrelevant, and do far less:

# %%
everyday = load_graph("demo_kgs/everyday_zh.spo")
from_elsewhere = how_far(None, tuple(everyday))
for name, of in (("the same graph", from_itself["K-BERT"]), ("everyday things", from_elsewhere)):
    print(f"noise of {name:16}", "   ".join(f"{who} {value:.3f}" for who, value in of.items()))

# %% tags=["test"]
assert from_elsewhere["tokens of mentions"] < full["tokens of mentions"] / 2

# %% [markdown]
# ## Choosing triples
#
# If the mention can't be protected by the model, one has to choose what hangs from it. A **strategy** decides which two
# triples of a mention are injected: the `first` of the graph, as in the released K-BERT; those whose `tail_in_text`
# stands in the text; those of `rare` relations; those whose words are most similar to the sentence (`context`). Now the
# noise stands *among* the right triples, two for every name:

# %%
names = {node.mention.entity for text in texts for node in kbert(text, graph=medical).tree.nodes}
mixed = with_noise(medical, names, 2, seed=1, place="among")


def entities(trace):
    return [(span.text, span.label) for span in trace.prediction.spans]


print("strategy       injected   right ones   sentences with the entities of the clean graph")
for strategy in ("first", "tail_in_text", "rare", "context"):
    options = InjectionOptions(max_triples=2, strategy=strategy)
    traces = [kbert(text, graph=mixed, options=options) for text in texts]
    used = [triple for trace in traces for triple in trace.used]
    right = sum(triple in medical for triple in used) / len(used)
    same = sum(
        entities(t) == entities(kbert(text, graph=medical)) for t, text in zip(traces, texts)
    )
    print(f"{strategy:14} {len(used):6} {right:11.0%} {same:13} of {len(texts)}")

# %% [markdown]
# On 28 sentences these are anecdotes, and they don't agree: `first` injects most noise, and yet keeps most predictions,
# probably since a clean graph begins with a name's kind and some of these stay in front. `tail_in_text` injects little,
# right or wrong.
#
# ## The same at full size
#
# The figures below come from 624 clinical sentences that aren't part of this repository; what came out is (`python -m
# benchmarks.selection`). Noise is from the same graph, among the right triples, by three seeds. (F1 is the harmonic
# mean of precision and recall, see [notebook 7a](07a_ablation_bench.ipynb).)

# %%
import json
import lzma

with lzma.open("results/selection/noise.jsonl.xz", "rt", encoding="utf-8") as lines:
    NOISE = [json.loads(line) for line in lines]
COUNTS = (0, 1, 2, 4, 8, 16)


def f1(strategy, count):
    """F1 in per cent, one per seed; without noise there is one seed only."""
    kind = "own" if count else "none"
    wanted = (kind, strategy, count)
    return [100 * run["f1"] for run in NOISE if (run["kind"], run["strategy"], run["k"]) == wanted]


scores = {
    name: [f1(name, count) for count in COUNTS]
    for name in ("first", "tail_in_text", "rare", "context")
}
(without,) = f1("no knowledge", 0)
print(NOISE[0]["sentences"], "sentences")
print("noise per mention", "".join(f"{count:8}" for count in COUNTS))
for name, points in scores.items():
    print(f"{name:17}", "".join(f"{mean(values):8.1f}" for values in points))
print(f"no knowledge at all: {without:.1f}")

# %%
from _charts import line_chart

chart = line_chart(
    [str(count) for count in COUNTS],
    scores,
    across="triples of noise for each mention",
    up="F1, %",
    levels={"no knowledge": without},
)
show(chart, "F1 by strategy as noise grows: all fall below the model without knowledge")

# %% tags=["test"]
assert mean(scores["first"][0]) == max(mean(points[0]) for points in scores.values()) > without
assert all(mean(values) < without for points in scores.values() for values in points[1:])

# %% [markdown]
# On a clean graph taking the first triples is best. With contradictory noise this choice loses most, over 20 points at
# four triples; each of the other strategies loses less. (Nobody has studied yet why `first` and `rare` recover when
# there is still more noise.) But **none of them is better than leaving the graph off** once such noise is there: by
# similarity one can't tell a wrong kind of a name from the right one. Knowledge has to be true before it is injected.
# (More strategies, and all tables: [results](../docs/results.md).)
#
# ## Exercises
#
# **1.** (easy) Write the total variation of two lists of probabilities.

# %% tags=["exercise"]
from checks.ablations import check_variation


def variation(p, q):
    return ...


check_variation(variation)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# What one tag gains another loses, so the sum of all differences counts everything twice.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def variation(p, q):
#     return sum(abs(a - b) for a, b in zip(p, q)) / 2
#
#
# check_variation(variation)
# ```
# </details>

# %% [markdown]
# **2.** (medium) In 行胃镜检查 a wrong triple is hung on 胃镜. Can the state of these tokens change in the *first* layer?

# %% tags=["exercise"]
from checks.ablations import check_reached

changes = {
    "镜, K-BERT": ...,
    "查, K-BERT": ...,
    "查, everything visible": ...,
    "查, hard positions": ...,
}
check_reached(changes)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Who sees the branch? And whose position does a branch change?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# changes = {
#     "镜, K-BERT": True,
#     "查, K-BERT": False,
#     "查, everything visible": True,
#     "查, hard positions": True,
# }
# check_reached(changes)
# ```
# </details>

# %% [markdown]
# **3.** (medium) Every mention below has four triples of everyday things *before* its own. Find `InjectionOptions` with which
# the model injects true triples and not one of the poured ones. (`print(*noise_first.triples_of("胃镜"))` shows what
# there is.)

# %% tags=["exercise"]
from checks.ablations import check_options

noise_first = with_noise(medical, names, 4, seed=1, source=tuple(everyday), place="before")
my_options = ...  # InjectionOptions(…)
check_options(kbert, medical, noise_first, my_options)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Print the triples of one name: what do all poured ones have in common? `InjectionOptions` can leave out relations.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# my_options = InjectionOptions(not_relations=("义原",))
# check_options(kbert, medical, noise_first, my_options)
# ```
#
# All of that graph's triples have one relation. `relations=("类别", "部位")`, a list of those that are wanted, does it too.
# </details>

# %% [markdown]
# ## Summary
#
# - With the visible matrix noise stays at its mention: the rest of the sentence hardly moves.
# - The mention itself must read what hangs from it, right or wrong.
# - Choosing triples loses less to noise, and no strategy tells a false kind from the true one: a wrong graph is worse
#   than none.
#
# **Open question.** Whoever builds a graph from the web gets wrong triples for certain. Which would you look for
# first, and could the model itself help to find them?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), on *knowledge noise*; [choosing triples](../docs/results/choosing-triples.md).

# %%
from _tools import lab_link

lab_link(
    text, graph=medical, model="medical-ner-kbert", task="ner", options=kbert.card.reading.options
)

# %% [markdown]
# In the app, *Explain: Noise* draws these curves for any text. Next: [9 · Explain a
# prediction](09_explain_a_prediction.ipynb), which of the triples did it.
