# %% [markdown]
# # 12 · Roof-BERT: knowledge beside the text
#
# **Question.** K-BERT's branches take tokens from the text. What if the triples get an encoder of their own, and a *roof* over both
# fuses them: what is computed, and what can an edit then reach?
#
# **You need** notebooks [4](04_mask_self_attention.ipynb) and [5](05_from_bert_to_kbert.ipynb): attention, hidden states.
# **You get** Roof-BERT (Liao and Ma) by hand on one sentence, equal to the library's; an edit that turns a label and moves
# every token; and the budget of tokens, which text and triples share in K-BERT and not here.
#
# **After this notebook you can** follow text and triples through both sides and the roof, and say what an edit can move.

# %%
from _tools import ready

ready("models/medical-ner-roof", "models/medical-ner-kbert")

# %% [markdown]
# ## A model, and a graph
#
# `models/medical-ner-roof` is the clinical twin of the K-BERT of the other notebooks: the same records, graph and small encoder. The
# triples are read by the text's own encoder (the paper takes a second one; one is enough for a small model), and the roof is one layer.

# %%
from kbert_core import Pipeline, load_graph

roof = Pipeline.from_pretrained("models/medical-ner-roof", device="cpu")
graph = load_graph("demo_kgs/medical_zh.spo")
text = "患者行胃镜检查未见异常"
trace = roof(text, graph=graph, hidden_states=True, attentions=True)
for span in trace.prediction.spans:
    print(span.text, span.label)

# %% [markdown]
# ## The two sides
#
# **Selection.** A triple is taken if its head stands in the text; this model was trained with the first two of each name. **Wording.** All triples of one entity become a sentence: the name once, then a
# pronoun (the paper's *Expand 2*). Units are closed by [SEP].

# %%
triples = [triple for triple in graph if triple.head == "胃镜"][:2]
first, *others = triples
said = f"{first.head}的{first.relation}是{first.tail}"
said += "".join(f"，它的{t.relation}是{t.tail}" for t in others)
by_hand = f"[CLS] {said} [SEP]"
print(by_hand)

# %% tags=["test"]
assert by_hand == trace.reading.kb.text

# %% [markdown]
# **Two encoders, apart.** The text is read without a word of knowledge, with token type 1; the string is read without the text, with type 0.

# %%
import torch

from kbert_core.roof.roof import under_roof

encoder = roof.reader.model.base_model
(row,) = trace.reading.rows
with torch.no_grad(), under_roof(None):  # the encoder alone, no roof over it
    H_text, H_kb = (
        encoder(
            input_ids=torch.tensor([list(ids)]),
            token_type_ids=torch.full((1, len(ids)), side),
        ).last_hidden_state
        for ids, side in ((row.input_ids, 1), (row.kb_ids, 0))
    )
print("text", tuple(H_text.shape), "  triples", tuple(H_kb.shape))
print("as the library:", torch.allclose(H_text, trace.text_states, atol=1e-5))

# %% tags=["test"]
assert torch.allclose(H_text, trace.text_states, atol=1e-5)
assert torch.allclose(H_kb, trace.kb_states, atol=1e-5)

# %% [markdown]
# ## The roof
#
# Both are laid end to end, and ordinary Transformer layers run over them: every token sees every token of both sides. There is no visible matrix.
# Only the first $M$ states, the text's own, go on to the task.

# %%
H = torch.cat([H_text, H_kb], 1)
with torch.no_grad():
    for layer in roof.reader.roof.layers:
        H = layer(H)
M = H_text.shape[1]
print("after the roof:", tuple(H[:, :M].shape))
print("as the library:", torch.allclose(H[:, :M], trace.hidden_states[-1], atol=1e-5))

# %% tags=["test"]
assert torch.allclose(H[:, :M], trace.hidden_states[-1], atol=1e-5)

# %% [markdown]
# Where does the roof look? Its attention has four blocks; each row of the two tables sums to 1.

# %%
attention = trace.roof_attentions[0][0].mean(0)  # of all heads
for name, rows in (("text", slice(0, M)), ("triples", slice(M, None))):
    share = attention[rows, M:].sum(1).mean()
    print(f"from {name:8} to text {1 - share:.2f}   to triples {share:.2f}")

# %% [markdown]
# ## An edit
#
# The text's side doesn't depend on the graph, so an edit runs the short side and the roof alone. What a token gets from the triples can
# change everywhere.

# %%
from kbert_core import Triple

wrong = graph.replace(Triple("胃镜", "类别", "检查"), Triple("胃镜", "类别", "疾病"))
after = roof(text, graph=wrong)
print([(s.text, s.label) for s in trace.prediction.spans], "→", end=" ")
print([(s.text, s.label) for s in after.prediction.spans])
moved = (after.logits_on_text() - trace.logits_on_text()).abs().amax(1)
for character, change in zip(text, moved.tolist()):
    print(character, f"{change:.3f}")

