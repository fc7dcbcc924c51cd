# %% [markdown]
# # 5 · From BERT to K-BERT
#
# **Question.** What does a trained BERT become when it is given soft positions and a visible matrix, and how does a triple get to
# where the answer is read?
#
# **You need** notebooks [1](01_sentence_tree.ipynb) to [4](04_mask_self_attention.ipynb): tree, soft positions, visible
# matrix, hidden states. **You get** three measurements on a real model: without knowledge it *is* BERT, bit for
# bit; a triple reaches `[CLS]` in the second layer and not in the first; and rewriting a triple rewrites the
# prediction.
#
# **After this notebook you can** say after how many layers a triple can reach a token, and show that K-BERT without a graph is BERT.

# %%
from _tools import ready

ready("models/medical-ner-kbert")

# %% [markdown]
# ## A model, and a task
#
# `models/medical-ner-kbert` is a Chinese BERT of four layers, trained to find **named entities** in clinical texts: it gives each
# character a tag, from which spans such as "胃镜, an examination" follow. K-BERT adds no parameter to BERT: the file holds the
# weights of a common BERT and can be loaded as one.

# %%
from kbert_core import NO_KNOWLEDGE, Pipeline, load_graph

kbert = Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu")
medical = load_graph("demo_kgs/medical_zh.spo")
text = "患者行胃镜检查未见异常"  # the patient had a gastroscopy, nothing unusual was seen

# %% [markdown]
# ## No knowledge: BERT, bit for bit
#
# Without triples the tree is the sentence, soft positions count straight through, and the visible matrix is true
# everywhere. Then K-BERT should compute what BERT computes. We load the same folder as a plain BERT, without
# any line of this project, and compare the *logits*, the numbers from which the tags are chosen.

# %%
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

plain = AutoModelForTokenClassification.from_pretrained(
    "models/medical-ner-kbert", dtype=torch.float32
)
tokenizer = AutoTokenizer.from_pretrained("models/medical-ner-kbert")
with torch.no_grad():
    by_bert = plain.eval()(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)

empty = kbert(text, graph=NO_KNOWLEDGE, hidden_states=True)  # NO_KNOWLEDGE: a graph without triples
print("shape of the logits, (texts, tokens, tags):", tuple(empty.logits.shape))
print("largest difference:", (empty.logits - by_bert.logits).abs().max().item())

# %% tags=["test"]
assert torch.equal(empty.logits, by_bert.logits)  # not about equal: equal
assert all(torch.equal(a, b) for a, b in zip(empty.hidden_states, by_bert.hidden_states))

# %% [markdown]
# ## With knowledge
#
# Now the graph. It knows 胃镜, and this model injects the first two triples of each mention.

# %%
trace = kbert(text, graph=medical, hidden_states=True, attentions=True)
row = trace.rows[0]
trace

# %% [markdown]
# And without knowledge:

# %%
empty.prediction

# %% [markdown]
# Without knowledge the model tags half of the name. With the triple that says what 胃镜 is, it gets all of it.
#
# ## Which way did it come?
#
# `[CLS]`, the first token, is where a classifier reads its answer. (This model reads a tag at every token; `[CLS]`
# stands here for all that aren't the mention.) The visible matrix hides all branches from it. So in the first layer it
# can't learn anything of a triple; only 胃镜 can. In the second layer `[CLS]` looks at 胃镜, whose state now holds some of
# the triple. The paper draws this way in its Figure 4: from *Apple* over *Cook* to `[CLS]`. In general: what token $i$
# can know after $L$ layers is where the product of $L$ visible matrices isn't 0. By hand:

# %%
sees = trace.visible[0].numpy()  # (N, N), true where row may look at column
known = torch.eye(len(row), dtype=torch.bool).numpy()  # before the first layer: each token itself
own = [i for i, branch in enumerate(row.branch_ids) if branch == 1]  # the branch 类别 检查
print(f"{'after layer':>11}   who can know of the branch {''.join(row.tokens[i] for i in own)}")
for layer in range(1, 4):
    known = known | (sees.astype(int) @ known.astype(int) > 0)
    who = [token for i, token in enumerate(row.tokens) if known[i, own].any()]
    print(f"{layer:11}   {' '.join(who)}")

