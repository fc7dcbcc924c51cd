# %% [markdown]
# # 6 · Fine-tuning
#
# **Question.** Can a model use knowledge of things that it never saw in training, and what does it take to teach it that?
#
# **You need** notebooks [1](01_sentence_tree.ipynb) to [5](05_from_bert_to_kbert.ipynb), and an idea of how a network
# is trained (a loss, its gradient, a step). **You get** a BERT and a K-BERT trained here, in seconds, on a set of
# *riddles* whose answer only a graph knows.
#
# **After this notebook you can** train a small K-BERT, and make a test in which nothing but a graph can help.

# %%
from _tools import ready

ready()

# %% [markdown]
# ## Riddles
#
# "tell me about warfarin and forget Paris": *what kind of thing am I asking about?* **Fine-tuning** is to train a model
# on examples with their answers, the **labels**; here the label is *drug*. To solve such a riddle one must know two
# things:
#
# - *which* of the two names is asked for: the sentence says so;
# - *of what kind* it is: the sentence doesn't say. One remembers it, or looks it up.
#
# `make_riddles` makes them of two small graphs of this project. A part of the names is held out: they are never in training.

# %%
from _riddles import make_riddles
from kbert_core import load_graph

graph = load_graph("demo_kgs/general_en.spo", "demo_kgs/medical_en.spo")
riddles = make_riddles(graph, seed=1)

for name, examples in (
    ("train", riddles.train),
    ("seen", riddles.seen),
    ("unseen", riddles.unseen),
):
    print(f"{name:7} {len(examples):5,} sentences, such as")
    for example in examples[:2]:
        print(f"{'':9} {example.sentences[0]!r}: {example.label}")

# %% [markdown]
# There are three sets: **train** to learn from; **seen**, new sentences with the names of training; **unseen**,
# sentences with names that training never showed. Every kind is asked for equally often, so whoever guesses is right
# one time in six. That is the **chance**.

# %%
print("kind        names in training   unseen names")
for kind in riddles.kinds:
    unseen_names = riddles.unseen_names[kind]
    print(f"{kind:10} {len(riddles.names[kind]):18} {len(unseen_names):14}   {unseen_names[0]}, …")
print(f"chance: {riddles.chance:.3f}")

# %% [markdown]
# Could a name give itself away, as *lung cancer* does to who knows *breast cancer*? Or by having two words, which here
# mostly diseases have? So `make_riddles` takes names of one word only, and none whose word stands in another name
# or in the sentences. Let us look: no unseen name is in any training sentence.

# %%
shown = {word for example in riddles.train for word in example.sentences[0].lower().split()}
hidden = {name.lower() for names in riddles.unseen_names.values() for name in names}
print(len(hidden), "unseen names,", len(shown & hidden), "of them in training")

# %% tags=["test"]
assert not shown & hidden

# %% [markdown]
# One more thing is special about the training sentences: half of their names are **invented**, and each of these is
# used once. The graph says of an invented name what it says of some real one. Why, we shall see at the end.

# %%
example = next(
    e
    for e in riddles.train
    if not any(n in e.sentences[0] for names in riddles.names.values() for n in names)
)
print(example.sentences[0], "→", example.label)
for name in (word for word in example.sentences[0].split() if word[0].isupper()):
    print("   the graph:", *riddles.graph.triples_of(name)[:2])

# %% [markdown]
# ## What the model reads
#
# A small BERT from scratch: two layers of 128 numbers (`TrialOptions`), random weights, and a vocabulary of all words
# that occur, those of unseen names too. For each mention one triple is injected, the one that says its kind. So the word of
# the answer *stands in the branch*: what is learnt here is to look up and copy for the right one of two names, not to infer.

# %%
import torch

from _riddles import KIND_ALONE, TrialOptions, new_pipeline, read
from kbert_core import Ablation

options = TrialOptions()
torch.manual_seed(1)
kbert = new_pipeline(riddles, KIND_ALONE, Ablation(), options)
train = read(kbert, riddles.train, riddles.graph)  # flattened sentence trees
print(
    f"{sum(p.numel() for p in kbert.encoder.model.parameters()):,} parameters, mostly vectors of words"
)
unseen = read(kbert, riddles.unseen, riddles.graph)
unseen[0]

# %% [markdown]
# ## The training loop by hand
#
# A step takes a few sentences, computes the **loss** (cross entropy, the mean of −ln of the probability that the model
# gives the right label; the unit of natural logarithms is the *nat*), and moves all weights a little against its
# gradient. K-BERT differs from BERT in one line: the encoder is given soft positions and the visible matrix, which
# `encoder.inputs` makes. We make the first 20 of 140 steps (`options.steps`).

# %%
from torch.nn.functional import cross_entropy

from _riddles import batches
from kbert_core import collate

