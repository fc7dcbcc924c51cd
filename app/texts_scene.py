"""Texts of what pages say of the Lab's scene, in every language."""

ENGLISH = {
    "scene.text": "“{text}”",
    "scene.edit": "1 edit",
    "scene.edits": "{count} edits",
    "scene.hard": "hard positions",
    "scene.all": "everything visible",
    "scene.to_lab": "Change it in the Lab",
    "scene.no_text": "There is no text to read yet: write one in the Lab.",
    "scene.too_long": "The text in the Lab is too long to be read here: {count} characters, "
    "at most {most}. Shorten it there.",
    "scene.no_model": "There is no prediction to explain: this scene is read without a model "
    "that predicts. Choose a task and a model in the Lab.",
    "scene.no_prediction": "There is no prediction to explain. Choose another model in the Lab.",
    "scene.no_mask": "There is no prediction to explain: the text has no {mask}. Write {mask} "
    "where a token is wanted, in the Lab.",
    "scene.nothing_predicted": "No entity is predicted, so choose a span to explain.",
    "scene.no_triple": "No triple of {graph} stands in this text, so there is no knowledge to "
    "look into. Choose another text or graph in the Lab, or add a triple there.",
    "scene.no_trees": "This part needs sentence trees, and the system “{system}” has none: it "
    "links names to entities, whose vectors enter between two layers. The Lab shows its "
    "linked entities, and “Effects” what each triple does.",
    "scene.no_trees_beside": "This part needs sentence trees, and the system “{system}” has "
    "none: it reads the triples beside the text. The Lab shows them, and “Effects” what each "
    "of them does.",
}

CHINESE = {
    "scene.text": "“{text}”",
    "scene.edit": "1 次修改",
    "scene.edits": "{count} 次修改",
    "scene.hard": "硬位置",
    "scene.all": "全部可见",
    "scene.to_lab": "到实验室修改",
    "scene.no_text": "还没有可读的文本：请在实验室输入。",
    "scene.too_long": "实验室中的文本太长，无法在此读取：{count} 个字符，至多 {most} 个。请在"
    "那里缩短。",
    "scene.no_model": "没有可解释的预测：当前场景没有使用能预测的模型。请在实验室选择任务和模型。",
    "scene.no_prediction": "没有可解释的预测。请在实验室换一个模型。",
    "scene.no_mask": "没有可解释的预测：文本中没有 {mask}。请在实验室的文本中需要填词处写上 {m"
    "ask}。",
    "scene.nothing_predicted": "没有预测出实体，请选择要解释的片段。",
    "scene.no_triple": "{graph} 中没有三元组进入此文本，因此没有知识可看。请在实验室换一个文本"
    "或图谱，或在那里添加三元组。",
    "scene.no_trees": "这一部分需要句子树，而系统“{system}”没有：它把名称链接到实体，实体向量"
    "在两层之间加入。实验室显示其链接的实体，“作用”显示每个三元组的作用。",
    "scene.no_trees_beside": "这一部分需要句子树，而系统“{system}”没有：它在文本旁边读入三元组"
    "。实验室显示这些三元组，“作用”显示每个三元组的作用。",
}
