# %% [markdown]
# # 6b · Reading a results page
#
# **Question.** A table says that K-BERT is ahead. Is it the graph, the seed, the split, or something that a dictionary does better?
#
# **You need** [6 · Fine-tuning](06_fine_tuning.ipynb), and means and standard deviations. **You get** the numbers of
# [our results](../docs/results.md) worked out again from the files of the runs: a mean ±, an interval, a leak, a dictionary, a gate and an oracle. At the end
# you decide with `kbert audit` whether a graph can help at all. Nothing is trained.
#
# Results grow: runs are added, and figures move. So this notebook reads every figure from the files, and the text claims none.
#
# **After this notebook you can** read mean ± deviation and an interval, find a leak, and say what a dictionary would score.

# %%
from _tools import ready

SUITES = ("medical-ner-official", "medical-ner-dedup", "medical-ner-random", "medical-ner-disjoint")
ready(*(f"results/{suite}.jsonl.xz" for suite in SUITES))

# %% [markdown]
# ## What a run leaves behind
#
# Every row of a results page is trained several times, with other **seeds**: other random weights in the head, another order of the sentences, and here other held-out names. Each
# training leaves one line of JSON, and all those of a suite lie in one packed file.

# %% tags=["varies"]
import json
import lzma
from pathlib import Path


