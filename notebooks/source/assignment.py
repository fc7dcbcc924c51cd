# %% [markdown]
# # Inject, or leave it off?
#
# Three graphs, one task. A model reads *riddles* ([notebook 6](../06_fine_tuning.ipynb)): which kind is the name that the sentence asks for? The names of
# the test are new. `train.tsv` and `dev.tsv` are yours; the test set isn't. `A.tsv`, `B.tsv` and `C.tsv` are the graphs.
#
# For each graph say: **inject** it, or **leave it off**? Justify it by an audit and by three seeds. 20 points. Each cell below a task tells you whether the
# form of your answer is right; what it is worth is found out on the hidden test set.

# %%
from pathlib import Path

HERE = Path.cwd()  # data and graphs lie beside this notebook

from _tools import ready

ready()

from _riddles import Riddles, trial
from kbert_core import NO_KNOWLEDGE, load_graph
from kbert_lab.data.labelled import read_examples

train, dev = (read_examples(HERE / f"{name}.tsv", "classify") for name in ("train", "dev"))
graphs = {name: load_graph(HERE / f"{name}.tsv") for name in "ABC"}
kinds = tuple(sorted({example.label for example in train}))
print(len(train), "sentences to learn from,", len(dev), "to choose on; kinds:", *kinds)

# %% [markdown]
# **1. Audit** (4 points). Write `known(graph, sentences)`: the share of *sentences* in which the graph knows at least two names. (`k_query` of
# notebook 1 finds names.)

# %% nbgrader={"grade": false, "grade_id": "audit", "locked": false, "schema_version": 3, "solution": true, "task": false}
from kbert_core import k_query


def known(graph, sentences):
    ### BEGIN SOLUTION
    return sum(len(nodes) > 1 for nodes in k_query(list(sentences), graph)) / len(sentences)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "audit-test", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
sentences = [example.sentences[0] for example in dev]
for name, graph in graphs.items():
    print(name, f"{known(graph, sentences):.2f}")
    assert 0 <= known(graph, sentences) <= 1
assert known(NO_KNOWLEDGE, sentences) == 0
### BEGIN HIDDEN TESTS
for graph in graphs.values():
    for part in (sentences, sentences[:7]):
        right = sum(len(nodes) > 1 for nodes in k_query(part, graph)) / len(part)
        assert abs(known(graph, part) - right) < 1e-9
### END HIDDEN TESTS

# %% [markdown]
# **2. Three seeds** (3 points). Train a model with each graph and one without any (`trial`, as in notebook 6), with the seeds 1, 2 and 3. Put the shares
# of right answers **on dev** into `scores`: `"A"`, `"B"`, `"C"` and `"none"`, each with three numbers. Keep the models: you need one below.

# %% nbgrader={"grade": false, "grade_id": "seeds", "locked": false, "schema_version": 3, "solution": true, "task": false}
scores, models = {}, {}
### BEGIN SOLUTION
riddles = Riddles(kinds, tuple(train), tuple(train[:60]), tuple(dev), graphs["A"], {}, {})
for name, graph in (graphs | {"none": NO_KNOWLEDGE}).items():
    models[name] = [trial(riddles, graph, seed=seed) for seed in (1, 2, 3)]
    scores[name] = [made.last.unseen for made in models[name]]
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "seeds-test", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
for name in ("A", "B", "C", "none"):
    print(f"{name:5}", *(f"{score:.2f}" for score in scores[name]))
    assert len(scores[name]) == 3 and all(0 <= score <= 1 for score in scores[name])
### BEGIN HIDDEN TESTS
best = max("ABC", key=lambda name: sum(scores[name]))
assert best == next(name for name, what in DECISIONS.items() if what == "inject")
assert sum(scores[best]) > sum(scores["none"]) + 0.6
### END HIDDEN TESTS

# %% [markdown]
# **3. Decide** (6 points): `"inject"` or `"leave off"` for each graph.

# %% nbgrader={"grade": false, "grade_id": "decide", "locked": false, "schema_version": 3, "solution": true, "task": false}
decisions = {"A": ..., "B": ..., "C": ...}
### BEGIN SOLUTION
decisions = DECISIONS
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "decide-test", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
assert set(decisions) == set("ABC") and set(decisions.values()) <= {"inject", "leave off"}
### BEGIN HIDDEN TESTS
assert decisions == DECISIONS
### END HIDDEN TESTS

# %% [markdown]
# **4. Predict** (4 points). Write `predict(sentences)`: a kind for each sentence, by the model and the graph that you chose. On the hidden test set 60 of 100
# must be right.


# %% nbgrader={"grade": false, "grade_id": "predict", "locked": false, "schema_version": 3, "solution": true, "task": false}
def predict(sentences):
    ### BEGIN SOLUTION
    name = next(name for name, what in decisions.items() if what == "inject")
    model = max(models[name], key=lambda made: made.last.unseen).pipeline
    return [found.label for found in model.predict(list(sentences), graph=graphs[name])]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "predict-test", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
found = predict([example.sentences[0] for example in dev])
assert len(found) == len(dev) and set(found) <= set(kinds)
### BEGIN HIDDEN TESTS
hidden = HIDDEN  # (sentence, kind)
labels = predict([sentence for sentence, _ in hidden])
right = sum(label == gold for label, (_, gold) in zip(labels, hidden)) / len(hidden)
print(f"{right:.2f} right on the hidden test set")
assert right >= 0.6
### END HIDDEN TESTS

# %% [markdown]
# **5. Justify** (3 points). At most 150 words: what in the audit and in the seeds decided each graph, what would have misled you, and what your figures can't
# say.

# %% [markdown] nbgrader={"grade": true, "grade_id": "justify", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# *Your answer.*
