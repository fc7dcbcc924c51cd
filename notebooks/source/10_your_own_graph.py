# %% [markdown]
# # 10 · Your own graph
#
# **Question.** You have a file of triples. How does it become knowledge of a model, and how do you know that it helped?
#
# **You need** notebooks [1](01_sentence_tree.ipynb) and [6](06_fine_tuning.ipynb). **You get** the whole way with a
# graph of your own: read it, check it, index it, audit it against data, choose triples, train, compare, open it in the
# app. We walk it with a small graph of instruments, trees, birds and metals, then you put yours in its place.
#
# **After this notebook you can** make a graph file, check and audit it, and measure whether it helped.

# %%
from _tools import ready

ready()

# %% [markdown]
# All files of this notebook go to a new folder, and nothing else is touched.

# %% tags=["varies"]
import os
import shlex
import tempfile
from pathlib import Path

from kbert_lab.cli import main

ROOT = Path.cwd()  # the repository
FOLDER = Path(tempfile.mkdtemp(prefix="kbert-"))
os.chdir(FOLDER)


def kbert(line):
    """Run a command as in a terminal; there it is `kbert …`. An error is printed."""
    main(shlex.split(line))


print("a new folder:", FOLDER.name)

# %% [markdown]
# ## A file of triples
#
# The simplest is `.tsv`: a line is head, relation and tail, with tabs between. (Also read: `.csv`, JSON Lines, and RDF,
# the triples of the web, as `.nt` or Turtle, `.ttl`.) One line of ours is broken.

# %%
KINDS = {
    "instrument": "violin cello flute oboe trumpet trombone harp guitar piano drum clarinet bassoon",
    "tree": "oak birch maple willow pine spruce elm beech larch cedar poplar alder",
    "bird": "robin sparrow eagle heron owl crow finch swallow stork falcon magpie crane",
    "metal": "iron copper zinc nickel cobalt silver gold lead tin tungsten titanium aluminium",
}
FACTS = """violin\tplayed_in\torchestra
violin\thas\tfour strings
oak\tbears\tacorns
robin\thas\tred breast
heron\teats
copper\tconducts\telectricity
crane\tis_a\tmachine
gold\tused_for\tjewellery"""

lines = [f"{name}\tis_a\t{kind}" for kind, names in KINDS.items() for name in names.split()]


def write_lines(file, lines):
    Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")


write_lines("mine.tsv", lines + FACTS.splitlines())

# %%
from kbert_core import KBertError, Triple, load_graph

try:
    load_graph("mine.tsv")
except KBertError as error:
    print(error)

# %% [markdown]
# An error names file and line, what was found and what to do; no part of the file is loaded. Correct the line:

# %%
FACTS = FACTS.replace("heron\teats", "heron\teats\tfish")
write_lines("mine.tsv", lines + FACTS.splitlines())
mine = load_graph("mine.tsv")
print(len(mine), "triples, such as", *mine.triples_of("violin"))

# %% [markdown]
# Read it by hand, to see that there is no magic: the tails of one head, in the order of the file.

# %%
rows = [line.split("\t") for line in Path("mine.tsv").read_text(encoding="utf-8").splitlines()]
by_hand = {}
for head, relation, tail in rows:
    by_hand.setdefault(head, []).append(Triple(head, relation, tail))
print("as the library reads it:", tuple(by_hand["violin"]) == mine.triples_of("violin"))

# %% tags=["test"]
assert all(tuple(triples) == mine.triples_of(head) for head, triples in by_hand.items())

# %% [markdown]
# ## Is it what you meant?
#
# `check` looks for likely mistakes. It changes nothing.

# %%
kbert("kg check mine.tsv")

# %% [markdown]
# *crane* is a bird and a machine. Both are true, of two things with one name; a text about birds would get the machine,
# too. We keep the bird. (For names that must have several meanings there are strategies:
# [selection](../docs/selection.md).)
#
# ## Index it, edit it
#
# A text file is for reading; a graph file, `.kg`, is for working on. It opens at once whatever its size, and remembers
# every edit: who made it, and what was before.

# %% tags=["varies"]
kbert("kg import mine.tsv --output mine.kg --by me")

# %% tags=["varies"]
from kbert_lab.graphs.store.store import GraphStore

kbert("kg remove mine.kg crane is_a machine --by me")
with GraphStore("mine.kg") as store:
    print([(entry.revision, entry.who) for entry in store.history()])
graph = load_graph("mine.kg")

# %% tags=["test"]
assert set(mine) - set(graph) == {Triple("crane", "is_a", "machine")}

# %% [markdown]
# As Turtle, for other programs, and back:

# %%
kbert("kg export mine.kg mine.ttl")
turtle = load_graph("mine.ttl")
print(*Path("mine.ttl").read_text(encoding="utf-8").splitlines()[:5], sep="\n")
print("the same triples:", set(turtle) == set(graph))

# %% tags=["test"]
assert set(turtle) == set(graph)

# %% [markdown]
# ## Does your data need it?
#
# A graph can only help with what your texts name and don't say. Data are tables: a header `text_a⇥label` and a line for
# each text, in `train.tsv`, `dev.tsv` and `test.tsv`. Yours go here; we make some with `make_riddles` of notebook 6,
# from our own graph. Names of the test set are in no training sentence; `riddles.tsv` says of what kind each name is,
# the many invented ones included.

# %%
from _riddles import make_riddles

riddles = make_riddles(
    graph, kinds=4, train=1200, held_out=160, seed=1
)  # half of the names invented, as in notebook 6


def write(folder, **parts):
    """Write a data set."""
    Path(folder).mkdir(exist_ok=True)
    for name, examples in parts.items():
        rows = [f"{example.sentences[0]}\t{example.label}" for example in examples]
        write_lines(f"{folder}/{name}.tsv", ["text_a\tlabel", *rows])


write_lines("riddles.tsv", [f"{t.head}\t{t.relation}\t{t.tail}" for t in riddles.graph])
write("data", train=riddles.train, dev=riddles.seen, test=riddles.unseen)
kbert("audit --data data --kg riddles.tsv --max-triples 1 --relations is_a")

# %% [markdown]
# An **audit** counts what a data set and a graph can show together. Read it before you train: how many texts name
# something the graph knows (here all, which is rare), how much the trees lengthen the input, and whether a text of
# training stands in dev or test, too. Here it warns of *leaks*. Drop those rows from training and look again (at the
# verdict only):

# %%
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

held_out = {example.sentences for example in (*riddles.seen, *riddles.unseen)}
kept = [example for example in riddles.train if example.sentences not in held_out]
print(len(riddles.train) - len(kept), "rows left out")
riddles = replace(riddles, train=tuple(kept))
write("data", train=riddles.train)

said = StringIO()
with redirect_stdout(said):
    kbert("audit --data data --kg riddles.tsv --max-triples 1 --relations is_a")
verdict = said.getvalue().split("\n\n")[1]
print(verdict)

# %% tags=["test"]
assert "The splits share no text" in verdict

# %% [markdown]
# ## Choose triples
#
# How many triples should a mention get, and which? Look at some choices first. Move the control:

# %%
from _tools import slider
from kbert_core import InjectionOptions, Words, flatten, grow_trees

text = "tell me about violin and forget gold"


def tree(max_triples, only_kinds=True):
    """The tree of the text with up to `max_triples` per mention."""
    options = InjectionOptions(max_triples, relations=("is_a",) if only_kinds else None)
    return flatten(grow_trees([text], graph, options), Words(special=True))[0]


slider(tree, max_triples=(0, 3), only_kinds=True)

# %%
tree(3, only_kinds=False)

# %% [markdown]
# ## Train, with a twin
#
# A gain is a difference, so train two: with the graph, and the same without. For your own data that is a command each
# (and hours, or a graphics card):
#
# ```console
# kbert train --task classify --data data --kg mine.kg --encoder ENCODER --relations is_a --max-triples 1 --output models/mine
# kbert train --task classify --data data --encoder ENCODER --output models/mine-bert
# ```
#
# Here the small loop of notebook 6 does it, in seconds.

# %%
from _riddles import trial
from kbert_core import NO_KNOWLEDGE

made = trial(riddles, riddles.graph, seed=1)
twin = trial(riddles, NO_KNOWLEDGE, seed=1)

# %% tags=["about"]
for name, one in (("with the graph", made), ("its twin without", twin)):
    print(f"{name:17} names of training {one.last.seen:.2f}, new names {one.last.unseen:.2f}")
print(f"{'chance':17} {riddles.chance:.2f}")

# %% tags=["test"]
assert made.last.unseen > twin.last.unseen + 0.3

# %% [markdown]
# ## Compare with the twin
#
# (The twin can't know the unseen names. It is above chance by accident: there are few of these names, it makes one
# guess for each, and this is one seed. See notebook 6.)
#
# One seed is an anecdote ([notebook 7b](07b_ablations.ipynb)); before you believe a gain, train three, and a shuffled
# graph beside them: `kbert kg control`, or a suite for `kbert experiment`.
#
# ## Teach it a new name
#
# The model has learnt to look things up. So a triple is enough, without any training:

# %% tags=["varies"]
question = "forget iron , tell me about theremin"
before = made.pipeline(question, graph=graph).prediction.label
kbert("kg add mine.kg theremin is_a instrument --by me")
graph = load_graph("mine.kg")
after = made.pipeline(question, graph=graph).prediction.label
print(f"theremin, which it has never met: a guess, {before}; with your triple: {after}")