def runs(suite):
    """row → seed → the run's JSON."""
    found = {}
    with lzma.open(f"results/{suite}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for run in map(json.loads, lines):
            found.setdefault(run["row"], {})[run["seed"]] = run
    return found


by_suite = {suite: runs(suite) for suite in SUITES}
rows = by_suite["medical-ner-disjoint"]
run = rows["K-BERT + recipe, MedicalKG"][1]
print(run["command"])
print("sentences:", run["examples"])
print("F1 on test:", round(100 * run["scores"]["test"]["f1"], 1))

# %% [markdown]
# What makes the rest of this notebook possible: a run also counts, for each test sentence, how many entities were right, predicted and gold. There is no text in it (the
# data may not be published); a sentence is known by eight digits of its hash.

# %% tags=["varies"]
import numpy as np


def counts(run):
    """The ids of the test sentences, and a number for each of them in every column."""
    kept = run["sentences"]
    columns = {name: np.array(line.split(), float) for name, line in kept["columns"].items()}
    return kept["ids"].split(), columns


def f1(columns, times=1):
    """F1 in points; ``times`` says how often each sentence counts."""
    right, predicted, gold = ((columns[c] * times).sum() for c in ("right", "predicted", "gold"))
    return 100 * 2 * right / (predicted + gold)


ids, columns = counts(run)
print(ids[0], {name: int(column[0]) for name, column in columns.items()})
print("F1 from the counts:", round(f1(columns), 1))

# %% tags=["test"]
assert abs(f1(columns) - 100 * run["scores"]["test"]["f1"]) < 1e-6

# %% [markdown]
# ## A mean, and what ± says
#
# Results pages write *mean ± standard deviation over the seeds*. The deviation divides by $n - 1$, as the seeds are a sample:
#
# $$\bar{x} = \frac{1}{n}\sum_i x_i, \qquad s = \sqrt{\frac{1}{n - 1}\sum_i (x_i - \bar{x})^2}$$


# %% tags=["varies"]
def of_seeds(row, suite="medical-ner-disjoint"):
    """seed → F1."""
    return {seed: f1(counts(run)[1]) for seed, run in by_suite[suite][row].items()}


def spread(values):
    values = np.array(list(values))
    return values.mean(), values.std(ddof=1)


shown = [
    "BERT",
    "K-BERT + recipe, MedicalKG",
    "K-BERT + recipe, shuffled MedicalKG",
    "BERT with the dictionary written over it",
]
for row in shown:
    mean, deviation = spread(of_seeds(row).values())
    each = ", ".join(f"{x:.1f}" for x in of_seeds(row).values())
    print(f"{row:42} {mean:.1f} ± {deviation:.1f}   seeds {each}")

# %% [markdown]
# ± is how far *one training* lies from the mean. It is not how far the mean may be off, and not an interval.
#
# ## A difference, paired by seed
#
# A gain is a difference of two rows. Both rows of one seed have the same test sentences and names, so we subtract
# within each seed. If a seed is hard, it is hard for both rows, and this cancels out.

# %% tags=["varies"]
one, other = "K-BERT + recipe, MedicalKG", "BERT"
shared = sorted(set(rows[one]) & set(rows[other]))
differences = np.array([of_seeds(one)[seed] - of_seeds(other)[seed] for seed in shared])
mean, deviation = spread(differences)
each = ", ".join(f"{d:+.1f}" for d in differences)
print(f"{one} − {other}: {each}; mean {mean:+.1f}, s {deviation:.1f}")

# %% [markdown]
# ## An interval, from two sources of chance
#
# Would other *seeds* give the same? Would other *sentences*? [The project's interval](../docs/decisions/statistics.md) asks both.
#
# **Seeds.** The mean of $n$ seeds has the variance $s^2/n$. With few seeds $s$ itself is uncertain, so the factor is not 1.96 but Student's $t$: 4.30 for three seeds, 2.78 for five.

# %% tags=["varies"]
from scipy.stats import t

n = len(differences)
factor = t.ppf(0.975, n - 1)
seeds_alone = factor * deviation / np.sqrt(n)
print(f"t for {n} seeds: {factor:.2f}")
print(f"seeds alone: {mean:+.1f} [{mean - seeds_alone:+.1f}, {mean + seeds_alone:+.1f}]")

# %% [markdown]
# **Sentences.** We can't write new ones, but draw from those we have, with replacement: some twice, some not at all (a *bootstrap*). A draw gives each sentence the same weight in both rows and in every seed.
# What the seeds' results then have in common (their *covariance*) is the sentences' share.

# %% tags=["varies"]
random = np.random.default_rng(0)
every_id = sorted({i for seed in shared for i in counts(rows[one][seed])[0]})
place = {i: number for number, i in enumerate(every_id)}
DRAWS = 2000
size = len(place)
drawn = np.array(
    [np.bincount(random.integers(size, size=size), minlength=size) for _ in range(DRAWS)]
)


def resampled(row, seed):
    """F1 of one run in each draw, (DRAWS,)."""
    ids, columns = counts(rows[row][seed])
    times = drawn[:, [place[i] for i in ids]]  # (DRAWS, sentences)
    right, predicted, gold = (times @ columns[c] for c in ("right", "predicted", "gold"))
    return 100 * 2 * right / (predicted + gold)


draws = np.array([resampled(one, seed) - resampled(other, seed) for seed in shared])  # (n, DRAWS)
covariance = np.cov(draws)
common = max(0, (covariance.sum() - covariance.trace()) / (n * (n - 1)))
half = np.sqrt(factor**2 * deviation**2 / n + 1.96**2 * common)
print(f"by hand: {mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]")

# %% [markdown]
# The library's, with 10,000 draws of its own, and the page's:

# %% tags=["varies"]
from kbert_lab.study.statistics import METRICS, Resampled, unpacked

library = Resampled(
    {
        row: {
            s: unpacked(run["sentences"], run["inputs"]["data"]["sha256"])
            for s, run in rows[row].items()
        }
        for row in (one, other)
    }
)
found = library.difference(one, other, METRICS["ner"][0])
print(f"library: {100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]")
page = Path("docs/results/medical-ner-disjoint.md").read_text(encoding="utf-8")
line = next(x for x in page.splitlines() if x.startswith(f"| {one} − {other} |"))
print("page:   ", line.split(" | ")[2])

# %% tags=["test"]
assert abs(100 * found.mean - mean) < 1e-6
assert abs(100 * (found.high - found.low) / 2 - half) < 0.3

# %% [markdown]
# Read it like this: *if all was done again with other seeds and other sentences of this kind, 95 of 100 such intervals
# would contain the true gain.* It says nothing about *other data*: all seeds come from one data set.
#
# ## What happens without the seeds' share
#
# Many papers resample the sentences of one seed. Try that on a comparison in which **nothing** differs but the seed: two BERTs with the same data.

# %% tags=["varies"]
same_data = by_suite["medical-ner-dedup"]
alone = Resampled(
    {row: {s: unpacked(r["sentences"]) for s, r in of.items()} for row, of in same_data.items()}
)
nothing = [
    (row, d)
    for row in same_data
    for d in alone.between_seeds(row, METRICS["ner"][0])
    if "BERT" in row
]
sure = 0
for row, d in nothing:
    excludes = d.low > 0 or d.high < 0
    sure += excludes
    print(
        f"{row:42} {100 * d.mean:+.1f} [{100 * d.low:+.1f}, {100 * d.high:+.1f}]",
        "← 'significant'" if excludes else "",
    )
print(
    f"{sure} of {len(nothing)} comparisons of a row with itself look sure; at 95 % it should be one in twenty"
)

# %% [markdown]
# Such an interval compares two *trained models*. A paper that reports one seed with it says nothing of the *method*. In our tables a difference of one seed is marked *exploratory* and has no interval.
#
# ## Find the leak
#
# Here are two pages on the same records: the split as it was published, and one *without leaks*. Their BERT rows differ:

# %% tags=["varies"]
published, clean = (by_suite[suite]["BERT"] for suite in SUITES[:2])
first, second = published[1], clean[1]
for name, run in (("published", first), ("without leaks", second)):
    ids, columns = counts(run)
    print(
        f"{name:14} F1 {f1(columns):.1f}   {run['examples']}   different test sentences: {len(set(ids))}"
    )
print("test sentences in both:", len(set(counts(first)[0]) & set(counts(second)[0])))

# %% [markdown]
# The published test set holds some sentences several times. Count each once, and both are tested on *the same sentences*. What is left of the difference, if each counts once?

# %% tags=["varies"]
ids, columns = counts(first)
once = np.array([i not in ids[:number] for number, i in enumerate(ids)])
each_once, without_leaks = f1(columns, once), f1(counts(second)[1])
print(f"published, each sentence once: {each_once:.1f}")
print(f"without leaks:                 {without_leaks:.1f}")
print(
    f"trained on {second['examples']['train']:,} sentences instead of {first['examples']['train']:,}"
)

# %% tags=["test"]
assert set(counts(first)[0]) == set(counts(second)[0]) and each_once > without_leaks

# %% [markdown]
# So only *training* differs: without leaks, no sentence of test stands in train, nor twice in train. (Train is smaller, too, so that not all of the difference must be the leak.) You can look for a leak in any data: it takes a
# set. Our example data has one on purpose.


# %% tags=["varies"]
def texts(split):
    lines = Path("demo_kgs/example_data/medical_ner", f"{split}.tsv").read_text(encoding="utf-8")
    return [line.split("\t")[0].replace(" ", "") for line in lines.splitlines()[1:]]


train = set(texts("train"))
for split in ("dev", "test"):
    in_train = [text for text in texts(split) if text in train]
    print(f"{split}: {len(in_train)} of {len(texts(split))} stand in train:", *in_train)

# %% [markdown]
# ## The dictionary, the gate and the oracle
#
# MedicalKG says of a name whether it is a disease, a symptom or a body part. Who needs a neural network to look that up? Four rivals, without any injection:
#
# - **dictionary**: mark every name of the graph in the text, with the graph's type;
# - **dictionary over BERT**: BERT's output, with the dictionary written over it;
# - **gate**: a small classifier, fitted on dev, decides for each name whether it is written over;
# - **oracle**: a name is written over only where that is right. Nobody can build one, because it looks at the answers.
#   It is the *ceiling* of any gate.

# %% tags=["varies"]
import pandas as pd

RIVALS = {
    "BERT": "BERT",
    "K-BERT": "K-BERT + recipe, MedicalKG",
    "dictionary": "MedicalKG as a dictionary",
    "dictionary over BERT": "BERT with the dictionary written over it",
    "gate": "BERT, dictionary through a gate",
    "oracle": "BERT, dictionary through an oracle",
}
NAMES = dict(zip(SUITES, ("published", "without leaks", "random names", "MedicalKG's names")))


def room(suite):
    """Share of test mentions not labelled in training, and the share of these that the graph knows."""
    totals = [
        [counts(run)[1][c].sum() for c in ("unseen", "gold", "covered")]
        for run in by_suite[suite]["BERT"].values()
    ]
    unseen, gold, covered = np.sum(totals, axis=0)
    return 100 * unseen / gold, 100 * covered / unseen


table = {}
for suite in SUITES:
    new, known = room(suite)
    table[NAMES[suite]] = {"new names, %": new, "of these known, %": known} | {
        rival: np.mean(list(of_seeds(row, suite).values())) if row in by_suite[suite] else None
        for rival, row in RIVALS.items()
    }
table = pd.DataFrame(table)
table.round(1)

# %% [markdown]
# (NaN: not run yet.) Read the columns from left to right, from few new names to many. Then answer for yourself: Where does K-BERT gain on BERT? Where does the dictionary do harm, and
# what does it write over there? Is a rival better than K-BERT? How far is the gate from its ceiling?

# %% tags=["varies"]
from _charts import line_chart
from _tools import show

table.loc["new and known, %"] = table.loc["new names, %"] * table.loc["of these known, %"] / 100
table = table.sort_values("new and known, %", axis=1)
over_bert = {
    name: (table.loc[name] - table.loc["BERT"]).tolist()
    for name in ("K-BERT", "dictionary over BERT")
}
chart = line_chart(
    table.loc["new and known, %"].tolist(),
    over_bert,
    across="mentions with a new name that the graph knows, %",
    up="points of F1 over BERT",
    levels={"BERT": 0},
)
show(
    chart,
    "Gain over BERT of K-BERT and of the dictionary, by the share of new names that the graph knows",
)

# %% [markdown]
# If a look-up is ahead of K-BERT on your data, F1 is no reason to inject. What a look-up can't do: leave a name alone that means something else in *this* sentence (a gate learns a little of that), and say what
# follows from a relation that isn't a label. See [8](08_knowledge_noise.ipynb) and [9](09_explain_a_prediction.ipynb).
#
# ## Before you train: `kbert audit`
#
# The x-axis above needs no model: count how many names are new, and how many of these the graph knows. `kbert audit` counts that on
# your data, with leaks, contradictions and the dictionary. Its findings have three levels: `!` a warning, `·` a note, `+` good.

# %%
import io
from contextlib import redirect_stderr, redirect_stdout

from kbert_lab.cli import main

EXAMPLE = "demo_kgs/example_data/medical_ner"
MARKS = {"warning": "!", "note": "·", "good": "+"}


def audit(kg, kinds=()):
    """`kbert audit --json` on the example data: its headline, and its findings of some kinds, or all."""
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()):
        main(["audit", "--data", EXAMPLE, "--kg", kg, "--json"])
    verdict = json.loads(printed.getvalue())["verdict"]
    print(verdict["headline"])
    for finding in verdict["findings"]:
        if not kinds or finding["kind"] in kinds:
            print(MARKS[finding["level"]], finding["kind"], "-", finding["text"])
    return verdict


