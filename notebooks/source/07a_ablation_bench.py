# %% [markdown]
# # 7a · The ablation bench
#
# **Question.** Which part of K-BERT does what? Change one part, keep the rest, and read a score.
#
# **You need** notebooks [2](02_soft_positions.ipynb), [3](03_visible_matrix.ipynb), [5](05_from_bert_to_kbert.ipynb) and
# [6b](06b_reading_results.ipynb): soft positions, the visible matrix, what a triple does to a trained model, and what an interval says.
# **You get** two trained models, one Chinese and one English, in which you can change everything that the paper
# changes. Each reading takes less than a second. Guess first, then look.
#
# **After this notebook you can** say what an ablation measures, tell a part that a model *relies on* from a part that it *needs to learn*,
# and name one data set for which each part matters.

# %%
from _tools import ready

ready(
    "models/medical-ner-kbert",
    "models/ner-en",
    "results/medical-ner-disjoint.jsonl.xz",
    "results/resume-ner.jsonl.xz",
    "results/ner-en.jsonl.xz",
)

# %% [markdown]
# ## Two models, two languages
#
# Both models find names in medical sentences. The Chinese one has 4 million weights and five kinds of names (symptom,
# disease, body part, examination, treatment). The English one has 23 million weights and two kinds (disease and
# chemical). Each has its sentences, its *medical graph*, and an *everyday graph* about things of daily life.

# %%
from _bench import interval, measure, measured, reveal, reveal_along, sides, turn

for name, side in sides().items():
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
# By hand, and then by the bench. `measure` reads all sentences of one language in one **setting**. Its defaults are how
# the models were trained. (It stands in `_bench.py`, about thirty lines.)

# %%
side = sides()["Chinese"]
right = found = labelled = 0
for example in side.examples:
    spans = side.model(example.sentences[0], graph=side.medical).prediction.spans
    named = {(s.start, s.end, s.label) for s in spans}
    right += len(named & set(example.spans))
    found += len(named)
    labelled += len(example.spans)
by_hand = 200 * right / (found + labelled)
print(f"by hand:   {right} right of {found} found, {labelled} labelled: F1 {by_hand:.1f}")
print(f"by the bench: F1 {measure('Chinese')['f1']:.1f}, English {measure('English')['f1']:.1f}")

# %% tags=["test"]
assert abs(measure("Chinese")["f1"] - by_hand) < 1e-9

# %% [markdown]
# ## Guess first
#
# Every ablation changes one setting. All of them are *inputs* of the model: its weights stay as they are. Write your
# guess of the **Chinese** F1 in place of the dots: K-BERT has the score above, and without the graph the model has 46.9.
# A wrong guess teaches more than no guess.

# %%
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
reveal(guesses, "the graph left off")

# %% [markdown]
# (Click on the line to open it. The number in brackets is the difference to K-BERT. What it means is folded, too.)

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# The English model knows most of its names without any graph: it was pretrained on much more text. So the graph has
# much to give to the Chinese model, and little to the English one. Keep that in mind for all that follows.
# </details>

# %% [markdown]
# ## 1. Soft or hard positions
#
# K-BERT counts the words of the sentence as if no branch stood between them (*soft*). *Hard* counts straight through
# the row. Move the control, then reveal.

# %%
turn(positions=["soft", "hard"])

# %%
reveal(guesses, "hard positions")

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# The score hardly moves. The branches here are short, so the words after a branch move by a few places, and both models
# can read that.
# </details>

# %% [markdown]
# ## 2. The tree, or everything visible
#
# The visible matrix lets only the mention see its branch. *All* opens every cell: each word of the sentence sees every
# branch, and branches see each other.

# %%
turn(visible=["tree", "all"])

# %%
reveal(guesses, "everything visible")

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# This is worse than no graph at all, although the graph is true. With *soft* positions a branch has the same position
# numbers as the words after its mention. When everything is visible, two words stand at one place, and nothing says
# which of them is the sentence.
# </details>

# %% [markdown]
# ## 3. Both
#
# What if the positions are hard *and* everything is visible? Then the row is a plain line of words, read by a plain
# BERT. Will two changes be worse than one?

# %%
turn(positions=["hard", "soft"], visible=["all", "tree"])

# %%
reveal(guesses, "hard positions", "everything visible", "both")

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# Both changes together are better than *everything visible* alone: with hard positions each word has a place of its own
# again. **Soft positions need the visible matrix.** The two are one design, and an ablation of the matrix alone also
# breaks the positions. ([7b](07b_ablations.ipynb) proves it.)
# </details>

# %% [markdown]
# ## 4. Tail only
#
# A branch says a relation and a tail: 胃镜 *类别 检查* (gastroscope *kind examination*). Does the model need the
# relation?

# %%
turn(tail_only=False)

# %%
reveal(guesses, "tail only")

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# The tail does most of the work, as it says the kind. Without the relation a branch looks unlike all branches of the
# training, and the English model, for which the graph had little to give, loses what it had gained.
# </details>

# %% [markdown]
# ## 5. Number of triples
#
# The first triple of a name is its kind, in both medical graphs. What do the others add?

