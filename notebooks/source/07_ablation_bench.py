# %% [markdown]
# # 7a · The ablation bench
#
# **Question.** Which part of K-BERT does what? Change one part, keep the rest, and read a score.
#
# **You need** notebooks [2](02_soft_positions.ipynb), [3](03_visible_matrix.ipynb) and
# [5](05_from_bert_to_kbert.ipynb): soft positions, the visible matrix, and what a triple does to a trained model.
# **You get** two trained models, one Chinese and one English, in which you can change everything that the paper
# changes. Each reading takes less than a second. Guess first, then look.

# %%
from _tools import ready

ready(
    "models/medical-ner-kbert",
    "models/ner-en",
    "demo_kgs/medical_zh.spo",
    "demo_kgs/everyday_zh.spo",
    "demo_kgs/medical_en.spo",
    "demo_kgs/general_en.spo",
    "demo_kgs/example_data/medical_ner",
    "demo_kgs/example_data/medical_ner_en.tsv",
    "results/medical-ner-disjoint.jsonl.xz",
    "results/medical-ner-dedup.jsonl.xz",
    "results/ner-en.jsonl.xz",
)

# %% [markdown]
# ## Two models, two languages
#
# Both models find names in medical sentences. The Chinese one has 4 million weights and five kinds of names (symptom,
# disease, body part, examination, treatment). The English one has 23 million weights and two kinds (disease and
# chemical). Each has its sentences, its *medical graph*, and an *everyday graph* about things of daily life.

# %%
from collections import namedtuple

from kbert_core import NO_KNOWLEDGE, Pipeline, load_graph
from kbert_lab.data.labelled import read_examples
from kbert_lab.data.sources import read_present

Side = namedtuple("Side", "model examples medical everyday")

parts = read_present("demo_kgs/example_data/medical_ner", "ner").values()  # train, dev and test
chinese = list({example.sentences: example for part in parts for example in part}.values())
english = read_examples("demo_kgs/example_data/medical_ner_en.tsv", "ner")

SIDES = {
    "Chinese": Side(
        Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu"),
        chinese,
        load_graph("demo_kgs/medical_zh.spo"),
        load_graph("demo_kgs/everyday_zh.spo"),
    ),
    "English": Side(
        Pipeline.from_pretrained("models/ner-en", device="cpu"),
        english,
        load_graph("demo_kgs/medical_en.spo"),
        load_graph("demo_kgs/general_en.spo"),
    ),
}
for name, side in SIDES.items():
    text, spans = side.examples[1].sentences[0], side.examples[1].spans
    print(f"{name}: {len(side.examples)} sentences, such as “{text}”")
    print("   ", ", ".join(f"{text[start:end]} = {label}" for start, end, label in spans))

# %% [markdown]
# These sentences were written for this project, and no model was trained on them. They are few: a score on them shows
# what a change does, not how good a model is.
#
# ## The score
#
# **F1** is the score of this task. A name counts as right if the model finds its first character, its last character
# and its kind.
#
# $$\mathrm{precision} = \frac{\text{right}}{\text{found}} \qquad \mathrm{recall} = \frac{\text{right}}{\text{labelled}} \qquad
# \mathrm{F1} = \frac{2 \cdot \mathrm{precision} \cdot \mathrm{recall}}{\mathrm{precision} + \mathrm{recall}} = \frac{2 \cdot \text{right}}{\text{found} + \text{labelled}}$$
#
# By hand, and then by the library:

# %%
from kbert_lab.training.evaluate import evaluate


def right_found_labelled(side, **how):
    """The three counts of every sentence."""
    counts = []
    for example in side.examples:
        found = {
            (s.start, s.end, s.label)
            for s in side.model(example.sentences[0], **how).prediction.spans
        }
        counts.append((len(found & set(example.spans)), len(found), len(example.spans)))
    return counts


def f1_of(counts):
    right, found, labelled = (sum(column) for column in zip(*counts))
    return 200 * right / (found + labelled)


side = SIDES["Chinese"]
as_trained = right_found_labelled(side, graph=side.medical)
graph_off = right_found_labelled(side, graph=NO_KNOWLEDGE)
print(f"K-BERT, Chinese:    F1 {f1_of(as_trained):.1f}")
print(f"the graph left off: F1 {f1_of(graph_off):.1f}")

# %% tags=["test"]
scores = evaluate(side.model, side.examples, side.medical)
assert abs(100 * scores["f1"] - f1_of(as_trained)) < 1e-9
assert f1_of(as_trained) > f1_of(graph_off) + 20

