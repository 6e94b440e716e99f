"""The one registry of everything a key can do. Footer, `?` help, palette and docs/keys.md are all drawn from it.

Invariants: an action is `action_<name>` on the class that serves its scope, or on the app; no two actions of scopes
that are active together share a key, except that a pane's key goes before its screen's; every action has a key that
is no ctrl-chord. ctrl+h and ctrl+j are never used: terminals send backspace and Enter for them.
"""

from __future__ import annotations

from textual.binding import Binding, BindingType

from runbook.text import Text
from runbook.tui.action import Action
from runbook.tui.action import action as _a
from runbook.tui.browse_actions import BROWSE_ACTIONS, BROWSE_SCOPES
from runbook.tui.preview_actions import PREVIEW_ACTIONS, PREVIEW_SCOPES

SCOPES = {
    "app": Text("Everywhere", "任何位置"),
    "reader": Text("While somebody else holds the session", "他人持有会话时"),
    "start": Text("Start screen", "开始界面"),
    "walk": Text("Walk screen", "走查界面"),
    "rows": Text("Lists and the tree", "列表与树"),
    "tree": Text("Tree", "树"),
    "node": Text("Node", "节点"),
    "lines": Text("Evidence", "证据"),
    **BROWSE_SCOPES,
    **PREVIEW_SCOPES,
}

