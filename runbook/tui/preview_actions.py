"""What keys do in the preview of what leaves: the part of the registry that serves that screen."""

from __future__ import annotations

from runbook.text import Text
from runbook.tui.action import action as _a

PREVIEW_SCOPES = {"preview": Text("Preview of the ticket", "工单预览")}

PREVIEW_ACTIONS = (
    _a("preview", "write", "enter", ("write", "写出"), ("Write the ticket.", "写出工单。"), foot=True),
    _a(
        "preview",
        "drop",
        "space",
        ("leave out", "略去"),
        (
            "Leave the line out, in every place and format; again takes it back.",
            "在所有位置与格式中略去该行；再按一次恢复。",
        ),
        foot=True,
    ),
    _a(
        "preview",
        "send",
        "s",
        ("send", "发送"),
        (
            "Send it to a tracker: an address, then what would go, then a second question.",
            "发送到工单系统：先输入地址，再显示将要发送的内容并再次确认。",
        ),
        foot=True,
    ),
    _a(
        "preview",
        "hide",
        "h",
        ("hide word", "隐藏词"),
        ("Hide a word everywhere, under a pseudonym; again shows it.", "在各处以代号隐藏一个词；再次输入则恢复。"),
        foot=True,
    ),
    _a(
        "preview",
        "next_hidden",
        "n",
        ("hidden", "隐藏处"),
        ("Next line in which something is hidden.", "下一个有隐藏内容的行。"),
        foot=True,
    ),
    _a(
        "preview",
        "previous_hidden",
        "N",
        ("hidden before", "上一隐藏处"),
        ("The one before.", "上一个有隐藏内容的行。"),
    ),
    _a(
        "preview",
        "search",
        "slash",
        ("search", "查找"),
        ("Search in lines and places.", "在各行及其位置中查找。"),
        foot=True,
    ),
    _a(
        "preview",
        "next_match",
        "right_square_bracket",
        ("next match", "下一匹配"),
        ("Next line with what was searched for.", "下一个匹配的行。"),
    ),
    _a(
        "preview",
        "previous_match",
        "left_square_bracket",
        ("match before", "上一匹配"),
        ("The one before.", "上一个匹配的行。"),
    ),
    _a(
        "preview",
        "only",
        "o",
        ("only evidence", "仅证据"),
        (
            "Show only what comes from evidence and people, or all; what leaves is the same.",
            "仅显示来自证据和人的内容，或显示全部；发出的内容不变。",
        ),
        foot=True,
    ),
    _a("preview", "format", "f", ("format", "格式"), ("Choose another format.", "选择其他格式。"), foot=True),
    _a(
        "preview",
        "copy",
        "y",
        ("copy", "复制"),
        (
            "Write the ticket, and offer it to the terminal's clipboard as well.",
            "写出工单，并提供给终端剪贴板。",
        ),
        foot=True,
    ),
)
