# %% [markdown]
# # 13 · Three ways to inject knowledge
#
# **Question.** One sentence, one graph, three systems of the field and a control: what does each take from the graph, where does it enter,
# what does it cost, and what can an edit or noise then reach?
#
# **You need** notebooks [5](05_from_bert_to_kbert.ipynb), [11](11_knowbert.ipynb) and [12](12_roof_bert.ipynb).
# **You get** K-BERT, KnowBert, Roof-BERT and triples as plain text side by side, measured on the same sentence, and where each of
# them is the wrong choice.
#
# **After this notebook you can** say for four systems where a triple enters, who sees it, and which of them is worth its cost for a task.

# %%
from _tools import ready

MODELS = ("medical-ner-kbert", "medical-ner-knowbert", "medical-ner-roof")
ready(*(f"models/{name}" for name in MODELS))

# %% [markdown]
# ## Four readers
#
# The three models began as the same small encoder and were trained on the same records, graph and recipe. *Plain text* is K-BERT's model,
# which here reads its triples after the sentence, with ordinary positions and everything visible: a control, and no model of its own.

# %%
from kbert_core import Pipeline, load_graph

kbert, knowbert, roof = (
    Pipeline.from_pretrained(f"models/{name}", device="cpu") for name in MODELS
)
systems = {
    "K-BERT": kbert,
    "KnowBert": knowbert,
    "Roof-BERT": roof,
    "plain text": kbert.read_as("plain-text"),
}
graph = load_graph("demo_kgs/medical_zh.spo")
text = "患者行胃镜检查未见异常"
traces = {name: pipeline(text, graph=graph) for name, pipeline in systems.items()}
for name, trace in traces.items():
    print(f"{name:11}", [(span.text, span.label) for span in trace.prediction.spans])

# %% [markdown]
# ## What each takes, and where it enters
#
# | | what a triple becomes | enters | who sees it |
# |---|---|---|---|
# | K-BERT | words in the row, a branch | at the embeddings | its mention alone (visible matrix) |
# | KnowBert | a part of an entity's vector | between two upper layers | every token, through the spans of the text |
# | Roof-BERT | words in a row of its own | above the top layer | every token |
# | plain text | words in the row, after the text | at the embeddings | every token |
#
# `lab` draws all four. Switch a triple off in each, and see what becomes of the prediction.

# %%
from IPython.display import display

from kbert_lab.lab.widget import lab

display(*(lab(pipeline, graph, text) for pipeline in systems.values()))

# %%
import pandas as pd

table = pd.DataFrame(
    {
        name: {
            "triples": len(trace.reading.used),
            "tokens of the text": len(trace.reading.tokens[0]),
            "tokens of the row": len(trace.reading.rows[0]),
            "tokens beside it": len(trace.reading.kb) if name == "Roof-BERT" else 0,
        }
        for name, trace in traces.items()
    }
).T
table

# %% tags=["test"]
assert (table["tokens of the text"] == len(text)).all()
assert table.loc["KnowBert", "tokens of the row"] == len(text) + 2  # [CLS], [SEP], no knowledge
assert table.loc["Roof-BERT", "tokens of the row"] == len(text) + 2
assert table.loc["K-BERT", "tokens of the row"] > len(text) + 2

# %% [markdown]
# And in time: processor time for one sentence, as a multiple of the encoder alone (K-BERT without a graph). It is the least of 20
# turns, in which all readers take turns, so that another program on this machine disturbs none more than another.

# %% tags=["varies"]
from time import process_time

from kbert_core import NO_KNOWLEDGE

readers = {"BERT": (kbert, NO_KNOWLEDGE)} | {name: (of, graph) for name, of in systems.items()}
seconds = {name: [] for name in readers}
for _ in range(20):
    for name, (pipeline, given) in readers.items():
        start = process_time()
        pipeline(text, graph=given)
        seconds[name].append(process_time() - start)
for name, measured in seconds.items():
    print(f"{name:11} {min(measured) / min(seconds['BERT']):.1f} times BERT")

# %% [markdown]
# ## What an edit changes
#
# We let the graph say that a gastroscopy is a disease. Which labels turn, and how far does each token's prediction move? The distance is the
# *total variation* of notebook 8: 0 for the same, 1 for nothing in common.

# %%
from kbert_core import Triple

wrong = graph.replace(Triple("胃镜", "类别", "检查"), Triple("胃镜", "类别", "疾病"))


def moved(before, after):
    """Total variation of every token."""
    p, q = (trace.logits_on_text().softmax(-1) for trace in (before, after))
    return ((p - q).abs().sum(-1) / 2).tolist()


edited = {name: pipeline(text, graph=wrong) for name, pipeline in systems.items()}
distances = pd.DataFrame(
    {name: moved(traces[name], edited[name]) for name in systems}, index=list(text)
).T.round(3)
for name, trace in edited.items():
    print(f"{name:11}", [(span.text, span.label) for span in trace.prediction.spans])
distances

# %% tags=["test"]
assert distances.loc["K-BERT", ["胃", "镜"]].min() > 0.5

# %% [markdown]
# Here the label turns in all three systems, and the control doesn't find the name any more. This sentence has one name.
# Over all edits of the test texts the systems differ: K-BERT follows 98 of 100, Roof-BERT 21 and KnowBert 5 (their
# cards in `models/`). K-BERT's matrix says whose a triple is. The tokens of the two others see the triples of every
# name, and have to learn which are theirs.
#
# What all of them share: a triple of a name that the text doesn't have changes nothing.

