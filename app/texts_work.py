"""Texts of long runs and of the room for visitors' graphs, in every language."""

ENGLISH = {
    "work.busy": "Many others have long runs here just now. Try again in a minute.",
    "work.starting": "Starting …",
    "work.counted": "{done} done",
    "work.counted_of": "{done} of {total} done",
    "work.stop": "Stop",
    "work.stopped": "Stopped; what was found by then is shown.",
    "work.left": "This run ended because nobody was looking at it. What was found by then is "
    "shown; start it again for the rest.",
    "work.full": "There are more results than are kept: the first {count} are shown.",
    "room.own": "{name} takes about {size} MB of memory. Graphs opened in this visit take {own} MB "
    "already, and may take {most} MB. Close one of them, or make a graph file of it (kbert kg "
    "import), which is read from disk.",
    "room.triples": "{name} has more than {most} triples, too many for an upload. Nothing was "
    "opened. Use a smaller graph, or make a graph file of it on the machine that runs this app "
    "(kbert kg import).",
    "workspace.full": "Workspaces take {most} MB here, as much as they may. Ask whoever runs this "
    "app to delete old ones, or download the graph to keep it.",
    "workspace.number": "KBERT_WORKSPACES_MB is “{value}”, expected a number: megabytes for all "
    "workspaces together. Change it, or leave it away for 4096.",
    "room.edits": "A visit keeps at most {most} edits. Save the graph to a workspace to go on.",
    "room.closed": "The graph “{name}” was closed. Open it again to see this.",
    "room.close": "Close {name}",
    "room.close_help": "Forgets the graph and the edits made to it in this visit.",
}

CHINESE = {
    "work.busy": "目前有很多访问者在运行耗时任务，请一分钟后再试。",
    "work.starting": "正在开始……",
    "work.counted": "已完成 {done} 项",
    "work.counted_of": "已完成 {done} / {total} 项",
    "work.stop": "停止",
    "work.stopped": "已停止；此前的结果如下。",
    "work.left": "因长时间无人查看，任务已结束。此前的结果如下；如需其余结果，请重新开始。",
    "work.full": "结果超出可保留的数量：仅显示前 {count} 项。",
    "room.own": "{name} 约占用 {size} MB 内存。本次访问打开的图谱已占用 {own} MB，"
    "上限为 {most} MB。请关闭其中一个，或用 kbert kg import 制成图谱文件（从磁盘读取）。",
    "room.triples": "{name} 的三元组超过 {most} 条，无法上传，未打开任何内容。请使用较小的图谱，"
    "或在运行本应用的机器上制成图谱文件（kbert kg import）。",
    "workspace.full": "工作区已占用 {most} MB，达到上限。请联系本应用的管理者删除旧的工作区，"
    "或下载图谱以保留。",
    "workspace.number": "KBERT_WORKSPACES_MB 为“{value}”，应为数字："
    "所有工作区合计可用的空间（MB）。请改正，或不设置（默认 4096）。",
    "room.edits": "一次访问最多保留 {most} 处修改。如需继续，请将图谱存入工作区。",
    "room.closed": "图谱“{name}”已关闭。请重新打开后查看。",
    "room.close": "关闭 {name}",
    "room.close_help": "丢弃该图谱以及本次访问对它的修改。",
}