# %% [markdown]
# ## The bench
#
# `measure` reads all sentences of one language in one **setting**. Its defaults are how the models were trained; every
# ablation changes one of them. All of them are *inputs* of the model: its weights stay as they are.

# %%
from dataclasses import replace

from kbert_core import Ablation
from kbert_lab.graphs.controls import shuffled, with_constant_tail, with_noise


def graph_for(side, graph, tails, noise, seed):
    """The graph that a setting asks for."""
    if graph == "none":
        return NO_KNOWLEDGE
    made = side.medical if graph == "medical" else side.everyday
    if tails == "shuffled":
        made = shuffled(made, seed=seed).graph  # each name has the tails of another
    elif tails == "constant":
        made = with_constant_tail(made)  # every triple says the same
    return with_noise(made, made.entities(), noise, seed=seed)  # what is said of others


def measure(
    language="Chinese",
    *,
    positions="soft",
    visible="tree",
    tail_only=False,
    triples=2,
    graph="medical",
    tails="true",
    noise=0,
    seed=1,
):
    """F1 in per cent, precision, recall and counts of one setting."""
    side = SIDES[language]
    options = replace(
        side.model.card.reading.options, max_triples=triples + noise, tail_only=tail_only
    )
    given = graph_for(side, graph, tails, noise, seed)
    found = evaluate(
        side.model, side.examples, given, options=options, ablation=Ablation(positions, visible)
    )
    return found | {"f1": 100 * found["f1"]}


KBERT = {language: measure(language)["f1"] for language in SIDES}
for language, score in KBERT.items():
    print(f"K-BERT, {language}: F1 {score:.1f}")

# %% [markdown]
# ## Guess first
#
# Here are the settings of this notebook. Write your guess of the **Chinese** F1 in place of the dots: K-BERT has the
# score above, and without the graph the model has 46.9. A wrong guess teaches more than no guess.

# %%
ROWS = {
    "K-BERT": {},
    "the graph left off": {"graph": "none"},
    "hard positions": {"positions": "hard"},
    "everything visible": {"visible": "all"},
    "both": {"positions": "hard", "visible": "all"},
    "tail only": {"tail_only": True},
    "1 triple": {"triples": 1},
    "5 triples": {"triples": 5},
    "everyday graph": {"graph": "everyday"},
    "shuffled tails": {"tails": "shuffled"},
    "constant tail": {"tails": "constant"},
    "2 triples of noise": {"noise": 2},
}
guesses = {
    "hard positions": ...,
    "everything visible": ...,
    "both": ...,
    "tail only": ...,
    "1 triple": ...,
    "5 triples": ...,
    "everyday graph": ...,
    "shuffled tails": ...,
    "constant tail": ...,
    "2 triples of noise": ...,
}

# %%
from _tools import Folded

measured = {row: {name: measure(name, **how) for name in SIDES} for row, how in ROWS.items()}


def reveal(*rows):
    """Fold away what some settings score, beside your guess."""
    lines = [f"{'':20} {'Chinese F1':>18} {'your guess':>12} {'English F1':>18}"]
    for row in ("K-BERT", *rows):
        zh, en = (measured[row][name]["f1"] for name in SIDES)
        guess = guesses.get(row, ...)
        yours = "" if guess is ... else f"{guess:.0f}"
        lines.append(
            f"{row:20} {zh:8.1f} ({zh - KBERT['Chinese']:+6.1f}) {yours:>12} "
            f"{en:8.1f} ({en - KBERT['English']:+6.1f})"
        )
    return Folded("Reveal: " + ", ".join(rows), "\n".join(lines))


def line(language, **how):
    """One setting in one line."""
    found = measure(language, **how)
    return (
        f"F1 {found['f1']:.1f} ({found['f1'] - KBERT[language]:+.1f} to K-BERT): {found['right']} right of "
        f"{found['predicted']} found; {found['gold']} are labelled"
    )


reveal("the graph left off")

# %% [markdown]
# (Click on the line to open it. The number in brackets is the difference to K-BERT.)
#
# The English model knows most of its names without any graph: it was pretrained on much more text. So the graph has
# much to give to the Chinese model, and little to the English one. Keep that in mind for all that follows.
#
# ## Soft or hard positions
#
# K-BERT counts the words of the sentence as if no branch stood between them (*soft*). *Hard* counts straight through
# the row. Move the control, then reveal.