audited = audit("demo_kgs/medical_zh.spo")

# %% [markdown]
# Decide in this order. Each answer can end the search:
#
# 1. **leaks**: do texts of test stand in train? Then repair the split first (`kbert split --by deduplicated`): no score means anything.
# 2. **room**: how many mentions have a new name, and how many of these does the graph know? Little room, little gain.
# 3. **made_from_data**: are the graph's names the data's own annotations? Then a gain shows that the model *reads*, not that independent
#    knowledge helps.
# 4. **dictionary**: what does a plain look-up score? That is what a model with the graph has to beat.
#
# The same data with another graph, which knows everyday words:

# %%
other_graph = audit("demo_kgs/everyday_zh.spo", ("coverage", "room", "dictionary"))

# %% [markdown]
# With `--model`, a model without knowledge, the audit also says what a dictionary, a gate and an oracle would gain on it.

# %% tags=["test"]
kinds = {finding["kind"]: finding["level"] for finding in audited["findings"]}
assert kinds["leaks"] == "warning" and "dictionary" in kinds
assert other_graph["headline"] != audited["headline"]

# %% [markdown]
# ## Exercises
#
# **1.** (medium) The interval of a mean difference, from seeds alone: a function of the differences of all seeds that returns (low, high). For other numbers of seeds, `t.ppf(0.975, n - 1)` gives the factor.