ACTIONS = (
    _a(
        "app",
        "up",
        "escape",
        ("up", "上一级"),
        ("One level up; it never quits.", "返回上一级，不会退出。"),
        palette=False,
    ),
    _a(
        "app",
        "help",
        "question_mark",
        ("help", "帮助"),
        ("All keys of what has focus.", "显示当前焦点的所有按键。"),
        foot=True,
    ),
    _a(
        "app", "quit", "q", ("quit", "退出"), ("Leave; everything is saved already.", "退出；一切均已保存。"), foot=True
    ),
    _a(
        "app",
        "palette",
        "colon ctrl+p",
        ("palette", "命令"),
        ("Search all actions by name.", "按名称搜索所有操作。"),
        palette=False,
    ),
    _a("app", "language", "L", ("中文", "English"), ("Switch between English and Chinese.", "在中文与英文之间切换。")),
    _a(
        "app",
        "theme",
        "T",
        ("light/dark", "明/暗"),
        ("Switch between the dark and the light colours.", "在深色与浅色之间切换。"),
    ),
    _a(
        "app",
        "whereabouts",
        "i",
        ("where we are", "进展"),
        (
            "Where the session stands in five lines, who has it, and all notes.",
            "五行说明会话进展、由谁持有，以及全部备注。",
        ),
    ),
    _a(
        "reader",
        "app.take_over",
        "t",
        ("take over", "接管"),
        ("Take the session over and go on with it; you are asked first.", "接管会话并继续；会先询问。"),
        foot=True,
    ),
    _a("app", "next_pane", "tab", ("pane", "窗格"), ("Next pane.", "下一个窗格。"), palette=False),
    _a("app", "previous_pane", "shift+tab", ("pane", "窗格"), ("Previous pane.", "上一个窗格。"), palette=False),
    _a(
        "start",
        "open",
        "enter",
        ("open", "打开"),
        ("Go to the cause's node, the flow, the evidence or the session.", "前往原因所在节点、流程、证据或会话。"),
        foot=True,
        palette=False,
    ),
    _a(
        "start",
        "app.add",
        "a",
        ("add evidence", "添加证据"),
        ("Add a file, a folder or an address to the evidence.", "向证据中添加文件、文件夹或地址。"),
        foot=True,
        outside=True,
    ),
    _a(
        "start",
        "app.ask_all",
        "r",
        ("ask again", "重新询问"),
        ("Ask every probe again.", "重新询问所有探针。"),
        foot=True,
        outside=True,
    ),
    _a(
        "start",
        "drop",
        "d",
        ("take out", "移除"),
        (
            "Take the item out of the evidence; the file itself stays.",
            "将该项移出证据；文件本身不受影响。",
        ),
        outside=True,
    ),
    _a("start", "app.note", "n", ("note", "备注"), ("Write a note for the whole session.", "为整个会话写备注。")),
    _a(
        "start",
        "app.browse",
        "v",
        ("browse", "浏览"),
        ("Look into the bulk data of the evidence, page by page.", "逐页浏览证据中的大块数据。"),
        foot=True,
        outside=True,
    ),
    _a("start", "app.export", "x", ("export", "导出"), ("Write the ticket.", "写出工单。"), foot=True),
    _a(
        "walk",
        "accept",
        "enter",
        ("do it", "执行"),
        ("Do what the action line recommends.", "执行操作行所建议的操作。"),
        foot=True,
    ),
    _a(
        "walk",
        "answer",
        "a",
        ("answer", "回答"),
        ("Answer by hand from the list; 1 to 9 answer directly.", "从列表手动回答；数字键 1–9 直接回答。"),
        foot=True,
    ),
    _a(
        "walk",
        "back",
        "b backspace",
        ("back", "后退"),
        (
            "Back to the node before; answers after it become stale, not lost.",
            "回到上一节点；其后的回答标为失效但保留。",
        ),
        foot=True,
    ),
    _a(
        "walk",
        "proof",
        "e",
        ("evidence", "证据"),
        ("Open the evidence at the cited line.", "在引用行处打开证据。"),
        foot=True,
    ),
    _a(
        "walk",
        "next_proof",
        "right_square_bracket",
        ("next citation", "下一引用"),
        ("Next citation of this node.", "本节点的下一条引用。"),
    ),
    _a(
        "walk",
        "previous_proof",
        "left_square_bracket",
        ("previous citation", "上一引用"),
        ("Previous citation of this node.", "本节点的上一条引用。"),
    ),
    _a("walk", "note", "n", ("note", "备注"), ("Write a note at this node.", "在该节点写备注。"), foot=True),
    _a(
        "walk",
        "copy",
        "y",
        ("copy", "复制"),
        (
            "Copy the command: to the terminal's clipboard and to a named file.",
            "复制命令：到终端剪贴板和一个具名文件。",
        ),
        foot=True,
    ),
    _a(
        "walk",
        "ask",
        "r",
        ("ask again", "重新询问"),
        ("Ask this node's probes again.", "重新询问本节点的探针。"),
        outside=True,
    ),
    _a(
        "walk",
        "cancel",
        "s",
        ("stop", "停止"),
        ("Cancel this node's running probes.", "取消本节点正在运行的探针。"),
        outside=True,
    ),
    _a(
        "walk",
        "change",
        "c",
        ("changed copy", "修改副本"),
        (
            "At an experiment: write the changed copy of the launch script into the session.",
            "在实验节点：将修改后的启动脚本副本写入会话。",
        ),
        foot=True,
        outside=True,
    ),
    _a(
        "walk",
        "add",
        "plus",
        ("add evidence", "添加证据"),
        ("Add evidence that this node lacks.", "补充本节点缺少的证据。"),
        outside=True,
    ),
    _a(
        "walk",
        "attach",
        "t",
        ("attach run", "附上运行"),
        ("Attach the new run to this experiment.", "将新的运行附到该实验。"),
        outside=True,
    ),
    _a(
        "walk",
        "app.browse",
        "v",
        ("browse", "浏览"),
        ("Look into the bulk data of the run at this node.", "逐页浏览该节点所用运行的大块数据。"),
        outside=True,
    ),
    _a("walk", "export", "x", ("export", "导出"), ("Write the ticket.", "写出工单。"), foot=True),
    _a("rows", "down", "j down", ("down", "下"), ("Next row.", "下一行。"), palette=False),
    _a("rows", "up_row", "k up", ("up", "上"), ("Previous row.", "上一行。"), palette=False),
    _a("rows", "page_down", "pagedown space", ("page down", "下一页"), ("One page down.", "下一页。"), palette=False),
    _a("rows", "page_up", "pageup", ("page up", "上一页"), ("One page up.", "上一页。"), palette=False),
    _a("rows", "first", "g home", ("first", "首行"), ("First row.", "第一行。"), palette=False),
    _a("rows", "last", "G end", ("last", "末行"), ("Last row.", "最后一行。"), palette=False),
    _a("rows", "choose", "enter", ("choose", "选择"), ("Choose the row.", "选择该行。"), palette=False),
    _a(
        "tree",
        "fold",
        "h left",
        ("fold", "折叠"),
        ("Fold the branch, or go to its parent.", "折叠分支，或移到父节点。"),
        palette=False,
    ),
    _a("tree", "unfold", "l right", ("unfold", "展开"), ("Unfold the branch.", "展开分支。"), palette=False),
    _a(
        "tree",
        "here",
        "full_stop",
        ("to the walk", "回到走查"),
        ("Back to the node at which the walk stands.", "回到走查所在节点。"),
    ),
    _a("node", "scroll_down", "j down", ("down", "下"), ("Scroll down.", "向下滚动。"), palette=False),
    _a("node", "scroll_up", "k up", ("up", "上"), ("Scroll up.", "向上滚动。"), palette=False),
    _a("node", "page_down", "pagedown space", ("page down", "下一页"), ("One page down.", "下一页。"), palette=False),
    _a("node", "page_up", "pageup", ("page up", "上一页"), ("One page up.", "上一页。"), palette=False),
    _a("node", "scroll_home", "g home", ("top", "顶部"), ("To the top.", "到顶部。"), palette=False),
    _a("node", "scroll_end", "G end", ("bottom", "底部"), ("To the bottom.", "到底部。"), palette=False),
    _a("lines", "shift_left", "h left", ("left", "左"), ("Shift long lines left.", "长行左移。"), palette=False),
    _a("lines", "shift_right", "l right", ("right", "右"), ("Shift long lines right.", "长行右移。"), palette=False),
    _a(
        "lines",
        "cited",
        "full_stop",
        ("cited line", "引用行"),
        ("Back to the cited line.", "回到被引用的行。"),
        foot=True,
    ),
    *BROWSE_ACTIONS,
    *PREVIEW_ACTIONS,
)


