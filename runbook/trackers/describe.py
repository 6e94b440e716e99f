"""Says in words what sending would do: the dry run. It reads no token, opens nothing and asks no keyring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runbook.text import Text, sanitise, visible
from runbook.trackers.layout import size_of
from runbook.trackers.model import Attaches
from runbook.trackers.outbox import Step
from runbook.trackers.send import Plan, text_of
from runbook.trackers.tokens import Credential, is_set

_WORDS: dict[str, Text] = {
    "dry": Text("Nothing was sent. With --yes this is sent:", "尚未发送。加上 --yes 将发送以下内容："),
    "to": Text("to", "目标"),
    "as": Text("as", "身份"),
    "title": Text("title", "标题"),
    "labels": Text("labels", "标签"),
    "body": Text("body", "正文"),
    "comments": Text("comments", "评论"),
    "files": Text("files", "附件"),
    "kept": Text("kept here", "留在本地"),
    "hidden": Text("hidden", "已隐藏"),
    "mark": Text("mark", "标记"),
    "new": Text("a new ticket in {place}", "{place} 中的新工单"),
    "comment": Text("a comment on {item} in {place}", "{place} 中 {item} 的评论"),
    "owner": Text(
        "whoever {names} belongs to; only the tracker knows who that is", "{names} 的所有者；只有工单系统知道是谁"
    ),
    "set": Text("{name} (set)", "{name}（已设置）"),
    "unset": Text("{name} (not set; the keyring is asked then)", "{name}（未设置；届时查询密钥环）"),
    "chars": Text("{count} characters, {format}", "{count} 个字符，{format}"),
    "first": Text("uploaded first, linked in the body", "先上传，正文中附链接"),
    "item": Text("added to the ticket", "添加到工单"),
    "too": Text("{tracker} does not take it, or only in too many pieces", "{tracker} 不接受，或需拆成过多部分"),
    "values": Text("{kind}: {values} different, in {count} lines", "{kind}：{values} 个不同的值，共 {count} 行"),
    "nothing": Text("nothing had to be hidden", "没有需要隐藏的内容"),
    "marks": Text(
        "the last line of every text; it is new each time, and by it the text is found again",
        "每段文本的最后一行；每次都是新的，用于再次找到该文本",
    ),
}


def describe(plan: Plan, environment: Mapping[str, str], language: str) -> Iterator[str]:
    """Yield the dry run of a plan line by line, safe to print: where to, as whom, what, and what was hidden."""

    def say(key: str, **values: object) -> str:
        return _WORDS[key].say(language).format(**values)

    content, address, kind = plan.entry.content, plan.address, plan.kind
    width = 12
    place = (
        f"{address.place or address.site} ({kind.title}{f', {address.site}' if address.site and address.place else ''})"
    )
    posts = [(number, step) for number, step in enumerate(content.steps) if step.action != "attach"]
    body, *further = posts
    yield say("dry")
    rows = [("to", say("comment", item=address.item, place=place) if address.item else say("new", place=place))]
    names = ", ".join(_credential(one, environment, language) for one in kind.needs(address))
    rows.append(("as", say("owner", names=names)))
    if content.title:
        rows.append(("title", content.title))
    if content.labels:
        rows.append(("labels", ", ".join(content.labels)))
    rows.append(("body", say("chars", count=f"{len(text_of(plan.entry, body[0])):,}", format=content.format)))
    rows += [
        ("comments", say("chars", count=f"{len(text_of(plan.entry, n)):,}", format=content.format)) for n, _ in further
    ]
    how = say("first" if kind.attaches is Attaches.FIRST else "item")
    rows += [("files", f"{file.name} ({file.media}, {size_of(file.content)}): {how}") for file in content.files]
    rows += [("kept", f"{file.name} ({size_of(file.content)}): {say('too', tracker=kind.title)}") for file in plan.kept]
    hidden = [say("values", kind=one.kind, values=one.values, count=one.count) for one in plan.hidden]
    rows += [("hidden", words) for words in hidden or [say("nothing")]]
    rows.append(("mark", say("marks")))
    for key, words in rows:
        label = say(key)
        yield f"  {label}{' ' * (width - len(label) - sum(ord(c) > 0x2E80 for c in label))}{sanitise(words)}"
    for number, step in posts:
        yield ""
        yield _heading(step, language)
        yield from visible(text_of(plan.entry, number)).splitlines()


def _credential(credential: Credential, environment: Mapping[str, str], language: str) -> str:
    name = is_set(credential, environment)
    return _WORDS["set" if name else "unset"].say(language).format(name=name or credential.names[0])


def _heading(step: Step, language: str) -> str:
    words = _WORDS["body" if step.action == "create" else "comments"].say(language)
    return f"----- {words} -----"
