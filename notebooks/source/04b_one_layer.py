# %% [markdown]
# # 4b · One K-BERT layer by hand
#
# **Question.** What happens to a token between the vocabulary and the end of the first layer, and what do *segments* do to a pair of sentences?
#
# **You need** [4 · Mask-self-attention](04_mask_self_attention.ipynb).
# **You get** one whole layer in NumPy with the weights of a trained model: embedding sum, layer norm, attention, residual, feed-forward. It
# equals `transformers` and this library to 0.00001. Run four times, with a classifier after it, it is the whole model.
#
# **After this notebook you can** write a Transformer layer down, name the one step in which tokens meet, and say what a segment is.

# %%
from _tools import ready

ready("models/matching-zh", "models/zh-mini")

# %% [markdown]
# ## Two questions and a graph
#
# `models/matching-zh` reads two questions and says whether they ask the same. Its questions here are 怎么找服务员 (*how do I find a waiter?*)
# and 怎么找快递员 (*how do I find a courier?*). The graph knows a triple of each name: 服务员 is a person (人), and so is 快递员. This model
# was trained with *tails only*, so a branch is the tail without its relation.

# %%
from kbert_core import Pipeline, load_graph

kbert = Pipeline.from_pretrained("models/matching-zh", device="cpu")
graph = load_graph("demo_kgs/everyday_zh.spo")
pair = ("怎么找服务员", "怎么找快递员")
trace = kbert(*pair, graph=graph, hidden_states=True)
(flat,) = trace.rows
flat

# %% [markdown]
# ## The embedding sum
#
# A layer takes vectors. The vector of a token is the sum of three rows of three tables (Figure 2 of BERT's paper; K-BERT's *embedding layer*):
#
# - the **token** table: one row per entry of the vocabulary;
# - the **position** table: one row per position. K-BERT looks up the *soft* position;
# - the **segment** table: two rows, A for the first sentence and B for the second.
#
# Here is what is looked up. A branch has the segment of its mention; the first `[SEP]` belongs to A, the last to B. Soft positions
# don't begin again in B.

# %%
import pandas as pd

pd.DataFrame(
    {
        "token": flat.tokens,
        "soft position": flat.soft_positions,
        "segment": ["AB"[segment] for segment in flat.token_type_ids],
        "branch": flat.branch_ids,
    }
).T

# %%
import numpy as np

bert = kbert.reader.model.base_model  # a BertModel of transformers
weights = {name: value.numpy() for name, value in bert.state_dict().items()}
ids, positions, segments = (
    np.array(codes) for codes in (flat.input_ids, flat.soft_positions, flat.token_type_ids)
)

parts = {
    kind: weights[f"embeddings.{kind}_embeddings.weight"][rows]
    for kind, rows in (("word", ids), ("position", positions), ("token_type", segments))
}
embedding_sum = sum(parts.values())  # (N, H)
print("N, H:", embedding_sum.shape)
for kind, part in parts.items():
    print(f"{kind:10} mean length of a vector {np.linalg.norm(part, axis=1).mean():.2f}")

# %% [markdown]
# The three are added, not laid side by side. So the layers can't read a segment off a place of the vector: they learn to
# recognise a direction. Nothing else in the model knows where B begins.
#
# ## Layer norm
#
# Before the first layer, and twice in each, every vector is brought to the same scale: **layer norm** subtracts the mean of the vector's own
# $H$ numbers, divides by their standard deviation, and multiplies and adds two learnt vectors, *gain* and *bias*. Each token is treated alone.

# %%


def layer_norm(x, place):
    """x (N, H) → (N, H); the mean and the variance are those of each row."""
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    scaled = (x - mean) / np.sqrt(variance + bert.config.layer_norm_eps)
    return scaled * weights[f"{place}.weight"] + weights[f"{place}.bias"]


def linear(x, place):
    """x W + b; the checkpoint keeps W transposed."""
    return x @ weights[f"{place}.weight"].T + weights[f"{place}.bias"]


h0 = layer_norm(embedding_sum, "embeddings.LayerNorm")
difference = np.abs(h0 - trace.hidden_states[0][0].numpy()).max()
print("as the model's own embeddings, to 0.00001:", difference < 1e-5)

# %% tags=["test"]
assert difference < 1e-5

