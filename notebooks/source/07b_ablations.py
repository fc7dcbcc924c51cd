# %% [markdown]
# # 7b · Ablations
#
# **Question.** Why do soft positions need the visible matrix, and what does a model learn without one of them?
#
# **You need** notebooks [2](02_soft_positions.ipynb), [3](03_visible_matrix.ipynb), [6](06_fine_tuning.ipynb) and
# [7a](07a_ablation_bench.ipynb): soft positions, the visible matrix, the riddles, and the bench. **You get** a proof that
# needs no training, a training that agrees with it, a control that misleads, and the paper's Figure 5 at full size.
#
# **After this notebook you can** prove why soft positions need the matrix, compute a ceiling before training, and choose a control.

# %%
from _tools import ready

ready(
    "models/medical-ner-kbert",
    "results/medical-ner-disjoint.jsonl.xz",
    "results/resume-ner.jsonl.xz",
    "results/order_riddles.json",
    "results/published.yaml",
)

# %% [markdown]
# ## Taking a part away
#
# An **ablation** takes a part away to see what it was good for. The paper's Figure 5 takes away two: soft positions,
# and the visible matrix. On both of its tasks, questions on law (Law_Q&A) and clinical entities (Medicine_NER), K-BERT
# is worse without either. On Law_Q&A, K-BERT without the matrix is worse than plain BERT.
#
# Neither is a weight of the model; both are inputs. So an ablation is another input, which we can write down. By hand,
# for Figure 2:

# %%
import torch

from kbert_core import Ablation, Words, collate, flatten, grow_trees, load_graph

figure2 = load_graph("demo_kgs/figure2.spo")
flat = flatten(grow_trees(["Tim Cook is visiting Beijing now"], figure2), Words(special=True))[0]
batch = collate([flat])
N = len(flat)

hard = torch.arange(N)[None]  # counts straight through: a row of 0, 1, …, N − 1
everything = torch.ones(1, N, N, dtype=torch.bool)  # every token sees every token

tree_matrix = Ablation().visible_in(batch)
print("soft:", *batch.soft_positions[0].tolist())
print("hard:", *hard[0].tolist())
print(
    f"cells of the matrix: {N * N}; visible: {tree_matrix.sum().item()} in the tree's, all in the other"
)

# %% tags=["test"]
assert torch.equal(Ablation(positions="hard").position_ids(batch), hard)
assert torch.equal(Ablation(visible="all").visible_in(batch), everything)

# %%
from _charts import visible_chart
from _tools import show, slider

WAYS = {
    "K-BERT": Ablation(),
    "hard positions": Ablation(positions="hard"),
    "everything visible": Ablation(visible="all"),
    "both": Ablation("hard", "all"),
}


def picture(way):
    return show(visible_chart(flat, WAYS[way]), f"The matrix of Figure 2, {way}", width=420)


slider(picture, way=list(WAYS))

# %%
picture("everything visible")

# %% [markdown]
# (Grey: what K-BERT hides.) There are two more things to take away, and they belong to any such comparison, for they
# are the **controls**: the graph (then it is BERT), and the *truth* of the graph (shuffled or constant tails).
#
# ## Two parts that belong together
#
# The graph says two things of 胃镜 (*gastroscope*): its kind (类别) is examination (检查), and it is not (不是) a disease
# (疾病). In a second graph the two tails change places. Now the graph says that a gastroscope is a disease and not an
# examination, which is false. A model that reads its triples must see the difference.

# %%
from kbert_core import Characters, KnowledgeGraph, Triple


def says(kind, is_not):
    """A graph of two triples."""
    return KnowledgeGraph([Triple("胃镜", "类别", kind), Triple("胃镜", "不是", is_not)])


true, false = says("检查", "疾病"), says("疾病", "检查")
text = "行胃镜检查，见胃体黏膜充血。"  # gastroscopy was done, congestion of the stomach's mucosa was seen
for graph in (true, false):
    row = flatten(grow_trees([text], graph), Characters())[0]
    print(" ".join(f"{token}{position}" for token, position in zip(row.tokens, row.soft_positions)))

