# %% [markdown]
# # 14 · Your own encoder
#
# **Question.** K-BERT adds no parameter to BERT. Can any encoder read a graph, and who notices if one can't?
#
# **You need** [4](04_mask_self_attention.ipynb) (a mask that is silently wrong) and [4b · One layer](04b_one_layer.ipynb).
# **You get** the *probe*, by hand: three tests that the library makes when it loads an encoder. You try BERT, RoBERTa and seven others, break one yourself, and
# put an adapter on one. Nothing is downloaded: the encoders here are tiny and random, as the tests need no training.
#
# **After this notebook you can** test whether an encoder keeps to a mask and to positions, and say what an adapter trains.

# %%
from _tools import ready

ready()

# %% [markdown]
# ## Load one of your own
#
# An encoder is a folder: `config.json`, weights and a tokenizer. We make one with the words of Figure 2, two layers of 32 numbers, and give its
# folder to the library. Everything below works the same with the twelve layers of 768 numbers that the paper used (102 million weights).

# %%
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel

from kbert_core import Pipeline, load_graph
from kbert_lab.training.vocabulary import SPECIALS, with_specials

keep = tempfile.TemporaryDirectory(prefix="kbert-")  # it is removed when the kernel stops
FOLDER = Path(keep.name)
figure2 = load_graph("demo_kgs/figure2.spo")
text = "Tim Cook is visiting Beijing now"
said = {word for t in figure2 for part in (t.head, t.relation, t.tail) for word in part.split()}
vocabulary = {word: n for n, word in enumerate([*SPECIALS, *sorted(said | set(text.split()))])}
SMALL = {
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
}
SMALL |= {"num_hidden_layers": 2, "num_attention_heads": 4}


def store(model, name):
    """Save an encoder with a tokenizer that knows the words of Figure 2."""
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    with_specials(backend, vocabulary, 64).save_pretrained(FOLDER / name)
    model.save_pretrained(FOLDER / name)
    return FOLDER / name


torch.manual_seed(0)
mine = store(BertModel(BertConfig(**SMALL)), "my-bert")
print(*sorted(file.name for file in mine.iterdir()), sep="\n")

# %%
pipeline = Pipeline.from_pretrained(mine, device="cpu")
trace = pipeline(text, graph=figure2, hidden_states=True)
(flat,) = trace.rows
print("tokens        ", *flat.tokens)
print("soft positions", *flat.soft_positions)
print("states        ", tuple(trace.hidden_states[-1].shape))

# %% [markdown]
# There is no head, so there is no prediction. But the graph is in: a random BERT reads a sentence tree as well as a
# trained one. `kbert train --encoder FOLDER` gives it a head and a task. (Nothing in the folder comes from this
# library; `save_pretrained` of `transformers` wrote it.)
#
# ## Three tests
#
# What does a *mask-transformer* need of an encoder?
#
# 1. **The mask holds.** A hidden token has no influence: exactly none, not a small one.
# 2. **Positions are heard.** Otherwise soft positions do nothing.
# 3. **Nothing else is different.** If everything is visible and positions count straight through, the encoder gives
#    what it gives without any of this. Otherwise an empty graph would not be BERT.
#
# By hand, on eight tokens. The first four and the last four don't see each other:

# %%
from kbert_core.layers import additive_mask

tokens = torch.arange(8)[None] + 8
half = torch.arange(8) < 4
apart = (half[:, None] == half)[None]  # (1, 8, 8)
everything = torch.ones_like(apart)
straight = torch.arange(8)[None]
changed = torch.cat([tokens[:, :4], tokens[:, 4:].flip(1)], dim=1)  # the last four turned round


def states(encoder, ids, visible, positions):
    mask = additive_mask(visible, torch.float32)
    with torch.no_grad():
        return encoder(ids, attention_mask=mask, position_ids=positions).last_hidden_state[0]


def moved(one, other):
    return (one - other).detach().abs().max().item()


def three_tests(encoder, offset=0):
    """How far states move: by a hidden change, by other positions, and against the plain call."""
    given = straight + offset
    with torch.no_grad():
        plain = encoder(tokens).last_hidden_state[0]
    as_it_is = states(encoder, tokens, everything, given)
    before, after = (states(encoder, ids, apart, given)[:4] for ids in (tokens, changed))
    return {
        "1 hidden change": moved(before, after),
        "2 other positions": moved(as_it_is, states(encoder, tokens, everything, given.flip(1))),
        "3 plain call": moved(as_it_is, plain),
    }


