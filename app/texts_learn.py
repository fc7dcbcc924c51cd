"""Texts of the Learn page, in every language."""

ENGLISH = {
    "learn.page": "Learn",
    "learn.title": "Seven short lessons",
    "learn.what": "Read, predict, then reveal. What is revealed is computed at that moment, on a "
    "scene that you can open in the Lab and take apart.",
    "learn.lesson": "Lesson",
    "learn.progress": "{done} of {all} revealed, {right} as predicted",
    "learn.predict": "Your prediction",
    "learn.reveal": "Reveal",
    "learn.choose_first": "Choose an answer first.",
    "learn.as_predicted": "As predicted: {answer}",
    "learn.not_as_predicted": "You predicted {given}. It is {answer}",
    "learn.again": "Predict again",
    "learn.open": "Open in the Lab",
    "learn.open_help": "Puts this scene into the Lab, in place of the one that is there.",
    "learn.notebook": "Notebook: {name}",
    "learn.previous": "Previous",
    "learn.next": "Next",
    "learn.finished": "All seven are revealed. Now write a sentence of your own in the Lab.",
    "learn.no_model": "This lesson runs the model {name}, which isn't in {folder}. Bring it back "
    "with",
    "learn.figure2": "The sentence and the triples are those of Figure 2 of the paper.",
    # 1
    "learn.tokens.title": "Tokens",
    "learn.tokens.text": "A model reads tokens. Here every word is one, and two special ones, "
    "[CLS] and [SEP], stand at the ends. Where the sentence names the head of a triple, that "
    "mention gets a branch: the triple's relation and tail, as tokens of their own. The head is "
    "not repeated, as it stands in the sentence already.",
    "learn.tokens.question": "The graph has {triples} triples for this sentence. How many tokens "
    "does the model read in all?",
    "learn.tokens.why": "{all}: the trunk has {trunk}, with {specials}, and the {branches} "
    "branches have {branch}, as relation and tail are each a token here. Every triple makes the "
    "input longer; that is why only a few are injected at a mention.",
    # 2
    "learn.tree.title": "The sentence tree",
    "learn.tree.text": "Sentence and branches make a tree: the words are its trunk, and each "
    "branch hangs from its mention. A model, though, takes one row of tokens, so the tree has to "
    "be laid flat.",
    "learn.tree.question": "Which token stands right behind “{token}” in that row?",
    "learn.tree.why": "The tree is laid flat mention by mention, each followed by its branches: "
    "behind “{mention}” comes what hangs from it, then the trunk goes on. Read "
    "like this it is no sentence any more. The next two lessons are about what K-BERT does so that "
    "the model doesn't notice.",
    # 3
    "learn.positions.title": "Soft positions",
    "learn.positions.text": "BERT learns from positions which word follows which. Laid flat, the "
    "branches push the words apart: counted straight through from [CLS] = 0, “{token}” stands at "
    "{hard}, its hard position. K-BERT counts along the tree instead.",
    "learn.positions.question": "Which soft position does “{token}” get?",
    "learn.positions.why": "{soft}: on the trunk “{token}” follows “{before}”, which has "
    "{before_soft}, as though no branch were there. The branch counts on from the mention as well, "
    "so “{shared}” has {soft} too. Two tokens at one position must not be taken for neighbours of "
    "each other: that is what the visible matrix is for.",
    # 4
    "learn.visible.title": "The visible matrix",
    "learn.visible.text": "What is said of one name must not change what the other words mean. So "
    "the visible matrix says who may attend to whom: tokens of one branch to each other, the trunk "
    "being one too, and a mention and its own branches to each other. Everything else is hidden.",
    "learn.visible.question": "Which of these tokens may attend to “{token}”?",
    # 5
    "learn.attention.title": "Masked attention, by hand",
    "learn.attention.text": "A token scores every token, q·k / √D; the mask adds 0 to the score of "
    "a visible token and −∞ to that of a hidden one; softmax makes weights of it that sum to 1. "
    "Below is the row of “{row}” in Figure 2. The scores are made up, the mask is real.",
    "learn.attention.question": "How much of its attention does “{row}” give to “{column}”?",
    "learn.attention.token": "token",
    "learn.attention.score": "score",
    "learn.attention.mask": "mask",
    "learn.attention.raised": "e^(score + mask)",
    "learn.attention.weight": "weight",
    "learn.attention.why": "e to the power of −∞ is 0, so only the {n} visible tokens count: "
    "{raised} (e to the power of {score}) of {total} makes {p}. Without the mask it would be "
    "{unmasked}. Hidden tokens get exactly 0, not just little.",
    "learn.attention.then": "In the Lab an English encoder reads the same tree: choose a cell to "
    "see the weights it really gives.",
    # 6
    "learn.noise.title": "Knowledge noise",
    "learn.noise.text": "Most of what a graph knows of a name is beside the point. Below, each "
    "mention got {count} triples drawn at random (seed {seed}) from a graph of everyday words, "
    "before those that belong to it. The paper calls the harm such triples do knowledge noise, and "
    "answers it with the visible matrix. A trained model now tags the sentence, with the noise and "
    "without, once with the visible matrix and once with every token visible to every other.",
    "learn.noise.question": "Where do tags change because of the noise?",
    "learn.noise.neither": "Nowhere: not one tag changes",
    "learn.noise.only_all": "Only where everything is visible",
    "learn.noise.only_tree": "Only with the visible matrix",
    "learn.noise.both": "In both readings",
    "learn.noise.reading_tree": "Visible matrix",
    "learn.noise.reading_all": "Everything visible",
    "learn.noise.without": "without noise",
    "learn.noise.with": "with noise",
    "learn.noise.why": "Of {tokens} tags, noise changes {tree} with the visible matrix and {all} "
    "where everything is visible. Behind the matrix only the mention itself can hear its branches; "
    "the rest of the sentence hears of them at second hand.",
    "learn.noise.but": "One sentence shows how, not how often.",
    "learn.noise.unfamiliar": "And this model was trained with the matrix: to read without it is "
    "new to it, and {n} of {tokens} tags differ even without noise.",
    # 7
    "learn.hurts.title": "When knowledge hurts",
    "learn.hurts.text": "This model was taught to trust the graph. The sentence says that the "
    "patient has a history of {mention} (hypertension) and was given aspirin. In the graph, "
    "{old} has been changed to {new}: it now calls hypertension an examination.",
    "learn.hurts.question": "What does the model take “{mention}” for?",
    "learn.hurts.none": "no entity",
    "learn.hurts.with_right": "with the right triple",
    "learn.hurts.with_wrong": "with the wrong triple",
    "learn.hurts.why": "With the right triple: {right}. With the wrong one: {wrong}. Without any "
    "knowledge: {plain}.",
    "learn.hurts.hurt": "The model knew better by itself: here the graph made a right answer "
    "wrong.",
    "learn.hurts.no_harm": "Here the wrong triple did no harm.",
    "learn.hurts.then": "What makes a model use knowledge also makes it believe mistakes. So count "
    "over a whole file what a graph helps and what it hurts, and look after the graph.",
}