# %% [markdown]
# (Each token with its soft position.) Both relations begin at the same one, and so do both tails: branches of one mention start at the
# same number. Attention knows a token by two things, its vector and its position, and, where everything is visible, by
# nothing else. So for a model with *soft positions and everything visible* the two rows are the **same bag**: the same
# tokens at the same positions. In which order they stand, self-attention can't see. The trained model agrees:

# %%
from kbert_core import Pipeline

kbert = Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu")


def apart(pipeline, text, one, other, ablation):
    """How far the logits of the sentence's tokens are apart, at most, between two graphs."""
    first, second = (pipeline(text, graph=graph, ablation=ablation) for graph in (one, other))
    logits = [t.logits[0, torch.tensor(t.rows[0].branch_ids) == 0] for t in (first, second)]
    return (logits[0] - logits[1]).abs().max().item()


for name, way in WAYS.items():
    print(f"{name:20} logits differ by {apart(kbert, text, true, false, way):.4f}")
    for what, graph in (("true", true), ("false", false)):
        spans = kbert(text, graph=graph, ablation=way).prediction.spans
        print(f"    {what:6}", ", ".join(f"{s.text} {s.label}" for s in spans))

# %% tags=["test"]
differences = {name: apart(kbert, text, true, false, way) for name, way in WAYS.items()}
assert (
    differences["everything visible"]
    < 1e-4
    < 1
    < min(differences[name] for name in ("K-BERT", "hard positions", "both"))
)

# %% [markdown]
# K-BERT says *examination* with the true graph and *disease* with the false one: it knows which tail belongs to which
# relation, since a branch sees itself and no other branch. **Everything visible: nothing changes.** With hard
# positions *and* everything visible the model can tell the two apart again, as each token has a place of its own; but
# now the words beside the mention read the branch, too, and are taken for names.
#
# Is that a matter of training? No. Here are BERTs with random weights. Whatever the weights, the difference stays 0.

# %%
from copy import deepcopy

from transformers import BertForTokenClassification

config = deepcopy(kbert.encoder.config)  # the size and the vocabulary of the trained one
config.initializer_range = 0.3  # large random weights, so that differences show


def random_bert(seed):
    """A BERT that was never trained."""
    torch.manual_seed(seed)
    return Pipeline(BertForTokenClassification(config).eval(), kbert.hugging_face_tokenizer)


for seed in (1, 2, 3):
    untrained = random_bert(seed)
    cells = [f"{name} {apart(untrained, text, true, false, way):.4f}" for name, way in WAYS.items()]
    print(f"random weights {seed}:", "   ".join(cells))

# %% [markdown]
# So no training can teach such a model to bind a tail to its relation, if branches of one mention have equally long
# relations and tails. **Soft positions give up the order of the branches, and the visible matrix gives back which tokens
# belong together.** Take away the matrix alone, and you have taken away both. This is why in [7a](07a_ablation_bench.ipynb)
# *both* scores better than *everything visible*.
#
# ## A task that needs both parts
#
# Now we *train* models with a part taken away. This can only show something if the task needs the part. Here is a riddle
# that needs the order of the sentence, the branches, and which branch belongs to what:

# %%
from _riddles import FEW, KINDS, MANY, ROWS, order_riddles, train_row

made = order_riddles(seed=1)
riddle = made.unseen[0]
print(riddle.sentences[0], "→", riddle.label)
for name in riddle.sentences[0].split()[-3:]:
    print("  ", *made.graph.triples_of(name))

# %% [markdown]
# All names are invented, and the vocabulary of the model has none of them: each name is the same token `[UNK]`. So there
# is nothing to remember. To answer, a model has to find out three things:
#
# 1. Which name is meant? The order of the sentence says it.
# 2. Which branches belong to this name?
# 3. Which tail belongs to *is*? The other tails are animals, too.
#
# In training a name has one to three triples. There is a harder test as well: names with four to six.
#
# With soft positions and everything visible, the third question has no answer: the tails of a name are a bag. Of $n$
# tails a model can only guess one, so on average it is right in $1/n$ of the cases. This **ceiling** can be computed
# before any training:

# %%
print(f"a guess among all kinds: {1 / len(KINDS):.2f}")
for examples, (least, most) in ((made.unseen, FEW), (made.more, MANY)):
    ceiling = made.ceiling(examples)
    print(f"names with {least} to {most} triples: {ceiling:.2f} if tails are a bag")

# %% [markdown]
# Let us train K-BERT, a model of three layers and 100,000 weights, on 2,000 riddles. This takes about a quarter of a
# minute. (Later, put another row of `ROWS` in its place.)

# %% tags=["about"]
row = "K-BERT"
trained = train_row(row, seed=1)
print(f"{row}: {trained.last.step} steps")
print(f"unseen names right:   {trained.last.unseen:.2f}")
print(f"… with more triples:  {trained.more:.2f}")

# %% tags=["test"]
assert trained.last.unseen > 0.9 < trained.more

# %% [markdown]
# Every row was trained like this for 1,500 steps, each time for about a minute (`python -m benchmarks.order_riddles`; the
# table says with how many seeds). **Guess first:** which rows get (nearly) everything right, which stop at the ceiling, which
# can't do better than a third, and which only guess?
#
# - *hard positions*, *everything visible*, *both*: as above.
# - *no graph*: BERT. *Constant tail*: every triple says the same.
# - *no place in the sentence*: "What came : Bakodu Dumipe Pelazu", without the word *third*.
# - *K-BERT, two layers*: nothing is taken away but a layer.

# %%
import json
from pathlib import Path
from statistics import mean, stdev

from _tools import Folded

runs = json.loads(Path("results/order_riddles.json").read_text(encoding="utf-8"))["runs"]


def right(row, test):
    """The share of right answers after the last step, one per seed."""
    of_row = [run for run in runs if run["row"] == row]
    return [run[test] if test in run else run["curve"][-1][test] for run in of_row]


lines = [f"{'':26} {'seeds':>5} {'unseen names':>22} {'with more triples':>22}"]
for row in ROWS:
    tests = right(row, "unseen"), right(row, "more triples")
    cells = [f"{mean(v):.2f} ({min(v):.2f} to {max(v):.2f})" for v in tests]
    lines.append(f"{row:26} {len(tests[0]):5} {cells[0]:>22} {cells[1]:>22}")
Folded("Reveal: mean of the seeds (lowest to highest)", "\n".join(lines))

# %% tags=["test"]
ceilings = [made.ceiling(made.unseen), made.ceiling(made.more)]
assert min(right("K-BERT", "unseen") + right("K-BERT", "more triples")) > 0.97
for row in ("everything visible", "K-BERT, two layers"):
    assert max(right(row, "unseen")) < ceilings[0] + 0.05
    assert max(right(row, "more triples")) < ceilings[1] + 0.1
for row in ("hard positions", "both"):
    assert min(right(row, "unseen")) > 0.9 > 0.85 > max(right(row, "more triples"))
assert max(right("no place in the sentence", "unseen")) < 0.45
assert max(right("no graph (BERT)", "unseen") + right("constant tail", "unseen")) < 0.1

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# - **K-BERT** solves the riddles, and also those with more triples than it ever met in training.
# - **Everything visible** stops at its ceiling, in every seed. More steps don't help; the proof says so. (A test has 300
#   sentences, so a few points up or down are chance.)
# - **Hard positions** solve what looks like the training. But where names have more triples, the third name stands further
#   back in the row than it ever did in training. Soft positions keep it in its place: the branches before it don't count.
# - **Both** is a plain line of words. A BERT can learn to read it, too, and then fails on longer ones even more often.
# - **No graph, constant tail**: a guess. **No place**: right one time in three, as the model can only choose a name.
# - **Two layers** stop at the ceiling, too, although nothing is hidden that K-BERT would show. The way takes three steps: a
#   tail reads its relation, the name reads its tails, `[CLS]` reads the name. After two layers `[CLS]` has read a name that
#   knew only a bag.
# </details>