# %%
from _tools import slider

LANGUAGES = list(SIDES)


def positions(language, positions):
    print(line(language, positions=positions))


slider(positions, language=LANGUAGES, positions=["soft", "hard"])

# %%
reveal("hard positions")

# %% [markdown]
# The score hardly moves. The branches here are short, so the words after a branch move by a few places, and both models
# can read that.
#
# ## The tree, or everything visible
#
# The visible matrix lets only the mention see its branch. *All* opens every cell: each word of the sentence sees every
# branch, and branches see each other.


# %%
def visible(language, visible):
    print(line(language, visible=visible))


slider(visible, language=LANGUAGES, visible=["tree", "all"])

# %%
reveal("everything visible")

# %% [markdown]
# This is the worst that can happen to a true graph: worse than no graph at all. Why so much worse? With *soft*
# positions a branch has the same position numbers as the words after its mention. When everything is visible, two
# words stand at one place, and nothing says which of them is the sentence.
#
# ## Both
#
# What if the positions are hard *and* everything is visible? Then the row is a plain line of words, read by a plain
# BERT. Will two changes be worse than one?


# %%
def both(language, positions, visible):
    print(line(language, positions=positions, visible=visible))


slider(both, language=LANGUAGES, positions=["hard", "soft"], visible=["all", "tree"])

# %%
reveal("hard positions", "everything visible", "both")

# %% [markdown]
# Two changes are *better* than one of them: with hard positions each word has a place of its own again. **Soft
# positions need the visible matrix.** The two are one design, and an ablation of one part alone also breaks the other.
# ([7b](07_ablations.ipynb) proves it.)
#
# ## Tail only
#
# A branch says a relation and a tail: 胃镜 *类别 检查* (gastroscope *kind examination*). Does the model need the
# relation?


# %%
def tail_only(language, tail_only):
    print(line(language, tail_only=tail_only))


slider(tail_only, language=LANGUAGES, tail_only=False)

# %%
reveal("tail only")

# %% [markdown]
# The tail does most of the work, as it says the kind. Without the relation a branch looks unlike all branches of the
# training, and the English model, for which the graph had little to give, loses what it had gained.
#
# ## Number of triples
#
# The first triple of a name is its kind, in both medical graphs. What do the others add?


# %%
def triples(language, triples):
    print(line(language, triples=triples))


slider(triples, language=LANGUAGES, triples=(0, 10))

# %%
COUNTS = (0, 1, 2, 3, 5, 10)
by_count = {name: [measure(name, triples=k)["f1"] for k in COUNTS] for name in SIDES}
Folded(
    "Reveal: number of triples",
    "\n".join(
        [f"{'triples':8}" + "".join(f"{k:7}" for k in COUNTS)]
        + [f"{name:8}" + "".join(f"{value:7.1f}" for value in of) for name, of in by_count.items()]
    ),
)

# %% [markdown]
# One triple does most. More of them change the English score little, and cost the Chinese model some points. (Both models were trained with two.)
#
# ## Which graph
#
# The paper compares graphs: **HowNet** says what everyday words mean, **MedicalKG** names symptoms, drugs and diseases.
# Our two graphs of each language are small ones of these two sorts. `everyday_zh` even has HowNet's relation, 义原
# (*sememe*, a smallest unit of meaning).


# %%
def graph(language, graph):
    print(line(language, graph=graph))


slider(graph, language=LANGUAGES, graph=["medical", "everyday", "none"])

# %%
reveal("everyday graph", "the graph left off")

# %% [markdown]
# The everyday graph is true, and does nothing. Look at **coverage** before you look at a score: how many names of the
# sentences does a graph know? Beside the medical sentences we count it on sentences of daily life.

# %%
import csv
from pathlib import Path

from kbert_core import grow_trees


def coverage(texts, graph):
    """Mentions that the graph knows, in how many of the texts."""
    nodes = [grow_trees([text], graph)[0].nodes for text in texts]
    return sum(map(len, nodes)), sum(map(bool, nodes))


print(f"{'':30} {'medical graph':>24} {'everyday graph':>24}")
for name, code in (("Chinese", "zh"), ("English", "en")):
    file = Path(f"demo_kgs/example_data/homonyms_{code}.tsv").read_text(encoding="utf-8")
    daily = [row["text"] for row in csv.DictReader(file.splitlines(), delimiter="\t")]
    medical = [example.sentences[0] for example in SIDES[name].examples]
    for what, texts in (("medical", medical), ("daily life", daily)):
        cells = [
            "{:3} names in {:2} of {:2}".format(*coverage(texts, g), len(texts))
            for g in SIDES[name][2:]
        ]
        print(f"{name}, {what:21} {cells[0]:>24} {cells[1]:>24}")