# %%
import torch

elsewhere = graph.replace(Triple("阿司匹林", "类别", "治疗"), Triple("阿司匹林", "类别", "疾病"))
same = {
    name: torch.equal(pipeline(text, graph=elsewhere).logits, traces[name].logits)
    for name, pipeline in systems.items()
}
print("equal:", same)

# %% tags=["test"]
assert all(same.values())

# %% [markdown]
# ## Noise
#
# Every name of the sentence gets triples of other names, mixed with its own. Each system may read them all.

# %%
from dataclasses import replace

from _charts import line_chart
from _tools import show
from kbert_lab.graphs.controls import with_noise

COUNTS, SEEDS = (0, 1, 2, 4, 8), (1, 2, 3)
longer = "行胃镜检查，见胃体黏膜充血，患者既往有糖尿病。"
every = {
    name: replace(pipeline.config, options=replace(pipeline.config.options, max_triples=100))
    for name, pipeline in systems.items()
}
curves = {}
for name, pipeline in systems.items():
    quiet = pipeline(longer, graph=graph, config=every[name])
    names = [mention.entity for mention in quiet.reading.mentions]
    curves[name] = [
        [
            sum(moved(quiet, pipeline(longer, graph=noisy, config=every[name]))) / len(longer)
            for noisy in (with_noise(graph, names, count, seed=seed) for seed in SEEDS)
        ]
        for count in COUNTS
    ]
show(
    line_chart(COUNTS, curves, across="triples of noise per name", up="mean distance of a token"),
    "How far the tokens of a sentence move as noise grows, in four systems",
)

# %% [markdown]
# A curve near 0 isn't better by itself: a model that hardly reads its graph isn't moved by noise either. Read it beside the edits above.
#
# ## No graph at all

# %%
for name, pipeline in systems.items():
    states = pipeline(text, hidden_states=True).hidden_states[-1][0, 1:-1]
    print(f"{name:11} state of the first token, first three numbers: {states[0, :3].tolist()}")
bare, plain = (systems[name](text).logits for name in ("K-BERT", "plain text"))

# %% tags=["test"]
assert torch.allclose(bare, plain, atol=1e-5)

# %% [markdown]
# K-BERT and plain text without a graph are the encoder, and agree. KnowBert's layer and Roof-BERT's roof run all the same: an empty graph is
# still another network than BERT.
#
# ## Which one?
#
# By mechanism:
#
# - The encoder must stay what it is without a graph, or facts must stay with their names: **K-BERT**.
# - Names mean several things, and each sense has a gloss: **KnowBert**. Word senses are its task.
# - Texts fill the row, and each has many triples: only **Roof-BERT** has room. Whether that helps is another question.
# - Always run **plain text** beside them: a gain that it reaches, too, comes from the triples and not from the
#   mechanism.
#
# By what we measured ([results](../docs/results.md)): for *entities* neither KnowBert nor Roof-BERT gained under any condition of
# [the map](../docs/results/map.md), and a dictionary through a gate was ahead of all three. So before you inject, count whether the graph knows new
# names ([6b](06b_reading_results.ipynb)), and try the gate first.
#
# ## Exercises
#
# **1.** (medium) A text of 500 tokens has 40 names with three triples of ten tokens each. The encoder reads 512 tokens. How many tokens of knowledge can each system
# read without losing text?

# %% tags=["exercise"]
from checks.systems import check_room

room = {
    "K-BERT": ...,
    "Roof-BERT": ...,
    "plain text": ...,
}  # special tokens: 2 a row; no [SEP] between
check_room(room)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Special tokens count too. Which systems put triples into the row of the text?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# room = {"K-BERT": 10, "Roof-BERT": 510, "plain text": 10}
# check_room(room)
# ```
# </details>

# %% [markdown]
# **2.** (medium) A graph's triple of 胃镜 is edited. Can the prediction of a token far from it change, in one layer of attention after the triple has entered?

# %% tags=["exercise"]
from checks.systems import check_reach

reach = {"K-BERT": ..., "KnowBert": ..., "Roof-BERT": ..., "plain text": ...}
check_reach(reach)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# After the triple has entered, which tokens hold some of it or may look at it? The table above says.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# reach = {"K-BERT": False, "KnowBert": True, "Roof-BERT": True, "plain text": True}
# check_reach(reach)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - K-BERT keeps a triple to its mention, KnowBert chooses entities by context, Roof-BERT gives triples a row of their
#   own.
# - A triple of a name that the text doesn't have changes nothing in any of them.
# - Without a graph only K-BERT is the encoder as it was. **Plain text** is the control for all three.
#
# **Open question.** Take a task of yours. Which system would you choose, which measurement above decided it, and
# which one is missing?
#
# ## Go on
#
# *To read:* [Systems](../docs/systems.md); [the map: when a graph helps](../docs/results/map.md).
#
# The same rows at full size, three seeds, are in [results](../docs/results.md).

# %%
from _tools import lab_link

lab_link(text, graph=graph, model="medical-ner-roof", task="ner")

# %% [markdown]
# Next: [14 · Your own encoder](14_your_own_encoder.ipynb): can any encoder read a graph?
