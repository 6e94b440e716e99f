"""What keys do while browsing: the part of the registry that serves the browse screen."""

from __future__ import annotations

from runbook.text import Text
from runbook.tui.action import action as _a

BROWSE_SCOPES = {
    "browse": Text("Browsing", "浏览"),
    "sheet": Text("Browsing: table", "浏览：表格"),
    "reading": Text("Browsing: text", "浏览：文本"),
}

BROWSE_ACTIONS = (
    _a(
        "browse",
        "reload",
        "r",
        ("reload", "重新读取"),
        ("Read this page again from the evidence.", "从证据重新读取本页。"),
        foot=True,
    ),
    _a("sheet", "choose", "enter", ("open", "打开"), ("Open the row.", "打开该行。"), foot=True, palette=False),
    _a(
        "sheet",
        "filter",
        "slash",
        ("filter", "筛选"),
        (
            "Filter the rows: column>1, column=word, column~part; other words are searched for.",
            "筛选各行：列>1、列=词、列~部分；其他词按内容搜索。",
        ),
        foot=True,
    ),
    _a(
        "sheet",
        "order",
        "s",
        ("sort", "排序"),
        ("Sort by the underlined column; again turns the order round.", "按带下划线的列排序；再按一次反向。"),
        foot=True,
    ),
    _a("sheet", "column_left", "h left", ("column", "列"), ("Column to the left.", "左边的列。"), palette=False),
    _a(
        "sheet",
        "column_right",
        "l right",
        ("column", "列"),
        ("Column to the right; the plot above follows it.", "右边的列；上方的图随之改变。"),
        foot=True,
        palette=False,
    ),
    _a(
        "reading",
        "next_jump",
        "n",
        ("next", "下一处"),
        ("Next place at which the two sides disagree.", "下一处分歧。"),
        foot=True,
    ),
    _a("reading", "previous_jump", "N", ("previous", "上一处"), ("The place before.", "上一处分歧。"), foot=True),
    _a(
        "reading",
        "next_row",
        "right_square_bracket",
        ("next row", "下一行"),
        ("Open the next row of the table.", "打开表格的下一行。"),
        foot=True,
    ),
    _a(
        "reading",
        "previous_row",
        "left_square_bracket",
        ("row before", "上一行"),
        ("Open the row before.", "打开表格的上一行。"),
    ),
    _a("reading", "left", "h left", ("left", "左"), ("The piece before.", "前一个片段。"), palette=False),
    _a("reading", "right", "l right", ("right", "右"), ("The next piece.", "后一个片段。"), palette=False),
    _a("reading", "line_down", "j down", ("down", "下"), ("Next line.", "下一行。"), palette=False),
    _a("reading", "line_up", "k up", ("up", "上"), ("The line before.", "上一行。"), palette=False),
    _a(
        "reading", "page_down", "pagedown space", ("page down", "下一页"), ("One page down.", "下一页。"), palette=False
    ),
    _a("reading", "page_up", "pageup", ("page up", "上一页"), ("One page up.", "上一页。"), palette=False),
    _a("reading", "first", "g home", ("top", "开头"), ("To the begin of the text.", "到文本开头。"), palette=False),
    _a(
        "reading",
        "last",
        "G end",
        ("bottom", "末尾"),
        ("To the end of the text and the fields behind it.", "到文本末尾及其后的字段。"),
        palette=False,
    ),
)