# %% [markdown]
# No graph is good in itself. A graph is good *for texts whose names it knows*.
#
# ## False triples: shuffled and constant tails
#
# Two **controls** ask whether the graph helps because it is *true*. In a *shuffled* graph every name has the tails of
# another name; relations stay. With a *constant* tail every triple of the graph says the same, so a branch is no more
# than a mark: "here is a name".


# %%
def tails(language, tails):
    print(line(language, tails=tails))


slider(tails, language=LANGUAGES, tails=["true", "shuffled", "constant"])

# %%
reveal("shuffled tails", "constant tail", "the graph left off")

# %% [markdown]
# Both are far worse than no graph. The model *believes its graph*: it was trained so that an edit of the graph changes
# the answer, and it can't see that this graph is wrong.
#
# ## Noise
#
# Here every name keeps its true triples, and gets some that are said of other names, at random places among them.


# %%
def noise(language, noise):
    print(line(language, noise=noise))


slider(noise, language=LANGUAGES, noise=(0, 8))

# %%
NOISE, SEEDS = (0, 1, 2, 4, 8), (1, 2, 3)
by_noise = {
    name: [[measure(name, noise=n, seed=seed)["f1"] for seed in SEEDS] for n in NOISE]
    for name in SIDES
}
Folded(
    "Reveal: triples of noise per name, mean of three draws",
    "\n".join(
        [f"{'noise':8}" + "".join(f"{n:7}" for n in NOISE)]
        + [
            f"{name:8}" + "".join(f"{sum(v) / len(v):7.1f}" for v in of)
            for name, of in by_noise.items()
        ]
    ),
)

# %% [markdown]
# Noise hurts step by step. Two false triples per name undo all that the graph gave to the English model, eight undo it
# for the Chinese one. [Notebook 8](08_knowledge_noise.ipynb) shows who is protected and who isn't.
#
# ## The whole bench
#
# Have you revealed all? Then here is everything on one page.

# %%
from _charts import bar_chart, line_chart
from _tools import show

chart = bar_chart(
    {row: {f"{name}": [of[name]["f1"]] for name in SIDES} for row, of in measured.items()},
    across="F1, %",
    most=115,
)
show(chart, "F1 of every setting, Chinese and English model")

# %%
chart = line_chart(
    [str(n) for n in NOISE],
    by_noise,
    across="triples of noise per name",
    up="F1, %",
    levels={"Chinese, no graph": measured["the graph left off"]["Chinese"]["f1"]},
)
show(chart, "F1 as noise grows: mean and range of three draws")

# %% [markdown]
# ## How much can 28 sentences say?
#
# One name more or less moves F1 by more than two points. The **bootstrap** asks: what if we had met other sentences? It
# draws 28 of the 28 sentences with replacement, a thousand times, and scores both settings on the same draw. The
# interval keeps the middle 95 of 100 differences.

# %%
import numpy as np


def interval(one, other, draws=1000):
    """Between which differences of F1 the middle 95 per cent of the draws lie."""
    random = np.random.default_rng(0)
    one, other = np.array(one), np.array(other)
    differences = []
    for _ in range(draws):
        drawn = random.integers(len(one), size=len(one))
        differences.append(f1_of(one[drawn]) - f1_of(other[drawn]))
    return np.percentile(differences, [2.5, 97.5])


side = SIDES["Chinese"]
for name, how in {
    "the graph left off": {"graph": NO_KNOWLEDGE},
    "hard positions": {"graph": side.medical, "ablation": Ablation("hard")},
    "everything visible": {"graph": side.medical, "ablation": Ablation(visible="all")},
}.items():
    low, high = interval(right_found_labelled(side, **how), as_trained)
    print(f"{name:20} − K-BERT: from {low:+.0f} to {high:+.0f} points of F1")

# %% [markdown]
# A difference whose interval lies on one side of 0 would show on other sentences of this sort, too. That of hard
# positions has 0 in the middle.
#
# ## Trained so, not only read so
#
# So far one trained model was *read* in other ways. The paper does another thing: it *trains* a model in each way. So
# did we; that takes hours, so we read what came out. The Chinese models were trained on some 3,500
# clinical sentences with the same training recipe as our model, and tested on names that training never showed (`kbert
# experiment results/suites/medical-ner-disjoint.yaml`); the English ones on abstracts of articles, with a larger graph
# (`ner-en.yaml`). Three seeds each; the number is their mean. Our recipe hides some branches in training; [7b](07_ablations.ipynb) has
# the same rows trained as in the paper.

