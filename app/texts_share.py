"""Texts of sharing: links, session files, what is kept; in every language."""

ENGLISH = {
    # what can't be made or read
    "share.part": "This can't be opened: its part “{part}” is missing or not as it should be. It "
    "may have been cut short or changed on its way; ask for it again.",
    "share.learned": "This can't be opened: its triples were chosen by a learned scorer "
    "(strategy “learned”), which there is no longer. Choose those most similar to the sentence "
    "(context) instead.",
    "share.damaged": "This can't be opened: it was cut short or changed on its way. Copy it again, "
    "whole.",
    "share.newer": "This was made by a newer version of K-BERT Lab. Open it there, or update this "
    "one.",
    "share.link_too_long": "This link is longer than the {characters} characters that a link may "
    "have. Ask for the session file instead.",
    "share.too_long": "This is too long for a link, which holds up to {most} edits and "
    "{characters} characters. Send the session file instead.",
    "share.file_too_large": "This file is larger than {most} MB, so it is no session file.",
    "share.file_too_long": "This is too long for a session file, which holds up to {most} edits. "
    "Download the edited graph, open it, and share from there.",
    "share.no_file": "This is no session file of K-BERT Lab (.kbert.json).",
    "share.not_told": "This can't be put into a link or a file: the text or a name holds half a "
    "character. Write it anew.",
    "share.misfit": "Its edits don't fit the graph “{graph}”, so nothing was opened: {reason}",
    "share.nothing": "Write a text that can be read; then there is something to share.",
    # what goes out
    "share.button": "Share",
    "share.link": "A link to this page as it is",
    "share.carries": "The link carries the text, the edits and the options, not the graph and not "
    "the model. Whoever gets the link can read the text.",
    "share.own_graph": "The graph “{graph}” is not one that everybody has: whoever opens the link "
    "is asked for it. The session file carries a graph of up to 20,000 triples.",
    "share.workspace": "The graph is in a workspace, which the link doesn't open: whoever opens "
    "the link is asked for the graph.",
    "share.workspace_open": "With its key the link opens the workspace too: whoever has the link "
    "can read and edit the whole graph.",
    "share.with_key": "Add the workspace's key",
    "share.file": "A session file",
    "share.download": "Save the session",
    "share.download_help": "The same as in the link, of any length, and the graph as it was before "
    "the edits, if it has at most 20,000 triples.",
    "share.open": "Open a session file (.kbert.json)",
    "share.open_help": "It takes the place of what is on the page, and of your edits to its graph.",
    # what came in
    "share.waiting": "A page that was sent to you",
    "share.needs_graph": "It was made with the graph “{graph}”, which isn't here. Open that graph, "
    "and the page opens in full. Until then you see its text and its edits, without a prediction.",
    "share.same_name": "The graph “{graph}” that is here has other triples.",
    "share.other_graph": "What you opened has other triples than the graph “{graph}” that the page "
    "was made with.",
    "share.needs_model": "It was made with the model {model}, which isn't here, and nothing else "
    "here reads two texts for that task. Put the model's folder among the models, and open the "
    "link again.",
    "share.otherwise": "Read the text with a graph of here",
    "share.otherwise_help": "With the graph chosen last, and without the edits that came along.",
    "share.leave": "Leave it",
    "share.no_model": "This was made with the model {model}, which isn't here: you see everything "
    "but the prediction. Put the model's folder among the models, and open the link again.",
    "share.no_strategy": "The triples were chosen with a model's help; here they are the first in "
    "graph order.",
    "share.no_scorer": "The triples were chosen by the scorer {scorer}, which isn't here; here "
    "they are the first in graph order.",
    "share.no_pinned": "The pinned scene that this was compared with can't be shown here.",
    "share.edit": "edit",
    "share.threshold": "threshold {value}",
    "share.only": "only {relations}",
    "share.without": "without {relations}",
    "share.first": "first {relations}",
    "share.names_off": "names not compared by: {rules}",
    # what is kept
    "keep.files": "Files to keep",
    "keep.html": "This page, .html",
    "keep.html_help": "One file that shows the page with the network off: text, prediction, tree "
    "and matrix, before and now.",
    "keep.png": "Save as PNG",
    "keep.matrix": "Visible matrix",
    "keep.attention": "Attention",
    "keep.no_trees": "This model grows no sentence trees, so there is no page to keep.",
    "keep.graph_button": "The edited graph, .spo",
    "keep.how": "How it was read",
    "keep.fingerprint": "Fingerprint",
    "keep.edits": "Edits to the graph",
    "keep.no_edits": "The graph was not edited.",
    "keep.no_prediction": "There is no prediction.",
    "keep.compared": "Compared with: {name}.",
    "keep.versions": "Versions",
    "keep.about": "What a language model makes of a text with the knowledge injected into it "
    "(K-BERT). This file holds all it shows and asks for nothing on the network.",
}