# %% tags=["test"]
assert after == "instrument"

# %% [markdown]
# ## Keep it, and open it in the app
#
# A model is a folder. The card (which triples, which positions) is in its `config.json`, so that it is read later as it
# was trained.

# %%
from kbert_core import Pipeline

made.pipeline.encoder.model.save_pretrained("my-model")
made.pipeline.hugging_face_tokenizer.save_pretrained("my-model")
again = Pipeline.from_pretrained("my-model", device="cpu")

# %% tags=["test"]
assert again.card.reading.options == made.pipeline.card.reading.options
assert again(question, graph=graph).prediction.label == after

# %% [markdown]
# Copy the folder into `models/` of the repository, and the app offers it. The graph can be opened on its page
# *Knowledge*; or put text, graph and edits into a **session file**, which the app opens and
# which you can send to others:

# %%
from _tools import shared
from kbert_core import KnowledgeGraph
from kbert_lab.lab.share import to_file

plain = KnowledgeGraph(graph, name="mine")
session = shared(question, graph=plain, model="words", options=again.card.reading.options)
Path("mine.kbert.json").write_bytes(to_file(session, plain))
print(Path("mine.kbert.json").stat().st_size // 1024, "KB, with", len(plain), "triples")

# %% [markdown]
# ## Now yours
#
# 1. Read it in place of `mine.tsv`: `mine = load_graph("/whole/path/of/yours.ttl")`, and give the same
#    path to `kg check` and `kg import`. (The whole path, as the notebook works in its new folder. Any of the formats
#    named above will do.)
# 2. Run the cells from `kg check` on, without the lines about *crane* (remove what `check` found in yours), and put
#    names of yours into `text`.
# 3. `make_riddles` wants four kinds (tails of `is_a`) with ten names of one word each. If yours has fewer, it says so:
#    then write `train.tsv`, `dev.tsv` and `test.tsv` of your own into `data`, audit them, and train with the two
#    commands above.
#
# ## Exercises
#
# **1.** (easy) Write a line for `mine.tsv` by which `violin` is made of `maple`.

# %% tags=["exercise"]
from checks.knowledge import check_line

my_line = ...
check_line(my_line)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Three fields with tabs (`\\t`) between them: head, relation, tail. Which of the two things is the head?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# my_line = "violin\tmade_of\tmaple"
# check_line(my_line)
# ```
# </details>

# %% [markdown]
# **2.** (medium) What an audit may find: which of these mean that this graph *can't* help with these data, or that a gain would
# prove nothing?

# %% tags=["exercise"]
from checks.knowledge import check_audit

no_use = {
    "no text names a head of the graph": ...,
    "half of the test texts stand in training, too": ...,
    "the graph was made from the labels of the test set": ...,
    "one text in five names a head of the graph": ...,
    "trees are a third longer than the texts": ...,
}
check_audit(no_use)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Ask of each: does any text still read a triple? And would a gain show knowledge, or only remembered answers?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# no_use = {
#     "no text names a head of the graph": True,
#     "half of the test texts stand in training, too": True,
#     "the graph was made from the labels of the test set": True,
#     "one text in five names a head of the graph": False,
#     "trees are a third longer than the texts": False,
# }
# check_audit(no_use)
# ```
# </details>

# %% [markdown]
# ## Summary
#
# - A file of triples becomes a graph; `kg check` shows likely mistakes; a `.kg` file keeps every edit.
# - **Audit** before you train: what the texts name, how long trees get, what leaks.
# - A gain is a difference from a **twin** without the graph, over several seeds.
# - A new name needs a triple and no training.
#
# **Open question.** Your graph knows one name in five of your texts. What gain would you expect at most, and how
# would you tell whether a gain comes from those texts?
#
# ## Go on
#
# *To read:* [Should I inject my graph?](../docs/should-i-inject.md); [the graph store](../docs/graphs.md).
#
# A link can carry a few edits to a graph that the app has. Here is one of its own graphs with two triples of yours:

# %%
from _tools import lab_link

general = load_graph(ROOT / "demo_kgs/general_en.spo")
yours = [Triple("theremin", "is_a", "instrument"), Triple("theremin", "invented_in", "Russia")]
lab_link("tell me about theremin and forget Paris", graph=general, model="words", added=yours)

# %% [markdown]
# K-BERT ends here; next is the second system: [11 · KnowBert](11_knowbert.ipynb). Where to look besides: [how triples are chosen](../docs/selection.md), [what the experiments
# found](../docs/results.md), [graphs of any size](../docs/graphs.md).