# %%
from statistics import mean

from kbert_lab.suites.results import Records

TRAINED = {
    ("Chinese", "medical-ner-disjoint"): {
        "K-BERT": "K-BERT + recipe, MedicalKG",
        "the graph left off": "BERT",
        "hard positions": "K-BERT + recipe, hard positions",
        "everything visible": "K-BERT + recipe, everything visible",
        "shuffled tails": "K-BERT + recipe, shuffled MedicalKG",
    },
    ("English", "ner-en"): {
        "K-BERT": "K-BERT + tree dropout, English medical graph",
        "the graph left off": "BERT",
        "shuffled tails": "K-BERT + tree dropout, shuffled graph",
    },
}


def trained_f1(suite, row):
    """F1 on test in per cent, of the first three seeds."""
    runs = Records(Path(f"results/{suite}.jsonl.xz")).all()
    return [100 * runs[row, n]["scores"]["test"]["f1"] for n in (1, 2, 3) if (row, n) in runs]


for (name, suite), rows in TRAINED.items():
    trained = {row: trained_f1(suite, of_suite) for row, of_suite in rows.items()}
    base = mean(trained["K-BERT"])
    print(f"{name:20} {'read so':>18} {'trained so':>22}")
    for row, values in trained.items():
        read = measured[row][name]["f1"]
        print(
            f"{row:20} {read:9.1f} ({read - KBERT[name]:+6.1f}) {mean(values):13.1f} ({mean(values) - base:+5.1f})"
            f"   seeds {', '.join(f'{value:.1f}' for value in values)}"
        )
    print()

# %% tags=["test"]
disjoint = {
    row: mean(trained_f1("medical-ner-disjoint", of_suite))
    for row, of_suite in TRAINED["Chinese", "medical-ner-disjoint"].items()
}
assert all(
    len(trained_f1(suite, of_suite)) == 3
    for (_, suite), rows in TRAINED.items()
    for of_suite in rows.values()
)
assert disjoint["everything visible"] < disjoint["K-BERT"] - 4
assert abs(disjoint["hard positions"] - disjoint["K-BERT"]) < 1
assert disjoint["the graph left off"] < disjoint["shuffled tails"] < disjoint["K-BERT"] - 2
zh = {row: of["Chinese"]["f1"] for row, of in measured.items()}
assert zh["everything visible"] < zh["both"] < zh["K-BERT"]
assert zh["shuffled tails"] < zh["constant tail"] < zh["the graph left off"] < zh["tail only"]
assert abs(zh["hard positions"] - zh["K-BERT"]) < 3 < abs(zh["the graph left off"] - zh["K-BERT"])

# %% [markdown]
# The two columns disagree, and both are right. They answer different questions.
#
# | | **Read so** (this bench) | **Trained so** (as the paper does) |
# |---|---|---|
# | what is changed | the input of one finished model | the model itself, from its first step |
# | the question | Does *this* model rely on the part? | Does a model need the part *to learn the task*? |
# | a large loss means | the model was never shown such input | nothing else could take the part's place |
# | a small loss means | the model ignores the part | something else did its work, or it has none |
# | price | a second | hours, for several seeds |
# | can mislead, since | a strange input is not a missing part | each seed ends elsewhere: use several, and pair them |
#
# So read both columns of a row before you say what a part is worth. Compare *everything visible*, *shuffled tails* and
# *hard positions*: what does each column say? Exercise 2 asks you, and its solution goes through the three rows.
#
# One more question belongs to every control: what does it leave? In the English graph the tail of a disease is its parent,
# another disease. Shuffled, it is still a disease, so the kind stays true.
#
# And HowNet against MedicalKG, trained on the paper's own clinical data, where most names of the test were seen in
# training with a label:

# %%
for row, of_suite in {
    "BERT": "BERT",
    "K-BERT, HowNet": "K-BERT + recipe, HowNet",
    "K-BERT, MedicalKG": "K-BERT + recipe, MedicalKG",
}.items():
    values = trained_f1("medical-ner-dedup", of_suite)
    print(f"{row:18} F1 {mean(values):.1f}   seeds {', '.join(f'{value:.1f}' for value in values)}")