labels = torch.tensor([riddles.kinds.index(example.label) for example in riddles.train])
model = kbert.encoder.model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, options.rate)  # rises, then falls

first = batches(len(train), options, seed=1)[:20]
for chosen in first:
    batch = collate([train[i] for i in chosen])
    logits = model(**kbert.encoder.inputs(batch)).logits  # soft positions, visible matrix
    loss = cross_entropy(logits, labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # no step too large
    optimizer.step()
    schedule.step()
by_hand = loss.item()
print(
    f"loss of step {len(first)}: {by_hand:.4f}; of one who guesses: {-torch.tensor(riddles.chance).log():.4f}"
)

# %% [markdown]
# ## All of it, with the library
#
# `trial` runs this loop to its end and notes the share of right answers on the way. With an empty graph the same code
# trains BERT. We train both with three seeds; each seed draws its own held-out names, its own weights and its own
# order.

# %%
from _riddles import trial
from kbert_core import NO_KNOWLEDGE

SEEDS = (1, 2, 3)
sets = {seed: make_riddles(graph, seed=seed) for seed in SEEDS}
k_bert = {seed: trial(sets[seed], sets[seed].graph, seed=seed) for seed in SEEDS}
bert = {seed: trial(sets[seed], NO_KNOWLEDGE, seed=seed) for seed in SEEDS}

# %% tags=["test"]
assert abs(k_bert[1].curve[0].loss - by_hand) < 1e-4  # step 20, by hand and by the library

# %% tags=["about"]
from statistics import mean, stdev

scores = {
    name: {
        which: [getattr(trials[seed].last, which) for seed in SEEDS] for which in ("seen", "unseen")
    }
    for name, trials in (("K-BERT", k_bert), ("BERT", bert))
}
for name, of in scores.items():
    for which, values in of.items():
        each = ", ".join(f"{value:.2f}" for value in values)
        print(f"{name:7} {which:7} {mean(values):.2f} ± {stdev(values):.2f}   ({each})")

# %% tags=["test"]
assert mean(scores["K-BERT"]["unseen"]) > 0.8
assert mean(scores["BERT"]["unseen"]) < riddles.chance + 0.1
assert mean(scores["BERT"]["seen"]) > 0.6

# %% [markdown]
# (± is the standard deviation over the three seeds; each seed stands in brackets.)

# %% [markdown]
# **BERT remembers, K-BERT looks up.** Of most names that it saw, BERT has learnt the kind (and is still learning when
# the steps are over). Of others it can only guess. The spread of its seeds is larger than chance
# would be on 180 sentences: there are few unseen names, and it makes one guess per name. K-BERT answers for names
# that it never saw, as the graph tells it.

# %%
from _charts import line_chart
from _tools import show

steps = [point.step for point in k_bert[1].curve]
curves = {
    f"{name}, {which}": [
        [getattr(trials[s].curve[n], which) for s in SEEDS] for n in range(len(steps))
    ]
    for name, trials in (("K-BERT", k_bert), ("BERT", bert))
    for which in ("seen", "unseen")
}
chart = line_chart(
    steps, curves, across="step", up="share of right answers", levels={"chance": riddles.chance}
)
show(chart, "Learning curves: mean and range of three seeds")

# %% [markdown]
# ## Is it really the graph?
#
# Two tests of the trained K-BERT, without any further training: the graph switched off; and the graph **shuffled**, so
# that every name has the kind of another.

# %% tags=["about"]
from _riddles import accuracy
from kbert_lab.graphs.controls import shuffled

trained = k_bert[1].pipeline
wrong = shuffled(riddles.graph, seed=1).graph
as_shuffled = [
    next(t.tail for t in wrong.triples_of(name) if t.relation == "is_a")
    for e in riddles.unseen
    for name in [next(n for n in riddles.unseen_names[e.label] if n in e.sentences[0])]
]
readings = {
    "its graph": riddles.graph,
    "no graph": NO_KNOWLEDGE,
    "shuffled graph": wrong,
}
for name, given in readings.items():
    rows = read(trained, riddles.unseen, given)
    print(f"{name:15} right: {accuracy(trained, rows, riddles.unseen):.2f}")
predicted = [p.label for p in trained.predict([e.sentences for e in riddles.unseen], graph=wrong)]
follows = mean(p == said for p, said in zip(predicted, as_shuffled))
print(f"shuffled graph  as the shuffled graph says: {follows:.2f}")

# %% tags=["test"]
assert follows > 0.6

# %% [markdown]
# With a shuffled graph it is nearly always wrong, and in just the way in which the graph is wrong: it believes what it
# reads. (Some names now have a kind that is none of the six answers, such as *examination*; then it can't say so.) That
# is the price. A model that was taught to look things up is as good as its graph.
#
# ## Why half of the names are invented
#
# Train K-BERT once more, on riddles without invented names: the same 1,500 sentences' worth, but every name comes
# dozens of times.

# %% tags=["about"]
plain = make_riddles(graph, invented=0, seed=1)
remembers = trial(plain, plain.graph, seed=1)
print(f"with invented names:    seen {k_bert[1].last.seen:.2f}, unseen {k_bert[1].last.unseen:.2f}")
print(f"without invented names: seen {remembers.last.seen:.2f}, unseen {remembers.last.unseen:.2f}")

# %% tags=["test"]
assert remembers.last.unseen < k_bert[1].last.unseen - 0.1

# %% [markdown]
# It was the same with all three seeds: 0.68, 0.76 and 0.74 on unseen names (`results/riddles.json`). The model reads a
# graph that solves every riddle, and yet learns to look at the name, too: a name that always comes with the same label
# can be remembered. Then it is lost where the name is new. This is called a **shortcut**. Invented names, each met
# once, can't be remembered, so looking up is the only way that always works.
#
# The clinical models of this project were trained against the same shortcut in two other ways: names are hidden now and
# then, and sometimes a name gets another kind *and the label that goes with it*
# ([why](../docs/decisions/counterfactual_recipe.md)).
#
# ## At full size
#
# The loop above is a toy: nothing is saved, there is no pretrained encoder, and no *dev set*, a third set
# apart from training and test, to choose the best *epoch* (pass through the training set) on. `kbert train` has all of
# these, for five kinds of tasks:
#
# ```console
# kbert train --task ner --data DIR --kg FILE --encoder models/zh-mini --output models/mine
# kbert train --task ner --data DIR --encoder models/zh-mini --output models/mine-bert   # its twin without knowledge
# ```
#
# [Notebook 10](10_your_own_graph.ipynb) does it with a graph and data of your own.
#
# ## Exercises
#
# **1.** (medium) Which of these would let BERT, *without a graph*, answer the unseen riddles better than by chance?

# %% tags=["exercise"]
from checks.knowledge import check_leaks

helps_bert = {
    "all cities of the test set end in -ville, and so do those of training": ...,
    "the test set has other sentences about names of training": ...,
    "the graph knows the names of the test set": ...,
    "the sentences of the test set are built like those of training": ...,
}
check_leaks(helps_bert)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# What does BERT see of an unseen riddle? It needs something that it has met in training together with the label.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# helps_bert = {
#     "all cities of the test set end in -ville, and so do those of training": True,
#     "the test set has other sentences about names of training": True,
#     "the graph knows the names of the test set": False,
#     "the sentences of the test set are built like those of training": False,
# }
# check_leaks(helps_bert)
# ```
#
# (-ville helps if the tokens are parts of words. Ours are whole words, so even that wouldn't.)
# </details>

# %% [markdown]
# **2.** (easy) We give the trained K-BERT a graph that calls *every* name a drug. About which share of the unseen riddles will
# it get right?

# %% tags=["exercise"]
from checks.knowledge import check_all_drugs

share = ...
check_all_drugs(share)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# A model that looks things up says what the graph says. How many of the riddles ask for a drug?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# share = 1 / 6
# check_all_drugs(share)
# ```
#
# Try it: `KnowledgeGraph([Triple(t.head, "is_a", "drug") for t in riddles.graph])`, then `accuracy` as above.
# </details>

# %% [markdown]
# **3.** (easy) "tell me about Zanzibar and forget aspirin". The model has never met *Zanzibar*; not even its tokenizer knows
# the word. Write one triple that makes it answer *city*. The check adds it to the graph and asks the trained K-BERT.

# %% tags=["exercise"]
from checks.knowledge import check_new_name

my_triple = ...  # (head, relation, tail)
check_new_name(trained, riddles.graph, my_triple)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Look at the relation of `riddles.graph`, and at the head: it must be the name in the text.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# my_triple = ("Zanzibar", "is_a", "city")
# check_new_name(trained, riddles.graph, my_triple)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - BERT remembers the names of training and guesses on new ones; K-BERT reads their kind from the graph.
# - It believes a wrong graph too: a model that looks up is as good as its graph.
# - A name that always comes with one label is a **shortcut**. Names met once make looking up the only way.
#
# **Open question.** Real texts can't have half of their names invented. How would you keep a model from remembering
# names there, and how would you see that it still does?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), the section on fine-tuning; [ERNIE](https://arxiv.org/abs/1905.07129) (Zhang et al. 2019) for another way to train with a graph.
#
# The model of this notebook is gone when you close it, so this opens the tree of a riddle:

# %%
from _tools import lab_link

general = load_graph("demo_kgs/general_en.spo")
lab_link("tell me about Tokyo and forget Toyota", graph=general, model="words", options=KIND_ALONE)

# %% [markdown]
# Next: [6b · Reading a results page](06b_reading_results.ipynb): is it the graph, the seed or the split?
