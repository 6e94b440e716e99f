"""The ticket's own words, in English and Chinese: headings, column names and the sentences between them."""

from __future__ import annotations

from runbook.text import Text

WORDS: dict[str, Text] = {
    "title.reached": Text(
        "{title} (reached by answers, not confirmed by evidence)", "{title}（由回答得出，证据尚未确认）"
    ),
    "title.open": Text(
        "No cause confirmed yet: {possible} possible, {unknown} questions open",
        "尚无确认的原因：{possible} 个可能，{unknown} 个问题待定",
    ),
    "title.clear": Text("Nothing wrong was found", "没有发现问题"),
    "next.fix": Text("Fix: {title}", "修复：{title}"),
    "next.reached": Text("Fix what the answers point to: {title}", "修复回答所指向的原因：{title}"),
    "next.see": Text("See {flow}/{node} in the flow.", "见流程 {flow}/{node}。"),
    "next.none": Text("Nothing is left to do: every question was answered.", "没有待办事项：所有问题都已回答。"),
    "next.experiment": Text(
        "Run the job again with this change and attach the new run.", "做此改动后重新运行，并附上新的运行。"
    ),
    "moment.began": Text("The diagnosis began.", "诊断开始。"),
    "moment.changed": Text("Last change of the session.", "会话最后一次变更。"),
    "moment.note": Text("Note: {words}", "备注：{words}"),
    "problem": Text("Problem", "问题"),
    "standing": Text("Standing", "结论状态"),
    "evidence": Text("Evidence lines", "证据"),
    "checked": Text("What was checked", "检查了什么"),
    "ruled_out": Text("Ruled out", "已排除"),
    "unknown": Text("Unknown, and what would settle it", "未知，以及如何确定"),
    "next": Text("Next action", "下一步"),
    "environment": Text("Environment", "环境"),
    "timeline": Text("Timeline", "时间线"),
    "answers": Text("Who answered what", "谁回答了什么"),
    "redaction": Text("Redaction report", "脱敏报告"),
    "run": Text("Run", "运行"),
    "symptom": Text("Symptom", "症状"),
    "confirmed": Text("confirmed", "已确认"),
    "possible": Text("possible", "可能"),
    "chain": Text("How the evidence leads there", "证据如何得出此结论"),
    "proven": Text("Proven by", "证据"),
    "fix": Text("Fix", "修复"),
    "verify": Text("Verify with", "验证"),
    "consequences": Text("It explains", "它解释了"),
    "also_confirmed": Text("Also confirmed", "另外确认的原因"),
    "by.evidence": Text("evidence", "证据"),
    "by.person": Text("person", "人"),
    "by.probe": Text("probe", "探针"),
    "by.open": Text("nobody answered this", "无人回答"),
    "counts": Text(
        "{confirmed} confirmed, {possible} possible, {ruled_out} ruled out; {unknown} questions open.",
        "已确认 {confirmed}，可能 {possible}，已排除 {ruled_out}；{unknown} 个问题待定。",
    ),
    "asked": Text("Answered by evidence", "证据已回答的流程"),
    "clear": Text("Found in order", "确认正常"),
    "col.rank": Text("#", "#"),
    "col.cause": Text("Cause", "原因"),
    "col.standing": Text("Standing", "状态"),
    "col.where": Text("Where", "位置"),
    "col.verdict": Text("Verdict", "结论"),
    "col.check": Text("Check", "检查"),
    "col.answer": Text("Answer", "答案"),
    "col.found": Text("What it found", "发现"),
    "col.seconds": Text("s", "秒"),
    "col.name": Text("Name", "名称"),
    "col.value": Text("Value", "值"),
    "col.threshold": Text("Threshold", "阈值"),
    "col.source": Text("Source of the threshold", "阈值来源"),
    "col.by": Text("Closed by", "依据"),
    "col.question": Text("Question", "问题"),
    "col.why": Text("Why it is open", "未定原因"),
    "col.settle": Text("What would settle it", "如何确定"),
    "col.slot": Text("Slot", "证据槽"),
    "col.path": Text("Path", "路径"),
    "col.reason": Text("Why it was taken", "采纳原因"),
    "col.time": Text("Time (UTC)", "时间（UTC）"),
    "col.what": Text("What happened", "事件"),
    "col.who": Text("Who", "谁"),
    "col.kind": Text("Kind", "种类"),
    "col.values": Text("Different values", "不同的值"),
    "col.count": Text("Places", "处数"),
    "col.parts": Text("Where", "所在部分"),
    "missing": Text("MISSING", "缺失"),
    "stale": Text("stale", "已过时"),
    "overrules": Text("overrules the probes’ “{answer}”", "否决了探针的“{answer}”"),
    "times": Text("{count} such lines", "共 {count} 处"),
    "experiment": Text("experiment", "实验"),
    "nothing.evidence": Text("No finding says that something is wrong.", "没有发现异常的证据。"),
    "nothing.checked": Text("No probe was run.", "没有运行任何探针。"),
    "nothing.ruled_out": Text("Nothing is ruled out yet.", "尚未排除任何原因。"),
    "nothing.unknown": Text("Nothing is open.", "没有未定的问题。"),
    "nothing.answers": Text(
        "Nobody walked a flow: every answer above is a probe’s.", "没有人工走查：以上答案均来自探针。"
    ),
    "nothing.redaction": Text("Nothing had to be hidden.", "没有需要隐藏的内容。"),
    "redaction.intro": Text(
        "Hidden under pseudonyms that are the same throughout this ticket; the key stays with the session.",
        "以下内容以代号隐藏，代号在本工单内一致；对照表保存在会话中。",
    ),
    "measured": Text("Measurements", "测量值"),
    "silent": Text("Not applicable here", "此处不适用"),
    "session": Text("Session", "会话"),
    "flows": Text("Flows", "流程"),
    "notes": Text("Notes", "备注"),
    "shortened": Text(
        "Shortened to stay under {limit} characters; left out: {parts}. The JSON export of the session has everything.",
        "为不超过 {limit} 个字符而缩短；省略：{parts}。会话的 JSON 导出包含全部内容。",
    ),
    "left_out": Text("{count} of {total} in “{part}”", "“{part}”中的 {count}/{total} 项"),
    "more": Text("… and {count} more, left out here", "… 另有 {count} 项，此处省略"),
    "hidden.secret": Text("keys and tokens", "密钥与令牌"),
    "hidden.mail": Text("e-mail addresses", "邮箱地址"),
    "hidden.user": Text("user names", "用户名"),
    "hidden.host": Text("host names", "主机名"),
    "hidden.ip": Text("IP addresses", "IP 地址"),
    "hidden.hidden": Text("words hidden on request", "按要求隐藏的词"),
}
"""Key to words; placeholders in braces are filled in by name."""


def say(key: str, language: str, **values: object) -> str:
    """Return the words for `key` in `language`, its placeholders filled."""
    return WORDS[key].say(language).format(**values)