# %% [markdown]
# This task is made up, so that each part is needed. It shows what the parts *can* do, not how much they matter in a real
# text. And it works only because the names are unknown words. If each name is a token of the vocabulary, the same K-BERT
# learns the 2,000 sentences by heart: after 600 steps its loss is near 0, and it has 5 % of the unseen names right (one
# seed). So did earlier riddles of ours fail, whose names were known: 0.41 to 0.71 after at most 840 steps. A task can also
# be too easy: on the riddles of [notebook 6](06_fine_tuning.ipynb), with five triples and 420 steps, every row got 0.87 to
# 1.00, also with the shuffled graph.
#
# ## A shuffled graph that knows
#
# A false graph can help, too, and then a control misleads. Take the riddles of [notebook 6](06_fine_tuning.ipynb), with
# up to five triples per name, and shuffle the graph:

# %%
from _riddles import make_riddles
from kbert_lab.graphs.controls import shuffled

graph = load_graph("demo_kgs/general_en.spo", "demo_kgs/medical_en.spo")
riddles = make_riddles(graph, seed=1)
wrong = shuffled(riddles.graph, seed=1).graph
for name in ("ibuprofen", "paris"):
    print(*wrong.triples_of(name)[:3])

# %% [markdown]
# The tails are false, but each name has kept its *relations*: what `treats` something is a drug, whatever it treats,
# and what is the `capital` of anything is a city. Let us guess the kinds of unseen names by their relations alone,
# without any model: of the names of training that have the same relations, the most common kind.

# %%
from collections import Counter, defaultdict


def relations(name):
    return tuple(triple.relation for triple in riddles.graph.triples_of(name)[:5])


kinds_of = defaultdict(Counter)
for kind, names in riddles.names.items():
    for name in names:
        kinds_of[relations(name)][kind] += 1

guesses = [
    (kinds_of[relations(name)].most_common(1) or [(None, 0)])[0][0] == kind
    for kind, names in riddles.unseen_names.items()
    for name in names
]
print(
    f"{sum(guesses)} of {len(guesses)} unseen names: {mean(guesses):.2f}; chance is {riddles.chance:.2f}"
)

# %% tags=["test"]
assert mean(guesses) > 0.6

# %% [markdown]
# So these riddles have a second solution, and a control that leaves the relations in place can't tell the two apart.
# **A control takes away one thing; ask what it leaves.** (The library's shuffling keeps relations on purpose: it takes
# away the pairing of names and tails, nothing else.) Repairs: inject the tails alone (`tail_only`), or one relation.
#
# ## At full size: the 2 × 2 on two data sets
#
# A BERT of 4.3 million weights, pretrained on Chinese text. Each combination of positions and matrix is one row, trained its own way as in the
# paper, with three seeds. This takes hours, so we read what came out.
#
# - **Clinical** (`medical-ner-disjoint`): some 3,500 sentences, in which entities are to be found. The names that the graph knows are divided so
#   that those of the test set were never seen with a label. *Edits followed* is the share of rewritten facts that the model follows;
#   *others changed* is the share of *other* entities of a sentence that change when a missing triple is added.
# - **Résumés** (`resume-ner`), with HowNet: three of four sentences hold a word of the graph, and what it says of the word has little to do with the label.
#
# **Guess first:** in which data set do positions count, and in which the matrix?

# %%
from _bench import CLINICAL, RESUMES, trained
from kbert_lab.suites.results import Records

RUNS = Records(Path("results/medical-ner-disjoint.jsonl.xz")).all()


def full(row, suite="medical-ner-disjoint"):
    """F1 on test, per cent, one per seed."""
    return trained(suite, (CLINICAL if suite == "medical-ner-disjoint" else RESUMES)[row])


