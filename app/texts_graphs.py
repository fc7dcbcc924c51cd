"""Texts about choosing and opening graphs and models, in every language."""

ENGLISH = {
    "lab.graph": "Knowledge graph",
    "graph.option": "{name}, {count} triples",
    "graph.public": "{name}: fetch, or open a file",
    "open.graph": "Open a knowledge graph",
    "open.format": "One triple a line: head, relation, tail, separated by tabs; or a table with "
    "commas (.csv), JSON Lines (.jsonl) or RDF (.nt, .ttl); UTF-8 or UTF-16.",
    "open.upload": "Upload a file of at most {most} MB (.spo .tsv .txt .csv .jsonl .nt .ttl, or "
    "these packed as .xz .gz .bz2 .zst)",
    "open.path": "Or a file on this machine",
    "open.path_help": "At most {most} MB; a graph file (.kg), made with `kbert kg import`, may be "
    "of any size.",
    "open.path_placeholder": "/path/to/Medical.spo",
    "open.path_button": "Open the file",
    "open.skip_bad": "Load the good lines and list the bad ones",
    "open.fetch": "Or fetch a public graph once",
    "open.fetch_button": "Fetch {name}",
    "open.fetching": "Fetching {name} …",
    "open.indexing": "{name} is large: it is indexed on disk, once …",
    "open.opened": "Opened {name}: {count} triples.",
    "open.repeated": "{count} repeated lines were dropped.",
    "open.skipped": "{count} bad lines were left out:",
    "open.failed_title": "The file was not opened, and nothing was changed.",
    "open.no_file": "{path}: there is no such file here. Check the path; it is one on the "
    "machine that runs this app.",
    "open.too_big": "{path}: {size} MB, at most {most} MB can be opened in the app. "
    "Make a graph file of it, `kbert kg import FILE --output GRAPH.kg`, and open that.",
    "open.model": "Open a model folder of your own",
    "open.model_path": "A folder with config.json, weights and tokenizer, or an adapter's folder",
    "open.model_placeholder": "/path/to/my-model",
    "open.model_button": "Open the model",
    "open.model_opened": "Opened {name}: {task}. {facts}",
    "open.model_failed": "The model was not opened, and nothing was changed.",
    "graph.caption": "Full lines are injected, dashed ones are not. Drag to move, scroll to zoom.",
    "graph.caption_cut": "The first {shown} of {total} triples. Full lines are injected, dashed "
    "ones are not.",
    "graph.alt": "The entities of the sentence and their triples as a graph",
}

CHINESE = {
    "lab.graph": "知识图谱",
    "graph.option": "{name}，{count} 个三元组",
    "graph.public": "{name}：下载，或打开文件",
    "open.graph": "打开知识图谱",
    "open.format": "每行一个三元组：头实体、关系、尾实体，以制表符分隔；"
    "或以逗号分隔的表格（.csv）、JSON Lines（.jsonl）、RDF（.nt、.ttl）；UTF-8 或 UTF-16。",
    "open.upload": "上传不超过 {most} MB 的文件（.spo .tsv .txt .csv .jsonl .nt .ttl，"
    "或压缩为 .xz .gz .bz2 .zst）",
    "open.path": "或本机上的文件",
    "open.path_help": "最多 {most} MB；用 `kbert kg import` 制成的图谱文件（.kg）不限大小。",
    "open.path_placeholder": "/path/to/Medical.spo",
    "open.path_button": "打开文件",
    "open.skip_bad": "载入正确的行，列出有问题的行",
    "open.fetch": "或下载一次公开的图谱",
    "open.fetch_button": "下载 {name}",
    "open.fetching": "正在下载 {name}……",
    "open.indexing": "{name} 较大：正在磁盘上建立索引，只需一次……",
    "open.opened": "已打开 {name}：{count} 个三元组。",
    "open.repeated": "略去了 {count} 个重复的行。",
    "open.skipped": "略去了 {count} 个有问题的行：",
    "open.failed_title": "文件没有打开，什么都没有改变。",
    "open.no_file": "{path}：这里没有这个文件。请检查路径；它应在运行本应用的机器上。",
    "open.too_big": "{path}：{size} MB，本应用最多打开 {most} MB。请用 `kbert kg import FILE "
    "--output GRAPH.kg` 制成图谱文件再打开。",
    "open.model": "打开您自己的模型文件夹",
    "open.model_path": "含 config.json、权重和分词器的文件夹，或适配器的文件夹",
    "open.model_placeholder": "/path/to/my-model",
    "open.model_button": "打开模型",
    "open.model_opened": "已打开 {name}：{task}。{facts}",
    "open.model_failed": "模型没有打开，什么都没有改变。",
    "graph.caption": "实线为已注入，虚线为未注入。拖动可移动，滚轮可缩放。",
    "graph.caption_cut": "只画出前 {shown} 个，共 {total} 个三元组。实线为已注入，虚线为未注入。",
    "graph.alt": "句中的实体及其三元组的图",
}
