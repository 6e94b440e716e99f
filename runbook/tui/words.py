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
    "file_absent": Text(
        "not in the bundle, which holds what is cited. What was found in it:",
        "归档中没有该文件，归档只含被引用的内容。其中发现：",
    ),
    "hole": Text("{n} bytes not in the bundle", "{n} 字节未收入归档"),
    "hole_rest": Text("the rest is not in the bundle", "其余部分未收入归档"),
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
    "note_hint": Text(
        "Enter keeps it, \\ and Enter begin a new line, Esc drops it", "Enter 保存，\\ 加 Enter 换行，Esc 放弃"
    ),
    "export_title": Text("Export the ticket as", "导出工单为"),
    "export_next": Text("next, what will leave is shown line by line", "接下来逐行显示将要发出的内容"),
    "exporting": Text("writing", "正在写入"),
    "exported": Text("The ticket is written", "工单已写出"),
    "beside": Text("beside it: {names}", "同目录还有：{names}"),
    "written_hint": Text("Enter or Esc goes back", "按 Enter 或 Esc 返回"),
    "not_exported": Text("Nothing was written", "没有写入任何内容"),
    "refused_hint": Text("the cursor stands at the line", "光标位于该行"),
    "hide_it": Text("hide {shown} everywhere in the ticket, and write it", "在整个工单中隐藏 {shown}，然后写出"),
    "show_it": Text(
        "the ticket's own words hold {shown}: hide it no longer, and write it",
        "工单自身的文字含有 {shown}：不再隐藏，然后写出",
    ),
    "hide_not": Text("back to the preview, where {key} leaves the line out", "返回预览，可在此按 {key} 略去该行"),
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
    # preview of what leaves
    "preview": Text("what will leave", "将要发出的内容"),
    "preparing": Text("redacting, so that it can be shown", "正在脱敏，稍后显示"),
    "preview_lines": Text("{n} different lines", "{n} 行不同的内容"),
    "preview_hidden": Text(
        "{n} with something hidden, {before}so{after}", "{n} 行有隐藏内容，以{before}代号{after}标出"
    ),
    "preview_out": Text("{sign} {n} left out", "{sign} 略去 {n} 行"),
    "preview_only": Text("without the tool's own words", "不含工具自身的文字"),
    "from_evidence": Text("from evidence", "来自证据"),
    "from_person": Text("from a person", "来自人"),
    "from_tool": Text("the tool's own words", "工具自身的文字"),
    "in_places": Text("in {n} places", "出现于 {n} 处"),
    "left_out": Text("left out", "已略去"),
    "hides": Text("hides {what}", "已隐藏{what}"),
    "no_hidden": Text("nothing is hidden in any line", "没有任何隐藏内容"),
    "not_found": Text("no line holds that", "没有这样的行"),
    "search_title": Text("Search what will leave", "在将要发出的内容中查找"),
    "search_hint": Text(
        "{next} and {back} go on; upper and lower case are the same", "{next} 与 {back} 继续；不区分大小写"
    ),
    "hide_title": Text("Hide a word everywhere in this session's tickets", "在本会话的所有工单中隐藏一个词"),
    "hide_hint": Text(
        "Enter hides it, or shows it again when it was hidden here; Esc does neither",
        "Enter 隐藏；若此前在此隐藏则恢复显示；Esc 放弃",
    ),
    "format_title": Text("Format of the ticket", "工单格式"),
    "offered": Text("offered to the terminal's clipboard, if it takes it", "已提供给终端剪贴板（若终端接受）"),
    "offered_not": Text(
        "only the file has it: too long for the terminal's clipboard, no text, or no clipboard here",
        "仅文件含有内容：超出终端剪贴板容量、不是文本，或此处没有剪贴板",
    ),
    "send_to": Text("Send the ticket to", "发送工单到"),
    "send_to_hint": Text(
        "github:owner/repo, gitlab:group/project, jira+https://host/PROJECT, roundup+https://host/tracker; "
        "#12 after it comments on a ticket",
        "github:owner/repo、gitlab:group/project、jira+https://host/PROJECT、roundup+https://host/tracker；"
        "末尾加 #12 则评论该工单",
    ),
    "send_title": Text("Nothing was sent yet. This would be sent:", "尚未发送。将发送以下内容："),
    "send_hint": Text("Space and PgUp scroll the text", "Space 与 PgUp 滚动文本"),
    "send_yes": Text("send it to {to}", "发送到 {to}"),
    "send_not": Text("back to the preview; nothing is sent", "返回预览，不发送"),
    "send_reader": Text("somebody who only reads the session cannot send it", "只读会话的人不能发送"),
    "sending": Text("sending", "正在发送"),
    "sent": Text("The ticket is posted", "工单已发出"),
    "sent_not": Text("It was not sent", "未发送"),
    "in_outbox": Text(
        "it waits in the outbox: slime-runbook outbox send {id}", "已存入发件箱：slime-runbook outbox send {id}"
    ),
    "bundle_more": Text("with the flows as they are", "流程原样附带"),
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
    # bundle
    "bundle": Text("bundle", "归档"),
    "bundle_note": Text("a bundle: what you answer or note here is not kept", "这是归档：此处的回答与备注不会保存"),
    "not_here": Text(
        "not in a bundle: it holds what was cited, not the evidence; do it where the run is",
        "归档中无法进行：归档只含被引用的内容，不含证据本身；请在运行所在处操作",
    ),
    "gone": Text("(Not in a bundle.)", "（归档中不可用。）"),
    "no_bulk": Text(
        "nothing to browse: a bundle holds no bulk data, only what was cited",
        "没有可浏览的内容：归档不含大块数据，只含被引用的内容",
    ),
    # hand-over
    "read_only": Text("read only: held by {who} since {since} on {host}", "只读：{who} 自 {since} 起持有（{host}）"),
    "holder": Text("{who} on {host} (since {since})", "{who}（{host}，自 {since} 起）"),
    "read_only_free": Text("read only: nobody holds it, {key} goes on with it", "只读：无人持有，按 {key} 继续"),
    "read_only_soon": Text("read only", "只读"),
    "reader_refused": Text(
        "not while you only read: the session is held by {who}; {key} takes it over",
        "只读时不可：会话由 {who} 持有；按 {key} 接管",
    ),
    "nobody": Text("nobody", "无人"),
    "somebody": Text("somebody", "某人"),
    "yours": Text("the session is yours already", "会话已由您持有"),
    "taken": Text("you hold the session now", "现在由您持有该会话"),
    "taken_from_you": Text(
        "{who} took this session over; you read it now. What was saved is kept.",
        "{who} 接管了此会话；您现为只读。已保存的内容均保留。",
    ),
    "unwritten": Text("NOT WRITTEN, the session is not yours any more: {what}", "未写入（会话已不属于您）：{what}"),
    "unwritten_title": Text("Not written", "未写入"),
    "take_over_title": Text("Take this session over from {who}?", "从 {who} 接管此会话？"),
    "take_over_hint": Text(
        "Last change {ago} ago ({time}). They read it from then on; what they have not saved by then is not written.",
        "最后更改于 {ago} 前（{time}）。对方随后变为只读；届时尚未保存的内容不会写入。",
    ),
    "take_over_no": Text("keep reading", "继续只读"),
    "take_over_yes": Text("take it over", "接管"),
    "where_title": Text("Where we are", "当前进展"),
    "where_hint": Text("Esc closes", "Esc 关闭"),
    "no_notes": Text("no notes yet; {key} writes one", "尚无备注；按 {key} 填写"),
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