CHINESE = {
    "learn.page": "学习",
    "learn.title": "七节短课",
    "learn.what": "先读，再预测，然后揭晓。揭晓的内容都是当场计算的，所用场景可以在实验室打开，"
    "任您拆解。",
    "learn.lesson": "课程",
    "learn.progress": "已揭晓 {done}/{all} 课，{right} 课预测正确",
    "learn.predict": "您的预测",
    "learn.reveal": "揭晓",
    "learn.choose_first": "请先选一个答案。",
    "learn.as_predicted": "预测正确：{answer}",
    "learn.not_as_predicted": "您预测的是 {given}，实际是 {answer}",
    "learn.again": "重新预测",
    "learn.open": "在实验室打开",
    "learn.open_help": "把这个场景放进实验室，取代那里现有的场景。",
    "learn.notebook": "笔记本：{name}",
    "learn.previous": "上一课",
    "learn.next": "下一课",
    "learn.finished": "七课都已揭晓。现在到实验室写一个您自己的句子吧。",
    "learn.no_model": "本课要运行模型 {name}，但 {folder} 里没有它。用下面的命令取回：",
    "learn.figure2": "句子和三元组取自论文的图 2。",
    "learn.tokens.title": "词元",
    "learn.tokens.text": "模型读的是词元。这里每个词是一个词元，两端还有两个特殊词元 [CLS] 和 "
    "[SEP]。句子提到某个三元组的头实体时，这处提及就得到一条分支：三元组的关系和尾实体各成词元。"
    "头实体已在句中，不再重复。",
    "learn.tokens.question": "图谱对这个句子有 {triples} 个三元组。模型总共读多少个词元？",
    "learn.tokens.why": "{all} 个：主干 {trunk} 个，其中包括 {specials}；{branches} 条分支共 "
    "{branch} 个，因为这里关系和尾实体各是一个词元。每个三元组都会让输入变长，"
    "所以一处提及只注入少数几个。",
    "learn.tree.title": "句子树",
    "learn.tree.text": "句子和分支组成一棵树：词语是主干，每条分支挂在它的提及下。"
    "但模型读的是一行词元，所以要把树摊平。",
    "learn.tree.question": "在这一行里，紧跟在“{token}”后面的是哪个词元？",
    "learn.tree.why": "摊平时逐个提及，后面紧跟它的分支：“{mention}”之后是挂在它下面的内容，"
    "然后主干继续。这样读已经不成句子了。接下来两课讲 K-BERT 怎样让模型不受影响。",
    "learn.positions.title": "软位置",
    "learn.positions.text": "BERT 靠位置知道哪个词跟在哪个词后面。摊平之后，分支把词语隔开了：从 "
    "[CLS] = 0 一路数下来，“{token}”排在 {hard}，这是它的硬位置。K-BERT 则沿着树来数。",
    "learn.positions.question": "“{token}”得到的软位置是多少？",
    "learn.positions.why": "{soft}：在主干上“{token}”紧跟“{before}”，后者的位置是 {before_soft}，"
    "就像没有分支一样。分支也从提及接着数，所以“{shared}”的位置也是 {soft}。"
    "同一位置上的两个词元不能互相当作邻居：这正是可见矩阵的用处。",
    "learn.visible.title": "可见矩阵",
    "learn.visible.text": "关于某个名称的知识不应改变其他词的含义。因此可见矩阵规定谁能关注谁："
    "同一条分支上的词元互相可见，主干也算一条；提及与它自己的分支互相可见。其余一概不可见。",
    "learn.visible.question": "下面哪个词元能关注“{token}”？",
    "learn.attention.title": "手算带掩码的注意力",
    "learn.attention.text": "每个词元给所有词元打分，即 q·k / √D；掩码给可见词元的分数加 0，"
    "给不可见的加 −∞；softmax 再把它们变成总和为 1 的权重。下面是图 2 中“{row}”的那一行。"
    "分数是编的，掩码是真的。",
    "learn.attention.question": "“{row}”把多少注意力给了“{column}”？",
    "learn.attention.token": "词元",
    "learn.attention.score": "分数",
    "learn.attention.mask": "掩码",
    "learn.attention.raised": "e^(分数 + 掩码)",
    "learn.attention.weight": "权重",
    "learn.attention.why": "e 的 −∞ 次方是 0，所以只有 {n} 个可见词元算数：{raised}（e 的 {score} "
    "次方）占 {total} 的 {p}。没有掩码就会是 {unmasked}。不可见的词元得到的恰好是 0，"
    "而不只是很少。",
    "learn.attention.then": "在实验室里，一个英文编码器读同一棵树：点一格，"
    "就能看到它真正给出的权重。",
    "learn.noise.title": "知识噪声",
    "learn.noise.text": "图谱对一个名称所知道的，大多与眼前的句子无关。下面，"
    "每处提及在它自己的三元组之前，又从日常词语的图谱中随机（种子 {seed}）抽取了 {count} "
    "个三元组。论文把这类三元组造成的危害称为知识噪声，并用可见矩阵来应对。"
    "现在让一个训练好的模型标注这个句子：有噪声和没有噪声，各读两次，一次用可见矩阵，"
    "一次让所有词元互相可见。",
    "learn.noise.question": "标签会在哪种读法中因噪声而改变？",
    "learn.noise.neither": "都不会：一个标签也不变",
    "learn.noise.only_all": "只在全部可见时",
    "learn.noise.only_tree": "只在使用可见矩阵时",
    "learn.noise.both": "两种读法都会",
    "learn.noise.reading_tree": "可见矩阵",
    "learn.noise.reading_all": "全部可见",
    "learn.noise.without": "没有噪声",
    "learn.noise.with": "有噪声",
    "learn.noise.why": "在 {tokens} 个标签中，噪声在使用可见矩阵时改变 {tree} 个，"
    "在全部可见时改变 {all} 个。有了可见矩阵，只有提及自己听得见它的分支，"
    "句子的其余部分只能间接得知。",
    "learn.noise.but": "一个句子说明的是如何起作用，而不是有多常见。",
    "learn.noise.unfamiliar": "而且这个模型是用可见矩阵训练的：不用矩阵来读对它是陌生的，"
    "即使没有噪声，{tokens} 个标签中也有 {n} 个不同。",
    "learn.hurts.title": "知识何时有害",
    "learn.hurts.text": "这个模型学会了相信图谱。句子说患者有{mention}病史，给予阿司匹林治疗。"
    "图谱中的 {old} 被改成了 {new}：它现在说高血压是一项检查。",
    "learn.hurts.question": "模型会把“{mention}”当成什么？",
    "learn.hurts.none": "无实体",
    "learn.hurts.with_right": "用正确的三元组",
    "learn.hurts.with_wrong": "用错误的三元组",
    "learn.hurts.why": "用正确的三元组：{right}。用错误的三元组：{wrong}。不用知识：{plain}。",
    "learn.hurts.hurt": "模型自己本来知道得更清楚：在这里，图谱把对的变成了错的。",
    "learn.hurts.no_harm": "在这里，错误的三元组没有造成危害。",
    "learn.hurts.then": "使模型运用知识的东西，也会使它相信错误。"
    "所以要在整个文件上清点图谱帮了多少、害了多少，并维护好图谱。",
}