# %% [markdown]
# After layer 1 only the mention and the branch itself; after layer 2 all that sees the mention: the whole trunk, and the
# mention's other branch. (A branch of *another* mention would come a layer later.) That is what *can* come; now what
# *does*. We take the triple away, everything else as it was, and measure by how much each token's state
# changes after each layer, as a share of its length.

# %%
from kbert_core import Triple

kind = Triple("胃镜", "类别", "检查")
without = kbert(
    text, graph=medical.switch_off(kind), options=kbert.card.reading.options, hidden_states=True
)
print([triple.relation for triple in without.used], "injected instead")

# %% [markdown]
# Careful: with the triple switched off, the mention's *next* triple has moved up. To leave everything else as it was, the
# branch must be cut from the tree itself. A `Case` of `kbert_core.explain` does that: it is a text as it was read, and
# gives variants of it. A `Fact` is what is cut, here one triple.

# %%
from kbert_core.explain.case import Case, Fact

case = Case.of(kbert, text, graph=medical)
cut = case.without([Fact(kind)]).rows[0]
print(cut.tokens)

# tokens have moved up, so look each of them up where it stood before: an identity says what a token is
place = {identity: i for i, identity in enumerate(row.identities)}
kept = [place[identity] for identity in cut.identities]

# %%
from kbert_core import collate

states = kbert.encoder(collate([cut]), hidden_states=True)["hidden_states"]
cls_changes = []
for layer in range(5):
    before, after = trace.hidden_states[layer][0, kept], states[layer][0]
    change = (before - after).norm(dim=-1) / before.norm(dim=-1)
    cls_changes.append(change[0].item())
    print(
        f"after layer {layer}: [CLS] changes by {change[0]:.3f}, 胃镜 by {change[4:6].mean():.3f}"
    )

# %% tags=["test"]
assert cls_changes[0] == 0 and cls_changes[1] < 1e-5  # nothing but rounding
assert cls_changes[2] > 1e-3

# %% [markdown]
# Layer 0 stands for the vectors of the tokens before any layer. In layer 1 `[CLS]` doesn't change, in layer 2 it does: **two
# layers, not one**, as the matrix says. The library's `influence` does both at once, for every token and triple
# (orange: the branch itself):

# %%
from kbert_lab.explain.influence import influence

followed = influence(case)
arrival = followed.arrivals(0)[0]  # at token 0, [CLS], of the first triple
print("can first arrive after layer", arrival.layer)
from _tools import show

show(followed.figure(0), "Blank until the triple can have come; then the measured change")

# %% tags=["test"]
assert arrival.layer == 2
assert all(abs(a - b) < 1e-4 for a, b in zip(arrival.measured, cls_changes))  # as by hand

# %% [markdown]
# ## The same where everything is visible
#
# Without the visible matrix no detour is needed: `[CLS]` sees the branch at once.

# %%
from kbert_core import Ablation

seen = influence(Case.of(kbert, text, graph=medical, ablation=Ablation(visible="all")))
at_once = seen.arrivals(0)[0]
print("everything visible: first arrives after layer", at_once.layer)
for layer, (hidden, open_) in enumerate(zip(arrival.measured, at_once.measured)):
    print(
        f"after layer {layer}: [CLS] changes by {hidden:.3f} with the visible matrix, {open_:.3f} without"
    )

# %% tags=["test"]
assert at_once.layer == 1

# %% [markdown]
# ## Cut the link, and it is BERT again
#
# Is the link from mention to branch really the only way? Block it, and nothing else, and read the text with all its triples. A
# *block* takes cells out of the visible matrix: here all between trunk and branches.

# %%
from kbert_core.kbert.interventions import Intervention, Tokens

blocked = kbert(
    text,
    graph=medical,
    interventions=[Intervention("block", Tokens("trunk"), Tokens("branches"))],
)
trunk = [i for i, branch in enumerate(blocked.rows[0].branch_ids) if branch == 0]
apart = (blocked.logits[0, trunk] - empty.logits[0]).abs().max().item()
print("largest difference from BERT on the trunk:", "none but rounding" if apart < 1e-4 else apart)

# %% tags=["test"]
assert apart < 1e-4

