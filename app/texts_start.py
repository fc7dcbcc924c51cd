"""Texts of the start page, in every language."""

ENGLISH = {
    "start.page": "Start",
    "start.title": "What does injected knowledge do to a language model?",
    "start.what": "A knowledge graph's triples are hung on the names in a sentence. Switch one "
    "off, or make it wrong, and see what the model says then. Choose a scene:",
    "start.play": "Play",
    "start.no_model": "No model here can play this scene: see *About*.",
    "start.triple": "One triple, another answer",
    "start.triple_what": "One triple is switched off, and the prediction turns.",
    "start.wrong": "A wrong triple fools the model",
    "start.wrong_what": "The graph calls a disease an examination, and the model believes it.",
    "start.systems": "Four ways to read a graph",
    "start.systems_what": "K-BERT, KnowBert, Roof-BERT and plain text: where knowledge enters, and "
    "what one edit moves in each.",
    "start.mask": "Take the mask away",
    "start.mask_what": "Without the visible matrix every token sees every triple. What is left of "
    "the prediction?",
    "start.own": "Your own graph",
    "start.own_what": "Open a file of triples, and try sentences that it changes.",
    "start.figure": "Figure 2 of the paper",
    "start.figure_what": "The sentence tree, the soft positions and the visible matrix, as the "
    "paper draws them.",
}

CHINESE = {
    "start.page": "开始",
    "start.title": "注入的知识对语言模型有什么影响？",
    "start.what": "图谱中的三元组挂在句中的名称上。停用一个三元组，或把它改错，看看模型怎么说。"
    "选择一个场景：",
    "start.play": "演示",
    "start.no_model": "这里没有能演示此场景的模型，见“关于”。",
    "start.triple": "一个三元组，另一个答案",
    "start.triple_what": "停用一个三元组，预测随之改变。",
    "start.wrong": "错误的三元组骗过模型",
    "start.wrong_what": "图谱把疾病说成检查，模型信以为真。",
    "start.systems": "读图谱的四种方式",
    "start.systems_what": "K-BERT、KnowBert、Roof-BERT 和纯文本：知识从哪里进入，"
    "一次修改在各系统中改变什么。",
    "start.mask": "去掉可见矩阵",
    "start.mask_what": "没有可见矩阵，每个词元都能看到每个三元组。预测还剩下什么？",
    "start.own": "你自己的图谱",
    "start.own_what": "打开一个三元组文件，试试会因它而改变的句子。",
    "start.figure": "论文的图 2",
    "start.figure_what": "论文中的句子树、软位置和可见矩阵。",
}