# %% [markdown]
# ## Mask-self-attention, with four heads
#
# This is [notebook 4](04_mask_self_attention.ipynb) with learnt weights. $A = 4$ attention heads share the $H = 256$ numbers: each has $D = 64$ columns of
# $Q$, $K$ and $V$ to itself and makes attention weights of its own. Then the four results are laid side by side, and one more matrix mixes them.

# %%
A = bert.config.num_attention_heads
visible = trace.visible[0].numpy()  # (N, N)


def softmax(scores):
    power = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


def mask_self_attention(h, visible, layer):
    """h (N, H), visible (N, N) → (N, H)."""
    place = f"encoder.layer.{layer}.attention"
    N, H = h.shape
    Q, K, V = (
        linear(h, f"{place}.self.{name}").reshape(N, A, H // A).swapaxes(0, 1)  # (A, N, D)
        for name in ("query", "key", "value")
    )
    scores = Q @ K.swapaxes(1, 2) / np.sqrt(H // A)  # (A, N, N)
    S = softmax(np.where(visible, scores, -np.inf))  # Eq. 5
    heads = (S @ V).swapaxes(0, 1).reshape(N, H)  # Eq. 6, heads side by side
    return linear(heads, f"{place}.output.dense")


# %% [markdown]
# ## Residual and feed-forward
#
# The paper's Eq. 4 to 6 end here. A Transformer's layer doesn't:
#
# 1. **Residual.** What attention gives is *added* to what went in: $h + \text{attention}(h)$. A token keeps what it was.
# 2. **Layer norm.**
# 3. **Feed-forward.** Each token by itself goes through a matrix to 1,024 numbers, through the curve GELU, and back to 256.
# 4. Residual and layer norm once more.

# %%
from scipy.special import erf


def gelu(x):
    """x times the share of a normal distribution that lies below x."""
    return x * (1 + erf(x / np.sqrt(2))) / 2


def feed_forward(h, layer):
    place = f"encoder.layer.{layer}"
    return linear(gelu(linear(h, f"{place}.intermediate.dense")), f"{place}.output.dense")


def kbert_layer(h, visible, layer):
    """One layer of K-BERT: h (N, H), visible (N, N) → (N, H)."""
    place = f"encoder.layer.{layer}"
    h = layer_norm(
        h + mask_self_attention(h, visible, layer), f"{place}.attention.output.LayerNorm"
    )
    return layer_norm(h + feed_forward(h, layer), f"{place}.output.LayerNorm")


h1 = kbert_layer(h0, visible, layer=0)

# %% [markdown]
# The same with `transformers`: its layer is given our `h0` and the additive mask of notebook 4. And with this library: the mask-transformer kept the
# states after each layer in `trace.hidden_states`.

# %%
import torch

from kbert_core.layers import additive_mask

with torch.no_grad():
    given = torch.tensor(h0, dtype=torch.float32)[None]
    theirs = bert.encoder.layer[0](
        given, attention_mask=additive_mask(trace.visible, torch.float32)
    )
    theirs = (theirs[0] if isinstance(theirs, tuple) else theirs).reshape(h1.shape).numpy()

differences = {
    "transformers": np.abs(h1 - theirs).max(),
    "kbert_core": np.abs(h1 - trace.hidden_states[1][0].numpy()).max(),
}
for name, difference in differences.items():
    print(f"{name:12} as by hand, to 0.00001: {difference < 1e-5}")

# %% tags=["test"]
assert max(differences.values()) < 1e-5

# %% [markdown]
# ## Four layers and a classifier
#
# A K-BERT is this layer, repeated. After the last one the *pooler* takes the vector of `[CLS]` alone, and the classifier makes a score for each
# answer: 0, another question; 1, the same question.

# %%
head = {name: value.numpy() for name, value in kbert.reader.model.state_dict().items()}


def same(flat, *, positions, segments, visible):
    """The whole model in NumPy: the probability that both sentences ask the same."""
    h = weights["embeddings.word_embeddings.weight"][np.array(flat.input_ids)]
    h = h + weights["embeddings.position_embeddings.weight"][np.array(positions)]
    h = h + weights["embeddings.token_type_embeddings.weight"][np.array(segments)]
    h = layer_norm(h, "embeddings.LayerNorm")
    for layer in range(bert.config.num_hidden_layers):
        h = kbert_layer(h, visible, layer)
    pooled = np.tanh(linear(h[0], "pooler.dense"))
    logits = pooled @ head["classifier.weight"].T + head["classifier.bias"]
    return softmax(logits)[1]


codes = {"positions": positions, "segments": segments, "visible": visible}
by_hand = same(flat, **codes)
by_library = trace.logits.softmax(-1)[0, 1].item()
print(f"by hand {by_hand:.4f}   library {by_library:.4f}")

# %% tags=["test"]
assert abs(by_hand - by_library) < 1e-5

# %% [markdown]
# Thirty lines, and each ablation is one argument. K-BERT adds *no parameter* to BERT: it changes which rows of the position table are looked up,
# and which cells of attention are open.

# %%
everything = np.ones_like(visible)
straight = np.arange(len(flat))  # hard positions
ablations = {
    "K-BERT": codes,
    "hard positions": codes | {"positions": straight},
    "everything visible": codes | {"visible": everything},
    "both": codes | {"positions": straight, "visible": everything},
}
for name, changed in ablations.items():
    print(f"{name:20} the same question: {same(flat, **changed):.3f}")

# %% tags=["test"]
from kbert_core import Ablation

hard = kbert(*pair, graph=graph, ablation=Ablation(positions="hard", visible="all"))
assert abs(same(flat, **ablations["both"]) - hard.logits.softmax(-1)[0, 1].item()) < 1e-5

# %% [markdown]
# ## What a segment does to a pair
#
# Take the segments away (every token gets A), exchange them, or exchange the sentences. Nobody touches a word. Guess first: which of these changes the answer?
#
# (Four pairs show what *can* happen, and no rate. The first one was picked among about two thousand, as the model is undecided on
# it; and this model is right in 61 to 66 of 100 pairs only.)

# %%
from _tools import Folded, show

pairs = {
    ("怎么找服务员", "怎么找快递员"): "find a waiter / find a courier",
    ("苹果是水果吗", "苹果是什么"): "is an apple a fruit / what is an apple",
    ("猫吃鱼吗", "鱼吃猫吗"): "do cats eat fish / do fish eat cats",
    ("怎样才能减肥", "怎样减肥"): "how can I lose weight / how to lose weight",
}


def read(*sentences):
    """A pair as the library lays it: the row, and what ``same`` takes."""
    trace = kbert(*sentences, graph=graph)
    (row,) = trace.rows
    positions, segments = np.array(row.soft_positions), np.array(row.token_type_ids)
    return row, {
        "positions": positions,
        "segments": segments,
        "visible": trace.visible[0].numpy(),
    }


rows = {}
for sentences, english in pairs.items():
    row, given = read(*sentences)
    turned, given_turned = read(*sentences[::-1])
    rows[english] = {
        "A and B": same(row, **given),
        "all A": same(row, **given | {"segments": 0 * given["segments"]}),
        "A and B exchanged": same(row, **given | {"segments": 1 - given["segments"]}),
        "sentences exchanged": same(turned, **given_turned),
    }
by_way = pd.DataFrame(rows).T
Folded("Reveal: the probability of “the same question”", by_way.round(2).to_string())

# %% tags=["test"]
moved = by_way.sub(by_way["A and B"], axis=0).abs().iloc[:, 1:]
assert (moved.iloc[0] >= 0.05).all() and (moved.iloc[1:] < 0.05).all(axis=None)

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# Three things to take home:
#
# - **Segments are used**: without them the undecided pair crosses the middle. On the three others the answer stays: a row without
#   segments still has its `[SEP]` between the questions. How often an answer turns, four pairs can't say. (RoBERTa was trained without segments, and does well.)
# - **Exchanging A and B, or the sentences, moves the answer too.** Whether two questions ask the same doesn't depend on which comes first. Nothing in the
#   architecture says so, and the training data teach it only by example.
# - **Knowledge obeys the same sum.** A branch gets its mention's segment, so 人 *(person)* says "I belong to B" as 快递员 does.
# </details>

# %% [markdown]
# What a segment does **not** do: it closes no cell. In the visible matrix both sentences are one trunk, and each token of A sees each token of B.

# %%
from _charts import visible_chart
from kbert_core import Ablation

says = "Both sentences are trunk; a branch sees its own mention"
show(visible_chart(flat, Ablation()), says, width=520)

# %% [markdown]
# ## Exercises
#
# **1.** (easy) The pair is 肺炎 (*pneumonia*) and 肺 (*lung*). 肺炎 has one branch of two characters, 疾病 (*disease*). The row is
# `[CLS] 肺 炎 疾 病 [SEP] 肺 [SEP]`. Write the soft positions and the segments (0 for A, 1 for B).

# %% tags=["exercise"]
from checks.layers import check_embedding

soft_positions = [...]
segment_ids = [...]
check_embedding(soft_positions, segment_ids)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Where does a position go on after a branch?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# soft_positions = [0, 1, 2, 3, 4, 3, 4, 5]
# segment_ids = [0, 0, 0, 0, 0, 0, 1, 1]
# check_embedding(soft_positions, segment_ids)
# ```
# </details>

# %% [markdown]
# **2.** (easy) Which steps let one token's vector depend on *another* token's? Answer True or False for each.

# %% tags=["exercise"]
from checks.layers import check_mixing

mixes = {
    "embedding sum": ...,
    "layer norm": ...,
    "mask-self-attention": ...,
    "residual": ...,
    "feed-forward": ...,
    "pooler": ...,
}
check_mixing(mixes)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Which of these read two rows of $h$ at once? Look for a product in which $N$ stands on both sides.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# mixes = {
#     "embedding sum": False,
#     "layer norm": False,
#     "mask-self-attention": True,
#     "residual": False,
#     "feed-forward": False,
#     "pooler": False,
# }
# check_mixing(mixes)
# ```
# </details>

# %% [markdown]
# **3.** (medium) Write the second half of each half-layer: add what went in, then normalise. `x` and `change` are (N, H), `gain` and `bias` are (H,).

# %% tags=["exercise"]
from checks.layers import check_add_and_norm


def add_and_norm(x, change, gain, bias):
    return ...


check_add_and_norm(add_and_norm)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# `axis=-1, keepdims=True`. Add `1e-12` to the variance before you take its root.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def add_and_norm(x, change, gain, bias):
#     h = x + change
#     mean, variance = h.mean(axis=-1, keepdims=True), h.var(axis=-1, keepdims=True)
#     return (h - mean) / np.sqrt(variance + 1e-12) * gain + bias
#
#
# check_add_and_norm(add_and_norm)
# ```
# </details>

# %% [markdown]
# **4.** (medium) How many numbers does one layer of this model learn? $H = 256$, the feed-forward goes to 1,024 and back. And how many of these does
# K-BERT add to BERT?

# %% tags=["exercise"]
from checks.layers import check_parameters

parameters_of_a_layer = ...
added_by_kbert = ...
check_parameters(parameters_of_a_layer, added_by_kbert)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Every `linear` has a matrix and a bias, every layer norm a gain and a bias. Count the linears first.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# H, F = 256, 1024
# attention = 4 * (H * H + H)  # query, key, value and the matrix that mixes the heads
# feed_forward_part = (H * F + F) + (F * H + H)
# norms = 2 * 2 * H
# parameters_of_a_layer = attention + feed_forward_part + norms
# added_by_kbert = 0
# check_parameters(parameters_of_a_layer, added_by_kbert)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - Embedding: token + soft position + segment, then layer norm.
# - Layer: mask-self-attention, residual, layer norm, feed-forward, residual, layer norm.
# - Attention is the only place where tokens meet. K-BERT works there (the mask) and in the embedding (the soft position), and adds no parameter.
# - Segments tell the sentences of a pair apart. They are learnt directions; the mask doesn't know them.
#
# **Open question.** The answer for a pair should not depend on its order. Name two ways to make a model symmetric, one in training and one when it
# predicts. What does each cost?
#
# ## Go on
#
# *To read:* [BERT](https://arxiv.org/abs/1810.04805), Figure 2 and section 3; [Layer normalization](https://arxiv.org/abs/1607.06450) (Ba et al. 2016).

# %%
from _tools import lab_link

lab_link(*pair, graph=graph, model="matching-zh", task="pair")

# %% [markdown]
# In the Lab, *Positions* and *Visible* are the two arguments that you changed. Next: [5 · From BERT to K-BERT](05_from_bert_to_kbert.ipynb), where the
# layers belong to a trained model.
