"""The words of the terminal UI, in English and Chinese.

Words about the domain are not here: they come from flows, findings and slots.

Invariant: every key has both languages and the same placeholders in both (a test compares them).
"""

from __future__ import annotations

from runbook.text import Text

KINDS = {
    "check": Text("check", "检查"),
    "experiment": Text("experiment", "实验"),
    "cause": Text("cause", "原因"),
    "clear": Text("nothing wrong here", "此处无问题"),
}

WORDS = {
    # start screen
    "causes": Text("What was found", "发现"),
    "flows": Text("Where to start", "从何处开始"),
    "evidence": Text("Evidence", "证据"),
    "sessions": Text("Recent sessions", "最近的会话"),
    "asked": Text("{done} of {all} probes answered", "{all} 个探针中 {done} 个已回答"),
    "all_asked": Text("all {all} probes answered", "{all} 个探针均已回答"),
    "no_cause_yet": Text("nothing confirmed yet", "尚无已确认的原因"),
    "no_cause": Text("nothing confirmed", "没有已确认的原因"),
    "no_evidence": Text("none yet; press {key} to add some", "暂无；按 {key} 添加"),
    "looking": Text("looking at the evidence", "正在查看证据"),
    "missing": Text("missing", "缺失"),
    "leads_to": Text("leads to {cause}", "导致 {cause}"),
    "proof": Text("proof", "证明"),
    # walk screen
    "guide": Text("guide {id}", "指南 {id}"),
    "probes": Text("Probes", "探针"),
    "running": Text("running", "运行中"),
    "still_running": Text("still running", "仍在运行"),
    "queued": Text("waiting its turn", "排队中"),
    "not_asked": Text("not asked", "尚未询问"),
    "seconds": Text("{n} s", "{n} 秒"),
    "settle": Text("to settle it: {words}", "如何确定：{words}"),
    "threshold": Text("threshold {value}", "阈值 {value}"),
    "source": Text("from {source}", "来源：{source}"),
    "answered_by": Text("answered {answer}, by {who}", "{who} 回答了 {answer}"),
    "by_probe": Text("probe", "探针"),
    "by_person": Text("a person", "人工"),
    "overruled": Text("against the probes, which say {answer}", "与探针结论（{answer}）不同"),
    "earlier": Text("earlier answer, stale now: {answer}", "此前的回答（已失效）：{answer}"),
    "disagree": Text("the probes disagree; a person decides", "探针结论不一致，由人裁定"),
    "why_confirmed": Text("Why it is confirmed", "为何已确认"),
    "why_ruled_out": Text("Why it is ruled out", "为何已排除"),
    "follows": Text("What follows from it", "由此引起"),
    "fix": Text("Fix", "修复"),
    "actions": Text("Actions", "操作"),
    "verify": Text("Verify", "验证"),
    "verify_how": Text("ask again afterwards: {probes}", "修复后重新询问：{probes}"),
    "notes": Text("Notes", "备注"),
    "change": Text("Change the launch script", "修改启动脚本"),
    "attached": Text("attached run: {run}", "已附上的运行：{run}"),
    "copy_of": Text("The changed copy", "修改后的副本"),
    "copy_start": Text("start it as the original is started ({key} copies):", "像原脚本那样启动（{key} 复制）："),
    "copy_hand": Text("by hand: {words}", "手动：{words}"),
    "copy_note": Text("note: {words}", "注意：{words}"),
    "copy_then": Text(
        "Leave while it runs; this session is among the recent ones. When it has run, attach it here with {key}.",
        "运行期间可以离开，本会话在最近的会话中。运行后在此按 {key} 附上。",
    ),
    "lacks": Text(
        "It is not this experiment, so it decides nothing: attach another run, or answer by hand.",
        "它不是该实验，因此不作结论：请附上另一个运行，或手动回答。",
    ),
    "elsewhere": Text("you look ahead; the walk stands at {node}", "正在预览；走查位于 {node}"),
    "unwalked": Text(
        "the way to it still has open checks; this proof stands by itself", "通往此处的检查尚未完成，但该证据自身成立"
    ),
    # recommended action
    "do_accept": Text("Accept {answer}", "接受 {answer}"),
    "do_wait": Text(
        "{count} probes running; {key} cancels, a number answers by hand",
        "{count} 个探针运行中；{key} 取消，数字键手动回答",
    ),
    "do_earlier": Text("Answer {answer} again", "再次回答 {answer}"),
    "do_attach": Text("Attach the new run", "附上新的运行"),
    "do_change": Text("Write the changed copy of the launch script", "写出修改后的启动脚本副本"),
    "do_add": Text("Add evidence: {slot}", "添加证据：{slot}"),
    "do_answer": Text("Choose an answer", "选择答案"),
    "do_ask": Text("Ask the probes", "询问探针"),
    "do_copy": Text("Copy the first command", "复制第一条命令"),
    "do_export": Text("Export the ticket", "导出工单"),
    "do_return": Text("Return to {node}", "返回 {node}"),
    "do_back": Text("Go back to {node}", "回退到 {node}"),
    "do_start": Text("Choose another flow", "选择另一个流程"),
    # evidence view
    "no_file": Text("no evidence chosen; {key} opens what proves a finding", "未选择证据；按 {key} 打开证明"),
    "opening": Text("opening {path}", "正在打开 {path}"),
    "slow_disk": Text("still opening; the disk is slow, the rest works", "仍在打开；磁盘较慢，其余功能可用"),
    "file_binary": Text(
        "a binary file: no lines to show. What was found in it:", "二进制文件，没有可显示的行。其中发现："
    ),
    "file_folder": Text("a folder:", "文件夹："),
    "file_missing": Text("not there any more: {why}", "文件已不存在：{why}"),
    "file_url": Text("an address, not a file", "这是网络地址，不是文件"),
    "file_short": Text(
        "shorter than the citation says; it was truncated or replaced", "文件比引用位置短：已被截断或替换"
    ),
    "file_changed": Text("the cited line reads differently now", "被引用的行现已不同"),
    "no_end": Text("the end of a compressed file is not known; scroll on", "压缩文件的末尾未知，请继续滚动"),
    "line": Text("line {n}", "第 {n} 行"),
    "byte": Text("byte {n}", "字节 {n}"),
    # dialogs
    "note_title": Text("Note", "备注"),
    "note_hint": Text("Enter keeps it, Esc drops it", "Enter 保存，Esc 放弃"),
    "export_title": Text("Export the ticket as", "导出工单为"),
    "export_hint": Text("secrets, users, hosts and home paths are replaced", "密钥、用户名、主机名和主目录会被替换"),
    "exporting": Text("writing", "正在写入"),
    "exported": Text("written to", "已写入"),
    "not_exported": Text("nothing was written", "没有写入任何内容"),
    "hide_it": Text("hide {shown} everywhere in the ticket, and write it", "在整个工单中隐藏 {shown}，然后写出"),
    "hide_not": Text("leave; the evidence screen takes an item out with {key}", "离开；可在证据列表按 {key} 移除该项"),
    "drop_title": Text("Take {path} out of the evidence?", "将 {path} 移出证据？"),
    "drop_hint": Text(
        "the file itself stays; what cites it is asked again", "文件本身不受影响；引用它的检查会重新询问"
    ),
    "drop_yes": Text("take it out", "移除"),
    "drop_no": Text("keep it", "保留"),
    "no_item": Text("choose an item of the evidence first", "请先选择一项证据"),
    "answer_title": Text("Answer by hand", "手动回答"),
    "slot_title": Text("Which kind of evidence?", "哪一类证据？"),
    "path_title": Text("Path for {slot}", "{slot} 的路径"),
    "path_hint": Text(
        "file, folder or address; Enter takes it, Esc drops it", "文件、文件夹或地址；Enter 确定，Esc 放弃"
    ),
    "run_title": Text("Folder of the new run", "新运行所在的文件夹"),
    "help_title": Text("Keys", "按键"),
    "too_small": Text(
        "This needs {w} x {h} cells; the terminal has {have_w} x {have_h}.",
        "需要 {w} x {h}，当前终端为 {have_w} x {have_h}。",
    ),
    # browse screen
    "opening_page": Text("opening, {n} s; {key} stops", "正在打开，{n} 秒；按 {key} 停止"),
    "rows_all": Text("{n} rows", "{n} 行"),
    "rows_some": Text("{n} of {all} rows", "{all} 行中的 {n} 行"),
    "reading_on": Text("reading on, {share} done", "仍在读取，已完成 {share}"),
    "filter_hint": Text("{example} or words; Enter keeps it, Esc drops it", "{example} 或词语；Enter 保留，Esc 取消"),
    "jumps": Text("{n} disagreements of {least} {unit} or more", "{n} 处分歧，相差不小于 {least} {unit}"),
    "first_jump": Text("first at {n}; {key} goes there", "首处在 {n}；按 {key} 前往"),
    "no_jumps": Text("nowhere {least} {unit} apart", "没有相差 {least} {unit} 之处"),
    "no_jump": Text("no further place that way", "该方向没有更多分歧"),
    "jump_list": Text("Disagreements", "分歧"),
    "none_here": Text("none", "无"),
    "fields": Text("Fields", "字段"),
    "masked": Text("does not count", "不计入"),
    "not_compared": Text("one side is not known", "一侧未知"),
    "browse_title": Text("What to browse?", "浏览什么？"),
    "nothing_to_browse": Text("nothing to browse: it needs {slots}", "没有可浏览的内容：需要 {slots}"),
    "no_browser": Text("no package here brings a browser", "没有软件包提供浏览器"),
    # messages
    "saving": Text("saving", "保存中"),
    "not_saved": Text("NOT SAVED: {why}", "未保存：{why}"),
    "copied": Text(
        "sent to the terminal's clipboard (if it allows that); also in {path}",
        "已发送到终端剪贴板（若终端允许）；同时写入 {path}",
    ),
    "copied_only": Text("sent to the terminal's clipboard (if it allows that)", "已发送到终端剪贴板（若终端允许）"),
    "nothing_to_copy": Text("there is nothing to copy here", "这里没有可复制的内容"),
    "not_yet": Text("answer the checks before it first", "请先回答之前的检查"),
    "first_node": Text("this is the first node", "这是第一个节点"),
    "no_answer": Text("this node has no such answer", "该节点没有这个答案"),
    "no_experiment": Text("this node is no experiment", "该节点不是实验"),
    "no_citation": Text("no evidence is cited here", "这里没有引用证据"),
    "not_opened": Text("the session stays closed: {why}", "会话未打开：{why}"),
    "failed": Text("that did not work: {why}", "操作失败：{why}"),
}

ONE = {
    "do_wait": "{count} probe running; {key} cancels, a number answers by hand",
    "rows_all": "{n} row",
    "jumps": "{n} disagreement of {least} {unit} or more",
}
"""English words of WORDS where what they count (`n` or `count`) is one; Chinese has no such form."""


def word(key: str, language: str, /, **values: object) -> str:
    """Return the UI words of `key` in `language`, with `values` filled in.

    Raises KeyError for a key that is not there.
    """
    single = key in ONE and language != "zh" and str(values.get("n", values.get("count"))) == "1"
    said = ONE[key] if single else WORDS[key].say(language)
    return said.format(**values) if values else said