# %% tags=["exercise"]
from checks.reading_results import check_interval


def interval(differences):
    return ...


check_interval(interval)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# $\bar{x} \pm t\, s / \sqrt{n}$.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def interval(differences):
#     n = len(differences)
#     half = t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / np.sqrt(n)
#     return np.mean(differences) - half, np.mean(differences) + half
#
#
# check_interval(interval)
# ```
# </details>

# %% [markdown]
# **2.** (easy) Which share of the *test* rows has a text that stands in train? `train` and `test` are lists of (text, label). Write the function.

# %% tags=["exercise"]
from checks.reading_results import check_leaked


def leaked(train, test):
    return ...


check_leaked(leaked)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Make a set of the texts of train. Count the rows of test, not the different texts.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def leaked(train, test):
#     known = {text for text, label in train}
#     return sum(text in known for text, label in test) / len(test)
#
#
# check_leaked(leaked)
# ```
# </details>

# %% [markdown]
# **3.** (easy) A page has the row: *A − B, 3 seeds, +1.3 [−0.4, +3.0]*. Which of these follow from it?

# %% tags=["exercise"]
from checks.reading_results import check_follows

follows = {
    "A and B are equally good": ...,
    "with other seeds and sentences B may be ahead": ...,
    "a gain of 8 points would be a surprise": ...,
    "on other data A gains about as much": ...,
    "A was ahead on average of the three seeds": ...,
}
check_follows(follows)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Which values does the interval leave open? What was drawn anew for it, and what wasn't?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# follows = {
#     "A and B are equally good": False,
#     "with other seeds and sentences B may be ahead": True,
#     "a gain of 8 points would be a surprise": True,
#     "on other data A gains about as much": False,
#     "A was ahead on average of the three seeds": True,
# }
# check_follows(follows)
# ```
# </details>