# %%
turn(triples=(0, 10))

# %%
reveal_along("triples", (0, 1, 2, 3, 5, 10))

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# One triple does most. More of them change the English score little, and cost the Chinese model some points. (Both
# models were trained with two.)
# </details>

# %% [markdown]
# ## 6. Which graph
#
# The paper compares graphs: **HowNet** says what everyday words mean, **MedicalKG** names symptoms, drugs and diseases.
# Our two graphs of each language are small ones of these two sorts. `everyday_zh` even has HowNet's relation, 义原
# (*sememe*, a smallest unit of meaning).

# %%
turn(graph=["medical", "everyday", "none"])

# %%
reveal(guesses, "everyday graph", "the graph left off")

# %% [markdown]
# Look at **coverage** before you look at a score: how many names of the sentences does a graph know? Beside the medical
# sentences we count it on sentences of daily life.

# %%
import csv
from pathlib import Path

from kbert_core import grow_trees


def coverage(texts, graph):
    """Mentions that the graph knows, in how many of the texts."""
    nodes = [grow_trees([text], graph)[0].nodes for text in texts]
    return f"{sum(map(len, nodes)):3} names in {sum(map(bool, nodes)):2} of {len(texts)}"


print(f"{'':30} {'medical graph':>24} {'everyday graph':>24}")
for (name, side), code in zip(sides().items(), ("zh", "en")):
    file = Path(f"demo_kgs/example_data/homonyms_{code}.tsv").read_text(encoding="utf-8")
    daily = [row["text"] for row in csv.DictReader(file.splitlines(), delimiter="\t")]
    medical = [example.sentences[0] for example in side.examples]
    for what, texts in (("medical", medical), ("daily life", daily)):
        known = [coverage(texts, graph) for graph in (side.medical, side.everyday)]
        print(f"{name}, {what:21} {known[0]:>24} {known[1]:>24}")

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# The everyday graph is true, and does nothing: it doesn't know these names. No graph is good in itself. A graph is good
# *for texts whose names it knows*.
# </details>

# %% [markdown]
# ## 7. False triples: shuffled and constant tails
#
# Two **controls** ask whether the graph helps because it is *true*. In a *shuffled* graph every name has the tails of
# another name; relations stay. With a *constant* tail every triple of the graph says the same, so a branch is no more
# than a mark: "here is a name".

# %%
turn(tails=["true", "shuffled", "constant"])

# %%
reveal(guesses, "shuffled tails", "constant tail", "the graph left off")

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# Both are far worse than no graph. The model *believes its graph*: it was trained so that an edit of the graph changes
# the answer, and it can't see that this graph is wrong.
# </details>

# %% [markdown]
# ## 8. Noise
#
# Here every name keeps its true triples, and gets some that are said of other names, at random places among them. Each
# point is the mean of three draws, the band their range.

# %%
turn(noise=(0, 8))

# %%
reveal_along("noise", (0, 1, 2, 4, 8), seeds=(1, 2, 3))

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# Noise hurts step by step. Two false triples per name undo all that the graph gave to the English model, eight undo it
# for the Chinese one. [Notebook 8](08_knowledge_noise.ipynb) shows who is protected and who isn't.
# </details>

# %% [markdown]
# ## How much can 28 sentences say?
#
# One name more or less moves F1 by more than two points. The bootstrap of [6b](06b_reading_results.ipynb) asks: what if
# we had met other sentences? Here are the differences to K-BERT that the middle 95 of 100 draws give.

# %%
for row in ("the graph left off", "hard positions", "everything visible"):
    low, high = interval(row)
    print(f"{row:20} − K-BERT: from {low:+.0f} to {high:+.0f} points of F1")

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# A difference whose interval lies on one side of 0 would show on other sentences of this sort, too. That of hard
# positions has 0 inside.
# </details>

# %% [markdown]
# ## Trained so, not only read so
#
# So far one trained model was *read* in other ways. The paper does another thing: it *trains* a model in each way. So
# did we; that takes hours, so we read what came out. The Chinese models were trained as in the paper on some 3,500
# clinical sentences, and tested on names that training never showed (`kbert experiment
# results/suites/medical-ner-disjoint.yaml`). Three seeds; the number is their mean. Guess again: will the two columns
# agree?

# %%
from _bench import CLINICAL, ENGLISH, RESUMES, reveal_trained, trained

reveal_trained("read and trained, clinical", "medical-ner-disjoint", CLINICAL, "Chinese")

# %% [markdown]
# (The model of the first column was trained with a recipe that hides some branches, so that it follows edits. The rows
# of the second column were trained without it.)
#
# The second data set has **résumés** and HowNet. There three of four sentences hold a word of the graph, and what the
# graph says of the word has little to do with the label. Which part matters now?

# %%
reveal_trained("the same 2 × 2 on résumés", "resume-ner", RESUMES)

# %% [markdown]
# And in English, on abstracts of articles with a larger graph: the true graph, a shuffled one, and none.

# %%
reveal_trained("read and trained, English", "ner-en", ENGLISH, "English")

# %% tags=["test"]
from statistics import mean

