# %% [markdown]
# # 0 · Start here
#
# **Question.** Does everything work on this computer, and what is K-BERT, in five minutes?
#
# **You need** nothing but this page. **You get** a checked environment, one sentence read with and without knowledge,
# one edit that turns the answer, and the map of the course.
#
# Click on the grey cell below and press **Shift + Enter**: it runs, and the next cell is selected. Do so down the page.
#
# **After this notebook you can** say in one sentence what a triple does to an answer, and run, change and check a cell.

# %%
from _tools import ready

ready("models/ner-en")

# %% [markdown]
# If the line above begins with *Ready*, all is well. If not, its first words say what to do.
#
# ## One sentence
#
# The model below was trained to find **diseases** and **chemicals** (drugs are chemicals) in medical English. First it
# reads the sentence alone:

# %%
from kbert_core import NO_KNOWLEDGE, Pipeline, Triple, load_graph

model = Pipeline.from_pretrained("models/ner-en", device="cpu")
sentence = "The shingles healed, but the scar remained."


def found(graph):
    """The names that the model finds, each with its kind."""
    spans = model(sentence, graph=graph).prediction.spans
    return [(span.text, span.label) for span in spans]


print("without knowledge:", found(NO_KNOWLEDGE))

# %% [markdown]
# *Shingles* is a disease. It is also what covers a roof, and the model doesn't know better. Now it gets a **knowledge
# graph**: a list of facts, each a **triple** of head, relation and tail.

# %%
graph = load_graph("demo_kgs/medical_en.spo")
for triple in graph.triples_of("shingles")[:2]:
    print(triple)
print("with knowledge:", found(graph))

# %% [markdown]
# That is K-BERT. It looks up the names of the sentence in the graph, hangs their triples on them as branches of a
# tree, and lets a BERT read the whole tree. So the model reads this:

# %%
model(sentence, graph=graph).rows[0]

# %% [markdown]
# (The words of the sentence, and below *shingles* what hangs from it. Notebook 1 builds this tree by hand.)
#
# ## Change a triple
#
# The answer comes from a list that you can edit. Nothing has to be trained anew. Choose what the graph says shingles
# is:

# %%
from _tools import slider

kind = graph.triples_of("shingles")[0]


def if_shingles_is_a(tail):
    """The answer if the graph said so."""
    return found(graph.replace(kind, Triple("shingles", "is_a", tail)))


slider(if_shingles_is_a, tail=["disease", "drug"])

# %%
print("shingles is a disease:", if_shingles_is_a("disease"))
print("shingles is a drug:   ", if_shingles_is_a("drug"))

# %% tags=["test"]
assert found(NO_KNOWLEDGE) == []
assert if_shingles_is_a("disease") == [("shingles", "Disease")]
assert if_shingles_is_a("drug") == [("shingles", "Chemical")]

# %% [markdown]
# The second answer is wrong, and it is the graph's: **a model that follows its graph follows a false graph, too.** Why
# the rest of the sentence stays as it was, when this helps, and when it does harm: that is what the course is about.
#
# ## The map
#
# | | notebook | after it you can say |
# |---|---|---|
# | **Build it** | [1 Sentence tree](01_sentence_tree.ipynb) | how triples get into a sentence |
# | | [2 Soft positions](02_soft_positions.ipynb) | why two words share one position |
# | | [3 Visible matrix](03_visible_matrix.ipynb) | who may look at whom |
# | | [4 Mask-self-attention](04_mask_self_attention.ipynb) | how a hidden cell is kept out of attention |
# | | [4b One layer](04b_one_layer.ipynb) | what else happens in a layer, in NumPy |
# | **Use it** | [5 From BERT to K-BERT](05_from_bert_to_kbert.ipynb) | how a triple gets to the answer, layer by layer |
# | | [6 Fine-tuning](06_fine_tuning.ipynb) | how a model learns to look things up |
# | **Question it** | [6b Reading results](06b_reading_results.ipynb) | whether it is the graph that helps |
# | | [7a The ablation bench](07a_ablation_bench.ipynb) | which part does what: change one, read a score |
# | | [7b Ablations](07b_ablations.ipynb) | what a model learns without a part |
# | | [8 Knowledge noise](08_knowledge_noise.ipynb) | what false and useless triples do |
# | | [9 Explain a prediction](09_explain_a_prediction.ipynb) | which triple made an answer |
# | **Your own** | [10 Your own graph](10_your_own_graph.ipynb) | how your file becomes knowledge, and whether it helped |
# | **Other systems** | [11 KnowBert](11_knowbert.ipynb) | how a vector can carry knowledge |
# | | [12 Roof-BERT](12_roof_bert.ipynb) | how triples get a row of their own |
# | | [13 Three ways](13_three_ways_to_inject_knowledge.ipynb) | which of the three suits you |
# | | [14 Your own encoder](14_your_own_encoder.ipynb) | which encoders can read a graph |
#
# Go from top to bottom, or choose: to **see** K-BERT, 1, 2, 3 and 5; to **judge** it, 6b, 7a, 8 and 9; to **use** it, 6
# and 10. Notebooks with a letter go deeper; a first reading can leave 4b and 7b out. The plan of a class and of a course stands in the [README](README.md).
#
# ## Exercises
#
# A check at the end of the cell says whether your answer is right, and if not, why. Hints and solutions are folded.
#
# **1.** (easy) *Zorvex* is no word of any language. Write one triple with which the model takes it for a **disease** in
# "After zorvex the patient slept."

# %% tags=["exercise"]
from checks.knowledge import check_triple

my_triple = ...  # ("head", "relation", "tail")
check_triple(my_triple, model, graph)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Say of zorvex what the graph says of shingles, in the same words: `print(graph.triples_of("shingles")[0])`.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# my_triple = ("zorvex", "is_a", "disease")
# check_triple(my_triple, model, graph)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Which of these change the answer for "The shingles healed, but the scar remained."? Guess, then run.

# %% tags=["exercise"]
from checks.knowledge import check_changes

changes = {
    "the triple (shingles, is_a, disease) is deleted": ...,
    "all triples of shingles are deleted": ...,
    "all triples of aspirin are deleted": ...,
}  # True or False
check_changes(changes)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Only names that stand in the sentence are looked up. And look at what else the graph says: `graph.triples_of("shingles")`.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# changes = {
#     "the triple (shingles, is_a, disease) is deleted": False,
#     "all triples of shingles are deleted": True,
#     "all triples of aspirin are deleted": False,
# }
# check_changes(changes)
# ```
#
# Without the first triple the next one moves up: *shingles located_in skin*. With *shingles symptom painful rash* it
# still speaks of a disease, only less surely.
# </details>

# %% [markdown]
# ## Summary
#
# - A knowledge graph is a list of triples: head, relation, tail.
# - K-BERT hangs the triples of the names in a sentence on these names, and reads the tree.
# - An edit of the graph changes the answer at once, for better or worse.
#
# **Open question.** Which list of facts of your own work would you want a model to follow, and who would keep it true?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606) (Liu et al. 2020), the abstract and section 1.

# %%
from _tools import lab_link

lab_link(sentence, graph=graph, model="ner-en", task="ner", options=model.card.reading.options)

# %% [markdown]
# In the Lab you do the same with the mouse. Next: [1 · Sentence tree](01_sentence_tree.ipynb).