CHINESE = {
    # what can't be made or read
    "share.part": "无法打开：其中“{part}”一项缺失或不合要求。"
    "可能在传送中被截断或改动，请让对方重新发送。",
    "share.learned": "无法打开：其三元组由学到的评分器（策略 learned）选择，该策略已取消。"
    "请改用“与句子最相似的”（context）。",
    "share.damaged": "无法打开：内容在传送中被截断或改动。请重新完整复制。",
    "share.newer": "这是较新版本的 K-BERT Lab 生成的。请用新版本打开，或更新本程序。",
    "share.link_too_long": "这个链接超过了 {characters} 个字符的上限。请改用会话文件。",
    "share.too_long": "内容太长，放不进链接：链接最多容纳 {most} 处修改、{characters} 个字符。"
    "请改发会话文件。",
    "share.file_too_large": "文件超过 {most} MB，不是会话文件。",
    "share.file_too_long": "内容太长，放不进会话文件：最多容纳 {most} 处修改。"
    "请下载修改后的图谱，打开它，再从那里分享。",
    "share.no_file": "这不是 K-BERT Lab 的会话文件（.kbert.json）。",
    "share.not_told": "无法放进链接或文件：文本或名称中有半个字符。请重新输入。",
    "share.misfit": "其中的修改与图谱“{graph}”不符，因此什么都没有打开：{reason}",
    "share.nothing": "请先写一段可以读取的文本，才有内容可以分享。",
    # what goes out
    "share.button": "分享",
    "share.link": "指向当前页面的链接",
    "share.carries": "链接中带有文本、修改和选项，不带图谱和模型。拿到链接的人都能看到文本。",
    "share.own_graph": "图谱“{graph}”并非人人都有：打开链接的人需要提供它。"
    "会话文件可以附带不超过 20,000 个三元组的图谱。",
    "share.workspace": "图谱在工作区中，链接不会打开工作区：打开链接的人需要提供图谱。",
    "share.workspace_open": "带上密钥后，链接也会打开工作区：拿到链接的人可以读取和修改整个图谱。",
    "share.with_key": "附上工作区的密钥",
    "share.file": "会话文件",
    "share.download": "保存会话",
    "share.download_help": "内容与链接相同，长度不限；"
    "若图谱不超过 20,000 个三元组，还附带修改前的图谱。",
    "share.open": "打开会话文件（.kbert.json）",
    "share.open_help": "它会取代页面上的内容，以及您对同一图谱的修改。",
    # what came in
    "share.waiting": "别人发给您的页面",
    "share.needs_graph": "它用的是图谱“{graph}”，这里没有。打开那个图谱后，页面会完整显示。"
    "在此之前只能看到文本和修改，没有预测。",
    "share.same_name": "这里也有名为“{graph}”的图谱，但三元组不同。",
    "share.other_graph": "您打开的图谱与该页面所用的“{graph}”三元组不同。",
    "share.needs_model": "它用的是模型 {model}，这里没有，也没有别的模型能为该任务读取两段文本。"
    "请把模型文件夹放到模型目录中，再打开一次链接。",
    "share.otherwise": "用这里的图谱读取文本",
    "share.otherwise_help": "使用最近选择的图谱，不带随链接而来的修改。",
    "share.leave": "放弃",
    "share.no_model": "它用的是模型 {model}，这里没有：除预测以外的内容都可以看到。"
    "请把模型文件夹放到模型目录中，再打开一次链接。",
    "share.no_strategy": "原来的三元组是借助模型选择的；这里按图谱顺序取前几个。",
    "share.no_scorer": "原来的三元组由评分器 {scorer} 选择，这里没有它；这里按图谱顺序取前几个。",
    "share.no_pinned": "与之比较的固定场景无法在这里显示。",
    "share.edit": "修改",
    "share.threshold": "阈值 {value}",
    "share.only": "仅限 {relations}",
    "share.without": "不含 {relations}",
    "share.first": "优先 {relations}",
    "share.names_off": "名称比较时不考虑：{rules}",
    # what is kept
    "keep.files": "保存到文件",
    "keep.html": "当前页面，.html",
    "keep.html_help": "单个文件，断网也能打开：包含修改前后的文本、预测、句子树和矩阵。",
    "keep.png": "存为 PNG",
    "keep.matrix": "可见矩阵",
    "keep.attention": "注意力",
    "keep.no_trees": "此模型没有句子树，因此没有可保存的页面。",
    "keep.graph_button": "修改后的图谱，.spo",
    "keep.how": "读取方式",
    "keep.fingerprint": "指纹",
    "keep.edits": "对图谱的修改",
    "keep.no_edits": "图谱没有修改。",
    "keep.no_prediction": "没有预测。",
    "keep.compared": "比较对象：{name}。",
    "keep.versions": "版本",
    "keep.about": "语言模型在注入知识后如何理解一段文本（K-BERT）。"
    "本文件包含所显示的全部内容，不会访问网络。",
}