# %% [markdown]
# Where the names were seen in training, no graph has much to give, and which graph it is hardly shows.
#
# ## Exercises
#
# **1.** (easy) Fill the table: the **difference** to K-BERT in points of F1, one digit after the point. Use the
# controls above, or `measure`.

# %% tags=["exercise"]
from checks.ablation_bench import check_table

table = {
    ("Chinese", "everything visible"): ...,
    ("Chinese", "tail only"): ...,
    ("Chinese", "shuffled tails"): ...,
    ("English", "everything visible"): ...,
    ("English", "tail only"): ...,
    ("English", "shuffled tails"): ...,
}
check_table(table, measured)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# The numbers in brackets of each reveal are the differences. `measured[row][language]["f1"]` has more digits.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# table = {
#     (language, row): round(measured[row][language]["f1"] - measured["K-BERT"][language]["f1"], 1)
#     for language in ("Chinese", "English")
#     for row in ("everything visible", "tail only", "shuffled tails")
# }
# check_table(table, measured)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Which kind of ablation supports each sentence: `"read"`, `"trained"`, or `"neither"`?

# %% tags=["exercise"]
from checks.ablation_bench import check_claims

claims = {
    "This Chinese model, as it is, can't read a tree with everything visible.": ...,
    "A model trained with everything visible still gains from the graph.": ...,
    "The visible matrix is worth about 40 points of F1.": ...,
    "This model believes what its graph says, true or false.": ...,
    "In English, training with a false graph gave the same F1 as training with the true one.": ...,
    "Hard positions cost nothing, whatever the task.": ...,
}
check_claims(claims)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Ask of each sentence whether it speaks of one finished model, of models trained in several ways, or of more than anybody
# has measured.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# claims = {
#     "This Chinese model, as it is, can't read a tree with everything visible.": "read",
#     "A model trained with everything visible still gains from the graph.": "trained",
#     "The visible matrix is worth about 40 points of F1.": "neither",
#     "This model believes what its graph says, true or false.": "read",
#     "In English, training with a false graph gave the same F1 as training with the true one.": "trained",
#     "Hard positions cost nothing, whatever the task.": "neither",
# }
# check_claims(claims)
# ```
#
# The three rows:
#
# - *Everything visible*: this model breaks when it is read so. A model that is trained so learns to live with it, and keeps
#   a sixth of the gain. So "the visible matrix is worth 40 points" would be false.
# - *Shuffled tails*: this model believes a false graph and fails. A model that is *trained* with a false graph learns not
#   to believe it, and still sees where a name begins and ends: that is two fifths of the gain in Chinese, and all of it in
#   English.
# - *Hard positions*: no loss in either column. That does not mean that positions do nothing. When a triple is added to the
#   graph, hard positions move every word after it, and other answers of the sentence change
#   ([7b](07_ablations.ipynb) has the numbers). F1 doesn't see it.
# </details>

# %% [markdown]
# **3.** (medium) Find a setting in which the Chinese model scores *higher* than K-BERT as trained, with the true
# medical graph and without noise. Then ask yourself whether you would report it.

# %% tags=["exercise"]
from checks.ablation_bench import check_setting

my_setting = ...  # such as {"positions": "hard"}
check_setting(my_setting, measure)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# A setting with more knowledge isn't always better. Which controls change *how much* is injected?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# my_setting = {"triples": 1}
# check_setting(my_setting, measure)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - An ablation changes one thing. Soft positions and the visible matrix are *one* thing in two parts.
# - Read-time ablations show what a finished model relies on; trained ones show what a model can learn without.
# - The kind of a name, one triple, does most of the work. A graph that doesn't know the names does nothing.
# - A model that follows its graph follows a false graph, too.
#
# **Open question.** In English the shuffled graph and the true one trained equally good models. Is a name's border all
# that helps, or its kind, which the shuffling left true? Which *one* further row would you train to tell these apart,
# and which result would speak for which?
#
# ## Go on

# %%
from _tools import lab_link

lab_link(
    "行胃镜检查，见胃体黏膜充血。",
    graph=SIDES["Chinese"].medical,
    model="medical-ner-kbert",
    task="ner",
    options=SIDES["Chinese"].model.card.reading.options,
    ablation=Ablation(visible="all"),
)

# %% [markdown]
# In the Lab, positions and visibility can be switched below the text. Next: [7b · Ablations](07_ablations.ipynb), the
# proof that soft positions need the matrix, and models trained in each way.