def edits(row):
    """How many rewritten facts are followed, and how many other entities change, per cent."""
    if row in ("constant tail", "the graph left off"):  # there is nothing to rewrite
        return "–", "–"
    found = [RUNS[CLINICAL[row], seed]["edit_response"]["test"] for seed in (1, 2, 3)]
    followed = mean(of["unseen"]["new"] for of in found)
    return f"{followed:.0%}", f"{mean(of['added']['unseen']['others_changed'] for of in found):.0%}"


lines = [f"{'':20} {'clinical':>12} {'edits followed':>15} {'others changed':>15} {'résumés':>12}"]
for row in CLINICAL:
    scores = [f"{mean(of):.1f} ± {stdev(of):.1f}" for of in (full(row), full(row, "resume-ner"))]
    followed, others = edits(row)
    lines.append(f"{row:20} {scores[0]:>12} {followed:>15} {others:>15} {scores[1]:>12}")
Folded("Reveal: F1, mean ± standard deviation of three seeds", "\n".join(lines))

# %% tags=["test"]
f1 = {row: (mean(full(row)), mean(full(row, "resume-ner"))) for row in CLINICAL}
assert f1["everything visible"][0] < f1["the graph left off"][0] < f1["both"][0] < f1["K-BERT"][0]
assert f1["K-BERT"][1] - f1["hard positions"][1] > 2
assert abs(f1["K-BERT"][1] - f1["the graph left off"][1]) < 1

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# Each part has its own job, and the data decide which one counts:
#
# - **Few branches that tell** (clinical): the matrix counts. Without it hardly an edit is followed, and with soft positions the model
#   is no better than BERT: two words then stand in one place, and nothing says which is the sentence's.
# - **Many branches that say little** (résumés): soft positions count. With hard positions each branch pushes the
#   sentence on, and F1 falls below BERT's; soft positions bring it back. The graph gives nothing here.
# - **Constant tail**: a branch that says nothing still marks where a name begins and ends. On clinical records that is more than half
#   of the gain; what is left over is what the facts say.
# - **Hard positions cost no F1 on clinical records, and something else**: one in ten of the other entities changes when a triple is added, as every
#   word after the new branch moves on. With soft positions it is one in a hundred. If you edit graphs, use soft positions even where F1 is the same.
# </details>

# %% [markdown]
# And the paper's own numbers? Figure 5 is a drawing; the paper's tables give the gain in numbers, of BERT-base, which is
# over twenty times as large. On Medicine_NER 44 % of the test sentences stand in the training set, too. So compare the
# kind, not the size (`results/published.yaml`):

# %%
import yaml

published = yaml.safe_load(Path("results/published.yaml").read_text(encoding="utf-8"))
table = published["tables"][0]
for row in (table["columns"], *table["rows"][:2]):
    print("".join(f"{cell:19}" for cell in row).rstrip())

# %% [markdown]
# [docs/results.md](../docs/results.md) leads to all rows and intervals.
#
# ## Exercises
#
# **1.** (easy) Each question is answered by comparing K-BERT with *one* other row. Which?

# %% tags=["exercise"]
from checks.ablations import check_controls

compare_with = {
    "does the graph help at all?": ...,
    "must the triples say something?": ...,
    "is it good that other words can't see a branch?": ...,
    "is it good that the sentence's words are counted as if there were no branch?": ...,
}  # answers: "everything visible", "hard positions", "the graph left off", "constant tail"
check_controls(compare_with)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Look for the row that differs from K-BERT in just the thing that the question names.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# compare_with = {
#     "does the graph help at all?": "the graph left off",
#     "must the triples say something?": "constant tail",
#     "is it good that other words can't see a branch?": "everything visible",
#     "is it good that the sentence's words are counted as if there were no branch?": "hard positions",
# }
# check_controls(compare_with)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Seeds differ in their data, too, so one compares *within* a seed. Write a function that takes two rows
# (lists with a value for each seed) and gives the mean of the seeds' differences and their standard deviation. Then look:
# is K-BERT's lead over "everything visible", `full("K-BERT")` and `full("everything visible")`, larger than its spread?