def report(name, tests):
    print(f"{name:22}", "   ".join(f"{test} {value:.6f}" for test, value in tests.items()))


bert = BertModel(BertConfig(**SMALL)).eval()
report("BERT", three_tests(bert))

# %% [markdown]
# Wanted: exactly 0; more than 0; and 0, but for rounding. BERT passes.
#
# ## RoBERTa begins at 2
#
# RoBERTa is BERT trained differently. Its layers are the same. We give it the positions that we gave to BERT:

# %%
from transformers import RobertaConfig, RobertaModel

roberta = RobertaModel(RobertaConfig(**SMALL | {"type_vocab_size": 1})).eval()
report("RoBERTa, positions 0…", three_tests(roberta))
report("RoBERTa, positions 2…", three_tests(roberta, offset=2))

# %% [markdown]
# Test 3 fails, and the reason is that RoBERTa's first token has position 2. Row 1 of its table is that of padding (its
# `pad_token_id` is 1), and row 0 is never used. With positions from 0 nothing fails; the model is only worse than it
# should be. The library's probe tries both beginnings and keeps the one that passes. So a table of 514 rows holds 512
# tokens. RoBERTa has no segments either: its segment table has one row, and only the `</s></s>` between two sentences
# tells them apart.
#
# (`hfl/chinese-roberta-wwm-ext` is a *BERT* in this sense, in spite of its name. It was trained as RoBERTa was, and
# has BERT's tables. Names don't tell; tests do.)

# %%
from kbert_core import probe

print("the library's probe:  BERT +", probe(bert), "  RoBERTa +", probe(roberta))
own = Pipeline.from_pretrained(store(roberta, "my-roberta"), device="cpu")
batch = own(text, graph=figure2).batch
print("soft positions", *batch.soft_positions[0].tolist())
print("given to it   ", *own.encoder.inputs(batch)["position_ids"][0].tolist())

# %% tags=["test"]
assert three_tests(bert)["1 hidden change"] == 0 and three_tests(bert)["3 plain call"] < 1e-5
assert three_tests(roberta)["3 plain call"] > 0.01 > three_tests(roberta, 2)["3 plain call"]
assert (probe(bert), probe(roberta), own.encoder.max_length) == (0, 2, 62)

# %% [markdown]
# ## Who is refused?
#
# Nine kinds of encoder, made small. The probe runs on each; a refusal names the test that failed. Guess before you
# open the line: which will pass?

# %%
import transformers
from transformers import AutoModel

from _tools import Folded
from kbert_core import KBertError

wide = {"embedding_size": 32}
specials = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
no_heads = {name: size for name, size in SMALL.items() if name != "num_attention_heads"}
configs = {
    "BERT": BertConfig(**SMALL),
    "RoBERTa": RobertaConfig(**SMALL),
    "ELECTRA": transformers.ElectraConfig(**SMALL, **wide),
    "ALBERT": transformers.AlbertConfig(**SMALL, **wide),
    "ModernBERT": transformers.ModernBertConfig(
        **SMALL, **specials, cls_token_id=1, sep_token_id=2
    ),
    "ConvBERT": transformers.ConvBertConfig(**SMALL, **wide),
    "FNet": transformers.FNetConfig(**no_heads),
    "XLNet": transformers.XLNetConfig(vocab_size=64, d_model=32, n_layer=2, n_head=4, d_inner=64),
    "GPT-2": transformers.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, **specials),
}
encoders = {name: AutoModel.from_config(config).eval() for name, config in configs.items()}


def verdict(encoder):
    """What the probe says, without the advice after it."""
    try:
        return f"passes; positions begin at {probe(encoder)}"
    except KBertError as error:
        return "refused: " + str(error).split(": ", 1)[1].split(". Use another")[0]


verdicts = {name: verdict(encoder) for name, encoder in encoders.items()}
lines = [f"{name:11} {said_of}" for name, said_of in verdicts.items()]
Folded("Reveal: what the probe says of each", "\n".join(lines))