# %% [markdown]
# ## Rewrite a triple, rewrite the prediction
#
# This model was trained to follow its graph (the recipe is explained in [notebook 6](06_fine_tuning.ipynb)). So it
# follows a wrong triple, too. Choose what the graph says 胃镜 is:

# %%
from _tools import slider

KINDS = {
    "检查": "examination",
    "疾病": "disease",
    "症状": "symptom",
    "治疗": "treatment",
    "部位": "body part",
}


def predicted(tail):
    """The entities found if the graph says 胃镜 · 类别 · tail."""
    graph = medical if tail == kind.tail else medical.replace(kind, Triple("胃镜", "类别", tail))
    spans = kbert(text, graph=graph).prediction.spans
    return [(span.text, span.label, round(span.probability, 2)) for span in spans]


slider(predicted, tail=list(KINDS))

# %%
for tail, english in KINDS.items():
    print(f"胃镜 is a {tail} ({english}):", predicted(tail))

# %% tags=["test"]
assert [predicted(tail)[0][1] for tail in KINDS] == [
    "Examine",
    "Disease",
    "Symptom",
    "Cure",
    "BodyPart",
]

# %% [markdown]
# One sentence is an example, not a rule. On what share of sentences such an edit is followed stands on the model's card
# (`models/medical-ner-kbert/README.md`), and beside the example in the app.
#
# ## Exercises
#
# **1.** (easy) A text names 胃镜 and 肺 (*lung*), and both have branches. After how many layers can the branch of 胃镜 first have
# had an effect on: 镜, a character of the mention; 查, another character of the sentence; `[CLS]`; the branch of 肺?

# %% tags=["exercise"]
from checks.layers import check_layers

layers = {"镜": ..., "查": ..., "[CLS]": ..., "肺's branch": ...}
check_layers(layers)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Count steps: from a branch to its mention, from the mention to the trunk, from the trunk to another branch.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# layers = {"镜": 1, "查": 2, "[CLS]": 2, "肺's branch": 3}
# check_layers(layers)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Write a function that says what can be known after a number of layers: entry $(i, j)$ is true where token $i$ can know of
# token $j$. `visible` is a square array of booleans.

# %% tags=["exercise"]
from checks.layers import check_reach


def can_reach(visible, layers):
    return ...


check_reach(can_reach)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Begin with `np.eye`. After each layer a token knows what those know that it sees: a matrix product.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# import numpy as np
#
#
# def can_reach(visible, layers):
#     known = np.eye(len(visible), dtype=bool)
#     for _ in range(layers):
#         known = known | (visible.astype(int) @ known.astype(int) > 0)
#     return known
#
#
# check_reach(can_reach)
# ```
# </details>

# %% [markdown]
# **3.** (hard) Which of these readings give the trunk just what BERT gives it?

# %% tags=["exercise"]
from checks.layers import check_same_as_bert

same_as_bert = {
    "an empty graph": ...,
    "a graph that knows none of the names": ...,
    "a triple, read with hard positions": ...,
    "a triple whose branch the trunk may not see": ...,
    "a triple that says nothing new": ...,
}
check_same_as_bert(same_as_bert)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Two questions for each: does the visible matrix of the trunk change, and do positions of the trunk change?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# same_as_bert = {
#     "an empty graph": True,
#     "a graph that knows none of the names": True,
#     "a triple, read with hard positions": False,
#     "a triple whose branch the trunk may not see": True,
#     "a triple that says nothing new": False,
# }
# check_same_as_bert(same_as_bert)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - K-BERT adds no weights: without triples it computes what BERT computes, bit for bit.
# - A triple reaches its mention in layer 1 and `[CLS]` in layer 2. With everything visible it needs one layer.
# - Block the link between branches and trunk, and BERT is back. Rewrite a triple, and a model trained to follow it
#   follows.
#
# **Open question.** This model takes four layers, so a triple's effect has three left after the mention. Where in a
# deep encoder would you inject if you could choose, and how would you find out whether it helped?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), Figure 4 and Eq. 4–6.

# %%
from _tools import lab_link

lab_link(
    text, graph=medical, model="medical-ner-kbert", task="ner", options=kbert.card.reading.options
)

# %% [markdown]
# In the Lab, change the tail of the triple in the table and watch tree, matrix, attention and tags. Next:
# [6 · Fine-tuning](06_fine_tuning.ipynb).