def bindings(scope: str) -> list[BindingType]:
    """Return the Textual bindings of a scope."""
    return [
        Binding(",".join(action.keys), action.name, action.title.en, show=False)
        for action in ACTIONS
        if action.scope == scope
    ]


NAMES = {
    "escape": "Esc",
    "enter": "Enter",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "question_mark": "?",
    "colon": ":",
    "plus": "+",
    "full_stop": ".",
    "space": "Space",
    "backspace": "Backspace",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "left_square_bracket": "[",
    "slash": "/",
    "right_square_bracket": "]",
    "ctrl+p": "Ctrl+P",
}


def show_key(key: str) -> str:
    """Return a key's name as it stands on the keyboard."""
    return NAMES.get(key, key)


def key_of(scope: str, name: str) -> str:
    """Return the first key of an action as it stands on the keyboard. Raises KeyError when there is none."""
    for action in ACTIONS:
        if (action.scope, action.name) == (scope, name):
            return show_key(action.keys[0])
    raise KeyError(f"{scope}.{name}")


def of_scopes(*scopes: str) -> list[Action]:
    """Return the actions of some scopes, in the order of the scopes."""
    return [action for scope in scopes for action in ACTIONS if action.scope == scope]


def key_table() -> str:
    """Return docs/keys.md: every key in both languages, by scope."""
    lines = [
        "# Keys of the terminal UI",
        "",
        "Generated by `make docs` from the one registry of actions; a test holds it equal to that.",
        "",
    ]
    for scope, title in SCOPES.items():
        actions = of_scopes(scope)
        if not actions:
            continue
        lines += [f"## {title.en} · {title.zh}", "", "| key | what it does | 作用 |", "|---|---|---|"]
        for action in actions:
            keys = " ".join(f"`{show_key(key)}`" for key in action.keys)
            lines.append(f"| {keys} | {action.help.en} | {action.help.zh} |")
        if scope == "walk":
            lines.append(
                "| `1` … `9` | Give that answer; at a leaf, copy that command. | 给出该答案；在叶节点则复制该命令。 |"
            )
        lines.append("")
    return "\n".join(lines)