# %% tags=["test"]
passing = {name for name, said_of in verdicts.items() if said_of.startswith("passes")}
assert passing == {"BERT", "RoBERTa", "ELECTRA", "ALBERT", "ModernBERT"}

# %% [markdown] tags=["meaning"]
# <details><summary>What it means</summary>
#
# - **ConvBERT** has a convolution beside attention. It mixes each token with its neighbours in the row, whatever the
#   mask says.
# - **FNet** has no attention at all. A Fourier transform mixes the tokens, and a mask has nothing to act on.
# - **XLNet** has no position table. It works with distances in the row, so that two tokens can't share a position.
# - **GPT-2** sees backwards only. If it sees everything, it isn't GPT-2 any more; test 3 notices.
# </details>

# %% [markdown]
# How much leaks in ConvBERT? By hand:

# %%
hidden, hidden_change = (
    states(encoders["ConvBERT"], ids, apart, straight) for ids in (tokens, changed)
)
for place, change in enumerate((hidden - hidden_change)[:4].abs().amax(1).tolist()):
    print(f"token {place}: moved by {change:.6f}")

# %% [markdown]
# Every one of them moves, and by so little that you would never see it in a loss or a score. In a sentence tree the
# neighbours in the row are often branches that a token must not see. A K-BERT with a ConvBERT inside would train and
# predict without any error.
#
# ## An encoder of your own, broken
#
# A class of your own works as well, if it takes what BERT takes. This one adds the mean of all tokens to each, as
# "global context". It sounds harmless:


# %%
class GlobalContext(BertModel):
    def forward(self, *inputs, **named):
        output = super().forward(*inputs, **named)
        states = output.last_hidden_state
        output.last_hidden_state = states + states.mean(1, keepdim=True)
        return output


print(verdict(GlobalContext(BertConfig(**SMALL)).eval()))

# %% [markdown]
# ## An adapter
#
# Training changes all the numbers of an encoder. **LoRA** keeps the encoder as it is, and learns a small difference to
# each of its matrices. $W$ is (out, in); the difference is a product of two thin matrices of rank $r$:
#
# $$W' = W + \frac{\alpha}{r}\, B A, \qquad A: (r, \text{in}), \quad B: (\text{out}, r)$$
#
# $B$ starts at 0, so that an adapter without training changes nothing. Here is one on our BERT, with a head for named
# entities:

# %%
from transformers import BertForTokenClassification

from kbert_lab.training.adapting import attach

torch.manual_seed(0)
tagger = BertForTokenClassification(BertConfig(**SMALL, num_labels=5)).eval()
W = tagger.bert.encoder.layer[0].attention.self.query.weight.detach().clone()
before = tagger(tokens).logits
adapted = attach(tagger, rank=4, alpha=8).eval()
print("changed by an untrained adapter:", moved(before, adapted(tokens).logits))

trained = {name: p.numel() for name, p in adapted.named_parameters() if p.requires_grad}
low_rank = sum(count for name, count in trained.items() if "lora" in name)
print(f"trained: {low_rank} in low-rank matrices, {sum(trained.values()) - low_rank} in the head")
print("frozen: ", sum(p.numel() for p in adapted.parameters() if not p.requires_grad))

# %% [markdown]
# Instead of training we draw $B$ at random, and compute the new matrix by hand. `peft`, which the library uses,
# *merges* the adapter to the same matrix. After that the model is a plain BERT again, and a prediction costs what it
# cost before.

# %%
query = tagger.bert.encoder.layer[0].attention.self.query  # now with A and B around W
with torch.no_grad():
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.normal_(std=0.1)
A, B = (query.lora_A["default"].weight.detach(), query.lora_B["default"].weight.detach())
W_new = W + 8 / 4 * B @ A
merged = adapted.merge_and_unload()
W_merged = merged.bert.encoder.layer[0].attention.self.query.weight
print("as merged, to a millionth:", moved(W_merged, W_new) < 1e-6)
print("the probe, on the merged model:", verdict(merged))

# %% tags=["test"]
assert moved(W_merged, W_new) < 1e-6 < moved(W_merged, W)
assert verdict(merged).startswith("passes")