# %% tags=["test"]
assert torch.equal(after.text_states, trace.text_states)
assert (moved > 0).all()

# %% [markdown]
# Every token moved. In K-BERT the visible matrix keeps a branch to its mention, though states mix in the layers above. What holds in both:
# a triple whose head isn't in the text changes nothing, not even the last digit.

# %%
elsewhere = graph.replace(Triple("阿司匹林", "类别", "治疗"), Triple("阿司匹林", "类别", "疾病"))
print("equal:", torch.equal(roof(text, graph=elsewhere).logits, trace.logits))

# %% tags=["test"]
assert torch.equal(roof(text, graph=elsewhere).logits, trace.logits)

# %% [markdown]
# ## No triples is not BERT
#
# With an empty graph K-BERT *is* BERT. Here the roof reads the text once more, beside `[CLS] [SEP]`.

# %%
empty = roof(text, hidden_states=True)
print(empty.reading.kb.text)
difference = (empty.hidden_states[-1] - empty.text_states).abs().max()
print(f"the roof moves a state by up to {difference:.2f}")

# %% tags=["test"]
assert difference > 0.1

# %% [markdown]
# ## The budget
#
# An encoder reads a limited row; here we allow 64 tokens. K-BERT's branches stand in that row. The released code cuts the end of the text for
# them; this library keeps the text and leaves out the branches that don't fit. Either way something is lost. Roof-BERT's triples have a row of
# their own.

# %%
import pandas as pd

kbert = Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu")
long = "患者因腹痛行胃镜检查，既往糖尿病、高血压，服用阿司匹林，心电图未见异常，建议复查血常规。"
rows = []
for most in (0, 1, 2, 4, 8):
    read = {"triples per name": most}
    for name, pipeline in (("K-BERT", kbert), ("Roof-BERT", roof)):
        options = pipeline.config.options.__class__(max_triples=most)
        (reading,) = pipeline.readings(
            [(long,)], graph=graph, options=options, max_length=64, windows=False
        )
        read[f"{name}: text"] = len(reading.tokens[0])
        read[f"{name}: triples"] = len(reading.used)
    rows.append(read)
budget = pd.DataFrame(rows).set_index("triples per name")
budget

# %% tags=["test"]
assert budget["Roof-BERT: text"].nunique() == 1
assert budget["K-BERT: triples"].max() < budget["Roof-BERT: triples"].max()

# %% [markdown]
# The paper's claim is in the last column: it grows. What it costs: a second row to encode, a roof over both, and no locality.
#
# ## Exercises
#
# **1.** (easy) Word the triples (胃镜, 类别, 检查) and (胃镜, 部位, 胃) as *Expand 1* does: a sentence each, in the string that the encoder reads.

# %% tags=["exercise"]
from checks.systems import check_string

string = ...
check_string(string)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Head 的 relation 是 tail, then [SEP]; the name stands in both sentences.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# string = "[CLS] 胃镜的类别是检查 [SEP] 胃镜的部位是胃 [SEP]"
# check_string(string)
# ```
# </details>

# %% [markdown]
# **2.** (medium) What do these change: the logits alone, both the states of the *text's side* (below the roof) and the logits, or neither?

# %% tags=["exercise"]
from checks.systems import check_sides

changes = {  # "logits", "both" or "neither"
    "another tail for the first triple of 胃镜": ...,
    "another tail for a triple of 阿司匹林": ...,
    "another character in the text": ...,
    "the whole graph taken away": ...,
}
check_sides(changes)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# What does the encoder of the text read? And whose triples are taken for this text?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# changes = {
#     "another tail for the first triple of 胃镜": "logits",
#     "another tail for a triple of 阿司匹林": "neither",
#     "another character in the text": "both",
#     "the whole graph taken away": "logits",
# }
# check_sides(changes)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - Text and triples are encoded apart; the **roof** lays them end to end, and every token sees every token.
# - An edit leaves the text's side as it is, and may move every token above the roof.
# - Triples have a row of their own: they don't compete with the text for room.
#
# **Open question.** The roof has no visible matrix, so a token must learn which triples are its own. Could one be
# added, and what would be left of the idea?
#
# ## Go on
#
# *To read:* [Roof-BERT here](../docs/roof_bert.md), with the paper's reference.

# %%
from _tools import lab_link

lab_link(text, graph=graph, model="medical-ner-roof", task="ner")

# %% [markdown]
# [13](13_three_ways_to_inject_knowledge.ipynb) puts the three systems side by side. The commands are in
# [docs/roof_bert.md](../docs/roof_bert.md).
