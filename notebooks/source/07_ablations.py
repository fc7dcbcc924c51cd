# %% [markdown]
# # 7b · Ablations
#
# **Question.** Why do soft positions need the visible matrix, and what does a model learn without one of them?
#
# **You need** notebooks [2](02_soft_positions.ipynb), [3](03_visible_matrix.ipynb), [6](06_fine_tuning.ipynb) and
# [7a](07_ablation_bench.ipynb): soft positions, the visible matrix, the riddles, and the bench. **You get** a proof that
# needs no training, a training that agrees with it, a control that misleads, and the paper's Figure 5 at full size.

# %%
from _tools import ready

ready(
    "models/medical-ner-kbert",
    "demo_kgs/figure2.spo",
    "demo_kgs/general_en.spo",
    "demo_kgs/medical_en.spo",
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
from transformers import BertConfig, BertForTokenClassification

from kbert_core import ReadConfig
from kbert_core.checkpoints.checkpoint import Card


def random_bert(seed):
    """A BERT that was never trained, with the vocabulary of the trained one."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=kbert.encoder.config.vocab_size,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.3,
        id2label=kbert.labels,
        label2id={label: number for number, label in kbert.labels.items()},
    )
    Card("ner", ReadConfig()).write_to(config)
    return Pipeline(BertForTokenClassification(config).eval(), kbert.hugging_face_tokenizer)


for seed in (1, 2, 3):
    untrained = random_bert(seed)
    cells = [f"{name} {apart(untrained, text, true, false, way):.4f}" for name, way in WAYS.items()]
    print(f"random weights {seed}:", "   ".join(cells))

# %% [markdown]
# So no training can teach such a model to bind a tail to its relation, if branches of one mention have equally long
# relations and tails. **Soft positions give up the order of the branches, and the visible matrix gives back which tokens
# belong together.** Take away the matrix alone, and you have taken away both. This is why in [7a](07_ablation_bench.ipynb)
# *both* scores better than *everything visible*.
#
# ## A task that needs both parts
#
# Now we *train* models with a part taken away. This can only show something if the task needs the part. Here is a riddle
# that needs the order of the sentence, the branches, and which branch belongs to what:

# %%
from _order_riddles import FEW, KINDS, MANY, ROWS, order_riddles, train_row

made = order_riddles(seed=1)
riddle = made.riddles.unseen[0]
print(riddle.sentences[0], "→", riddle.label)
for name in riddle.sentences[0].split()[-3:]:
    print("  ", *made.riddles.graph.triples_of(name))

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
for examples, (least, most) in ((made.riddles.unseen, FEW), (made.more, MANY)):
    ceiling = made.ceiling(examples)
    print(f"names with {least} to {most} triples: {ceiling:.2f} if tails are a bag")

# %% [markdown]
# Let us train K-BERT, a model of three layers and 100,000 weights, on 2,000 riddles. This takes about a quarter of a
# minute. (Later, put another row of `ROWS` in its place.)

# %% tags=["about"]
row = "K-BERT"
trained = train_row(row, seed=1)
print(f"{row}: {trained.trial.last.step} steps")
print(f"unseen names right:   {trained.trial.last.unseen:.2f}")
print(f"… with more triples:  {trained.more:.2f}")

# %% tags=["test"]
assert trained.trial.last.unseen > 0.9 < trained.more

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
from statistics import mean

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
ceilings = [made.ceiling(made.riddles.unseen), made.ceiling(made.more)]
assert min(right("K-BERT", "unseen") + right("K-BERT", "more triples")) > 0.97
for row in ("everything visible", "K-BERT, two layers"):
    assert max(right(row, "unseen")) < ceilings[0] + 0.05
    assert max(right(row, "more triples")) < ceilings[1] + 0.1
for row in ("hard positions", "both"):
    assert min(right(row, "unseen")) > 0.9 > 0.85 > max(right(row, "more triples"))
assert max(right("no place in the sentence", "unseen")) < 0.45
assert max(right("no graph (BERT)", "unseen") + right("constant tail", "unseen")) < 0.1

# %% [markdown]
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
#
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
# ## At full size
#
# A BERT of 4.3 million weights, pretrained on Chinese text; some 3,500 clinical sentences to learn from, in which
# entities are to be found; the names that the graph knows are divided so that those of the test set were never seen
# with a label. Each row was trained its own way with three seeds. This takes hours, so we read what came out (`kbert
# experiment results/suites/medical-ner-disjoint.yaml`). **Recall** is the share of the right entities that were found;
# **F1** is the harmonic mean of recall and *precision*, the share of the found ones that are right.

# %%
from statistics import stdev

from kbert_lab.suites.results import Records

FULL = Records(Path("results/medical-ner-disjoint.jsonl.xz")).all()
ROWS = {
    "K-BERT": "K-BERT + recipe, MedicalKG",
    "hard positions": "K-BERT + recipe, hard positions",
    "everything visible": "K-BERT + recipe, everything visible",
    "shuffled graph": "K-BERT + recipe, shuffled MedicalKG",
    "no knowledge (BERT)": "BERT",
}


def saved(row):
    """What came out, one per seed."""
    return [FULL[ROWS[row], seed] for seed in (1, 2, 3)]


def full(row, what):
    """F1, or the recall of unseen names, per cent; one per seed."""
    tests = [made["scores"]["test"] for made in saved(row)]
    return [100 * (test["f1"] if what == "F1" else test["unseen"]["recall"]) for test in tests]


one = saved("K-BERT")[0]
print(f"{one['parameters']:,} weights; {one['examples']['train']:,} sentences with seed 1")


print(f"{'':20} {'F1':>12} {'recall of unseen names':>28}")
for row in ROWS:
    cells = [
        f"{mean(full(row, what)):.1f} ± {stdev(full(row, what)):.1f}" for what in ("F1", "recall")
    ]
    print(f"{row:20} {cells[0]:>12} {cells[1]:>28}")

# %%
from _charts import bar_chart

chart = bar_chart(
    {row: {"F1, %": full(row, "F1")} for row in ROWS},
    across="clinical entities, F1 on test, %",
    most=90,
)
show(chart, "Clinical entities: the same rows at full size")

# %%
f1 = {row: mean(full(row, "F1")) for row in ROWS}
print(f"K-BERT − BERT {f1['K-BERT'] - f1['no knowledge (BERT)']:+.1f}")
for row in ("everything visible", "hard positions", "shuffled graph"):
    print(f"K-BERT − {row} {f1['K-BERT'] - f1[row]:+.1f}")

# %% tags=["test"]
assert f1["K-BERT"] - f1["everything visible"] > 4
assert abs(f1["K-BERT"] - f1["hard positions"]) < 1

# %% [markdown]
# What do the rows say?
#
# - **The visible matrix matters**: without it about five sixths of the gain are gone. This encoder was pretrained on
#   plain sentences, and a tag is wanted for each word, not for the text as a whole; with everything visible, each word
#   is read among the words of all branches. Here the paper's reason, knowledge noise, shows ([notebook
#   8](08_knowledge_noise.ipynb) measures it).
# - **Hard positions cost no F1** that three seeds could show. Branches are short here, and the matrix keeps the rest
#   apart. (They cost something else, see below.)
# - **The shuffled graph gives part of the gain**: two fifths. A branch, right or wrong, marks where a name begins and
#   ends. What is left over is what the truth of the graph is worth.
#
# What do soft positions do, then, if not raise F1? They keep the rest of the sentence still. To names that the graph
# lacks the experiment added the missing triple, and looked at the *other* entities of the sentence, of which the triple
# says nothing: how many were gone afterwards, or of another type?

# %%
for row in ("K-BERT", "hard positions", "everything visible"):
    added = [made["edit_response"]["test"]["added"]["unseen"] for made in saved(row)]
    each = [100 * of["others_changed"] for of in added]
    print(f"{row:20} {mean(each):4.1f} % ± {stdev(each):.1f}")

# %% [markdown]
# One in a hundred, and one in ten with hard positions: every word after the new branch moves on. If you edit graphs, use
# soft positions even though F1 is the same.
#
# ## The paper's own training, on two data sets
#
# These rows were trained with our recipe, which hides some branches. Trained as in the paper, each combination of
# positions and matrix is one row of a 2 × 2. On the left are the clinical entities, with the share of rewritten facts
# that the model follows. On the right are entities in résumés, with HowNet: there three of four sentences hold a word of the graph, and what
# it says of the word has little to do with the label.

# %%
RESUMES = Records(Path("results/resume-ner.jsonl.xz")).all()
CLINICAL = {
    "soft, matrix (K-BERT)": "K-BERT (paper), MedicalKG",
    "hard, matrix": "K-BERT (paper), hard positions",
    "soft, everything visible": "K-BERT (paper), everything visible",
    "hard, everything visible": "K-BERT (paper), hard positions and everything visible",
    "no knowledge (BERT)": "BERT",
}


def of_seeds(runs, row):
    """F1 in per cent of the first three seeds, and what came out of each."""
    made = [runs[row, seed] for seed in (1, 2, 3)]
    return mean(100 * of["scores"]["test"]["f1"] for of in made), made


two_by_two = {}
print(f"{'':26} {'clinical':>8} {'edits followed':>16} {'résumés':>10}")
for name, row in CLINICAL.items():
    clinical, made = of_seeds(FULL, row)
    resumes, _ = of_seeds(RESUMES, row.replace("MedicalKG", "HowNet"))
    two_by_two[name] = clinical, resumes
    followed = "–"
    if row != "BERT":  # without a graph there is nothing to edit
        edits = [of["edit_response"]["test"]["unseen"]["new"] for of in made]
        followed = f"{100 * mean(edits):.0f} %"
    print(f"{name:26} {clinical:8.1f} {followed:>16} {resumes:10.1f}")

# %% tags=["test"]
(kbert, kbert_r), (_, hard_r), (visible, _), (both, _), (bert, bert_r) = two_by_two.values()
assert visible < bert < both < kbert and kbert_r - hard_r > 2 and abs(kbert_r - bert_r) < 1

# %% [markdown]
# Each part has its own job, and the data decide which one counts:
#
# - **Few branches that tell** (clinical): the matrix counts. Without it hardly an edit is followed, and soft positions *without* the
#   matrix are below plain BERT: two words then stand in one place, and nothing says which is the sentence's.
# - **Many branches that say little** (résumés): soft positions count. With hard positions each branch pushes the
#   sentence on, and F1 falls below BERT's; soft positions bring it back. The graph gives nothing here.
#
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
    "must the graph be true?": ...,
    "is it good that other words can't see a branch?": ...,
    "is it good that the sentence's words are counted as if there were no branch?": ...,
}  # answers: "everything visible", "hard positions", "no knowledge (BERT)", "shuffled graph"
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
#     "does the graph help at all?": "no knowledge (BERT)",
#     "must the graph be true?": "shuffled graph",
#     "is it good that other words can't see a branch?": "everything visible",
#     "is it good that the sentence's words are counted as if there were no branch?": "hard positions",
# }
# check_controls(compare_with)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Seeds differ in their data, too, so one compares *within* a seed. Write a function that takes two rows
# (lists with a value for each seed) and gives the mean of the seeds' differences and their standard deviation. Then look:
# is K-BERT's lead over "everything visible", `full("K-BERT", "F1")` and `full("everything visible", "F1")`, larger than
# its spread?

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
# `paired(full("K-BERT", "F1"), full("everything visible", "F1"))` is about 6.3 ± 0.3: twenty times its spread.
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
# Try it: set `FEW = (2, 2)` in `_order_riddles.py`, restart the kernel, and train.
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