# %% [markdown]
# An adapter's folder is small, and it needs *its* encoder: the library refuses one beside another encoder, where it would load and
# predict nonsense.
#
# ## Now for real
#
# In a terminal, with any encoder of the hub that passes. This needs the network once, and hours of a CPU or minutes of
# a GPU:
#
# ```console
# kbert train --task ner --data DATA --kg GRAPH --encoder bert-base-chinese --adapter 16 --learning-rate 1e-3 --output models/mine
# ```
#
# [Encoders from the hub](../docs/encoders.md) has more examples. [This decision](../docs/decisions/probe.md) says why
# there is a probe and no list.
#
# ## Exercises
#
# **1.** (easy) What does the probe say? Answer each with `"passes"`, `"leaks"` (test 1), `"deaf"` (test 2: positions
# have no influence) or `"different"` (test 3).

# %% tags=["exercise"]
from checks.systems import check_probe

said_of = {
    "a BERT with random weights": ...,
    "a BERT that ignores the mask": ...,
    "a BERT that counts positions itself, whatever it is given": ...,
    "a BERT without segments": ...,
    "a BERT whose tokens see only those before them, unless a mask is given": ...,
    "a BERT that adds the vector of [CLS] to every token at the end": ...,
}
check_probe(said_of)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Which of the three tests could notice it at all?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# said_of = {
#     "a BERT with random weights": "passes",
#     "a BERT that ignores the mask": "leaks",
#     "a BERT that counts positions itself, whatever it is given": "deaf",
#     "a BERT without segments": "passes",
#     "a BERT whose tokens see only those before them, unless a mask is given": "different",
#     "a BERT that adds the vector of [CLS] to every token at the end": "leaks",
# }
# check_probe(said_of)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Write test 1 for any encoder. `run(ids, visible)` gives the states: `ids` is an array of eight numbers
# from 0 to 9, `visible` is (8, 8) of booleans, the result is (8, H). Return by how much the states of the first four
# tokens move when the last four change, which they don't see.

# %% tags=["exercise"]
from checks.systems import check_leak


def leak(run):
    return ...


check_leak(leak)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Run it twice. What must differ between the runs, and what must not?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# import numpy as np
#
#
# def leak(run):
#     half = np.arange(8) < 4
#     visible = half[:, None] == half
#     before = run(np.array([1, 2, 3, 4, 5, 6, 7, 8]), visible)
#     after = run(np.array([1, 2, 3, 4, 8, 7, 6, 5]), visible)
#     return np.abs(before[:4] - after[:4]).max()
#
#
# check_leak(leak)
# ```
# </details>

# %% [markdown]
# **3.** (medium) A matrix of BERT-base's feed-forward is (3072, 768). How many numbers does a LoRA of rank 8 train for
# it, and what share of the matrix is that, in per cent?

# %% tags=["exercise"]
from checks.systems import check_rank

numbers = ...
per_cent = ...
check_rank(numbers, per_cent)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# $B$ is (3072, 8) and $A$ is (8, 768). How many numbers are in both together?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# numbers = 8 * 768 + 3072 * 8
# per_cent = 100 * numbers / (3072 * 768)
# check_rank(numbers, per_cent)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - K-BERT needs an encoder that keeps to a mask, hears positions, and is itself when nothing is hidden. The probe
#   tests these three whenever an encoder is loaded.
# - A leak raises no error by itself. Convolutions leak, and Fourier mixing, and a harmless-looking mean.
# - RoBERTa's positions begin at 2, and it has no segments.
# - An adapter is a low-rank difference. It belongs to one encoder, and a hash of the weights makes sure of it.
#
# **Open question.** The probe uses eight tokens. Describe an encoder that passes it and leaks all the same on a long
# text. How long would the probe have to be, and what would that cost whenever a model is loaded?
#
# ## Go on
#
# *To read:* [Encoders](../docs/encoders.md); [RoBERTa](https://arxiv.org/abs/1907.11692) (Liu et al. 2019); [LoRA](https://arxiv.org/abs/2106.09685) (Hu et al. 2021).

# %%
from _tools import lab_link

lab_link(text, graph=figure2, model="words")

# %% [markdown]
# A folder under `models/` appears in the Lab by itself. Back to [the plan](README.md).