# %% tags=["exercise"]
from checks.ablations import check_paired


def paired(one, other):
    return ...  # (mean, standard deviation)


check_paired(paired)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# First make the list of differences, one per seed. `statistics` has `mean` and `stdev`.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# from statistics import mean, stdev
#
#
# def paired(one, other):
#     differences = [a - b for a, b in zip(one, other)]
#     return mean(differences), stdev(differences)
#
#
# check_paired(paired)
# ```
#
# `paired(full("K-BERT"), full("everything visible"))` gives about 5.2 ± 1.2: more than four times its spread.
# </details>

# %% [markdown]
# **3.** (medium) You make new riddles, in which every name has *exactly two* triples, and train each row on them. Which share
# of unseen names can a model have right at most, about? (There are 24 kinds, and three names in a sentence.)

# %% tags=["exercise"]
from checks.ablations import check_ceilings

at_most = {
    "K-BERT": ...,
    "everything visible": ...,
    "constant tail": ...,
    "no place in the sentence": ...,
    "K-BERT, two layers": ...,
}
check_ceilings(at_most)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Ask of each row what the model still can't know. Between how many answers does it then have to choose?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# at_most = {
#     "K-BERT": 1,
#     "everything visible": 1 / 2,
#     "constant tail": 1 / 24,
#     "no place in the sentence": 1 / 3,
#     "K-BERT, two layers": 1 / 2,
# }
# check_ceilings(at_most)
# ```
#
# Try it: set `FEW = (2, 2)` in `_riddles.py`, restart the kernel, and train.
# </details>

# %% [markdown]
# **4.** (hard) Soft positions, everything visible. Which pairs of graphs are the *same bag* for such a model, so that
# its answer can't differ? Every token is a word here, and a tail begins after its relation.

# %% tags=["exercise"]
from checks.ablations import check_bags

same_bag = {
    "born_in Rome, lives_in Oslo  |  born_in Oslo, lives_in Rome": ...,
    "born_in Rome  |  born_in Oslo": ...,
    "born_in Rome, lives_in Oslo  |  lives_in Oslo, born_in Rome": ...,
    "born_in New York, lives_in Oslo  |  born_in Oslo, lives_in New York": ...,
    "was born in Rome, lives_in Oslo  |  was born in Oslo, lives_in Rome": ...,
}  # True or False
check_bags(same_bag)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Write each word with its position, counted from the mention: born_in 1, Rome 2. Then compare the two lists as bags.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# same_bag = {
#     "born_in Rome, lives_in Oslo  |  born_in Oslo, lives_in Rome": True,
#     "born_in Rome  |  born_in Oslo": False,
#     "born_in Rome, lives_in Oslo  |  lives_in Oslo, born_in Rome": True,
#     "born_in New York, lives_in Oslo  |  born_in Oslo, lives_in New York": True,
#     "was born in Rome, lives_in Oslo  |  was born in Oslo, lives_in Rome": False,
# }
# check_bags(same_bag)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - Soft positions need the visible matrix: without it, branches of one mention are a bag, and no training mends that.
# - With hard positions a model learns the rows that it meets, and fails on longer ones. Soft positions keep the places.
# - At full size the matrix counts where few branches tell, soft positions where many say little. Hard positions also make
#   edits spread.
# - A control takes away one thing and leaves others. Ask what it leaves.
# - An ablation is an answer about *one* setting, and one seed is an anecdote.
#
#
# **Open question.** A third data set has *many* branches that *tell*. Which part would you expect to count there, and which
# row of the 2 × 2 would show that you are wrong?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), Figure 5; [results](../docs/results.md), *What does each part of K-BERT do?*

# %%
from _tools import lab_link

lab_link(
    "Tim Cook is visiting Beijing now",
    graph=figure2,
    model="words",
    ablation=Ablation(visible="all"),
)

# %% [markdown]
# In the Lab, positions and visibility can be switched below the text. Next: [8 · Knowledge noise](08_knowledge_noise.ipynb).