# %% [markdown]
# **4.** (medium) Five audits, five decisions. What comes *first*? Answer `"repair the split"`, `"no room"`, `"wrong graph"`, `"not independent"` or `"train"`.
#
# | | test texts in train | mentions with a new name | of these known to the graph | heads that are gold mentions |
# |---|---:|---:|---:|---:|
# | A | 44 % | 5 % | 67 % | 12 % |
# | B | 0 % | 3 % | 70 % | 8 % |
# | C | 0 % | 52 % | 1 % | 2 % |
# | D | 1 % | 40 % | 87 % | 96 % |
# | E | 0 % | 45 % | 60 % | 9 % |

# %% tags=["exercise"]
from checks.reading_results import check_decisions

decisions = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ...}
check_decisions(decisions)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Go through the four questions in their order, and stop at the first bad answer.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# decisions = {
#     "A": "repair the split",
#     "B": "no room",
#     "C": "wrong graph",
#     "D": "not independent",
#     "E": "train",
# }
# check_decisions(decisions)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - *Mean ± s* is how far one training lies from the mean, not an interval of the mean.
# - Compare rows **within each seed**. An interval holds the seeds (Student's $t$) and the sentences (bootstrap). One seed gives no interval of a method.
# - A leak lifts every row, and leaves knowledge nothing to add.
# - A graph of types has rivals: the dictionary, the dictionary through a gate, and the oracle, which is the gate's ceiling.
# - `kbert audit` tells in seconds whether there is anything to gain.
#
# **Open question.** In which column of the table would you publish, what would you write beside it, and what is the
# strongest argument against your choice?
#
# ## Go on
#
# *To read:* [Reporting score distributions makes a difference](https://arxiv.org/abs/1707.09861) (Reimers and Gurevych 2017).

# %%
from _tools import lab_link
from kbert_core import load_graph

lab_link(
    "患者行胃镜检查未见异常",
    graph=load_graph("demo_kgs/medical_zh.spo"),
    model="medical-ner-kbert",
    task="ner",
)

# %% [markdown]
# The app's page *Data* shows an audit of your own files, and *Results* the tables of this notebook. Next: [7a · The ablation bench](07a_ablation_bench.ipynb), which part of K-BERT does what.