clinical = {row: mean(trained("medical-ner-disjoint", of)) for row, of in CLINICAL.items()}
resumes = {row: mean(trained("resume-ner", of)) for row, of in RESUMES.items()}
assert clinical["everything visible"] < clinical["the graph left off"] < clinical["both"]
assert clinical["both"] < clinical["K-BERT"] < clinical["hard positions"] + 1
assert resumes["hard positions"] < resumes["K-BERT"] - 2
assert abs(resumes["K-BERT"] - resumes["the graph left off"]) < 1
zh = {row: of["Chinese"]["f1"] for row, of in measured().items()}
assert zh["everything visible"] < zh["both"] < zh["K-BERT"]
assert zh["shuffled tails"] < zh["constant tail"] < zh["the graph left off"] < zh["tail only"]
assert abs(zh["hard positions"] - zh["K-BERT"]) < 3 < abs(zh["the graph left off"] - zh["K-BERT"])

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# The columns *read* and *trained* disagree, and both are right. They answer different questions.
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
# And the two data sets disagree. **Few branches that tell** (clinical): the matrix counts. Without it, and with soft
# positions, K-BERT is no better than BERT. **Many branches that say little** (résumés): soft positions count. With hard
# positions each branch pushes the sentence on, and F1 falls below BERT's.
#
# One more question belongs to every control: what does it leave? In the English graph the tail of a disease is its
# parent, another disease. Shuffled, it is still a disease, so the kind stays true.
# </details>

# %% [markdown]
# ## Exercises
#
# **1.** (easy) Fill the table: the **difference** to K-BERT in points of F1, one digit after the point. Use the
# controls above, or `measure`.

# %% tags=["exercise"]
from checks.ablations import check_table

table = {
    ("Chinese", "everything visible"): ...,
    ("Chinese", "tail only"): ...,
    ("Chinese", "shuffled tails"): ...,
    ("English", "everything visible"): ...,
    ("English", "tail only"): ...,
    ("English", "shuffled tails"): ...,
}
check_table(table, measured())

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# The numbers in brackets of each reveal are the differences. `measured()[row][language]["f1"]` has more digits.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# scores = measured()
# table = {
#     (language, row): round(scores[row][language]["f1"] - scores["K-BERT"][language]["f1"], 1)
#     for language in ("Chinese", "English")
#     for row in ("everything visible", "tail only", "shuffled tails")
# }
# check_table(table, scores)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Which kind of ablation supports each sentence: `"read"`, `"trained"`, or `"neither"`?

# %% tags=["exercise"]
from checks.ablations import check_claims

claims = {
    "This Chinese model, as it is, can't read a tree with everything visible.": ...,
    "A model trained with everything visible is no better than BERT.": ...,
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
#     "A model trained with everything visible is no better than BERT.": "trained",
#     "The visible matrix is worth about 40 points of F1.": "neither",
#     "This model believes what its graph says, true or false.": "read",
#     "In English, training with a false graph gave the same F1 as training with the true one.": "trained",
#     "Hard positions cost nothing, whatever the task.": "neither",
# }
# check_claims(claims)
# ```
#
# The rows behind them:
#
# - *Everything visible*: this model breaks when it is read so. A model that is trained so learns to live with it, and ends
#   about where BERT is. So "the visible matrix is worth 40 points" would be false.
# - *Shuffled tails*: this model believes a false graph and fails. A model that is *trained* with a false graph learns not
#   to believe it, and still sees where a name begins and ends. In English that is the whole gain.
# - *Hard positions*: no loss on clinical records in either column, a loss on résumés. And when a triple is added to the
#   graph, hard positions move every word after it, and other answers of the sentence change
#   ([7b](07b_ablations.ipynb) has the numbers). F1 doesn't see that.
# </details>

# %% [markdown]
# **3.** (medium) Find a setting in which the Chinese model scores *higher* than K-BERT as trained, with the true
# medical graph and without noise. Then ask yourself whether you would report it.

# %% tags=["exercise"]
from checks.ablations import check_setting

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
# - Few branches that tell: the matrix counts. Many branches that say little: soft positions count.
# - The kind of a name, one triple, does most of the work. A graph that doesn't know the names does nothing.
# - A model that follows its graph follows a false graph, too.
#
# **Open question.** In English the shuffled graph and the true one trained equally good models. Is a name's border all
# that helps, or its kind, which the shuffling left true? Which *one* further row would you train to tell these apart,
# and which result would speak for which?
#
# ## Go on
#
# *To read:* the ablations of the [K-BERT paper](https://arxiv.org/abs/1909.07606) (Figure 5);
# [results](../docs/results.md), the first table.

# %%
from _tools import lab_link
from kbert_core import Ablation

side = sides()["Chinese"]
lab_link(
    "行胃镜检查，见胃体黏膜充血。",
    graph=side.medical,
    model="medical-ner-kbert",
    task="ner",
    options=side.model.card.reading.options,
    ablation=Ablation(visible="all"),
)

# %% [markdown]
# In the Lab, positions and visibility can be switched below the text. Next: [7b · Ablations](07b_ablations.ipynb), the
# proof that soft positions need the matrix, and models trained in each way.
