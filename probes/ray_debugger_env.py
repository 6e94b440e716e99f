"""Whether Ray's debugger is switched on, under the names and with the values that Ray reads.

Ray reads RAY_DEBUG_POST_MORTEM (ray/util/debugpy.py and rpdb.py, 2.49 and 2.60:
`os.environ.get("RAY_DEBUG_POST_MORTEM", "0") == "1"`); slime's guide writes RAY_DEBUG_POSTMORTEM, which occurs
nowhere in Ray. The variable has to reach the workers: through the runtime env, or from a `ray start` that comes
after the export. RAY_DEBUG chooses the debugger (rpdb.py): "1", the default, is the one for VS Code, "legacy" the
older `ray debug` console, which VS Code cannot attach to, and with any other value a breakpoint() passes in silence.
"""

from __future__ import annotations

from probes.readers.environment import Reach, exported, passed, reach
from probes.readers.launch_model import Job, Launch, Setting, cite_place
from probes.settings import no_command, read_settings
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

NAME = "RAY_DEBUG_POST_MORTEM"
CHOICE = "RAY_DEBUG"
_MISSPELT = ("RAY_DEBUG_POSTMORTEM", "RAY_DEBUG_POST_MORTAM", "RAY_DEBUGGER_POST_MORTEM", "RAY_POST_MORTEM")
_OFF = ("", "0")


@probe(
    "ray_debugger.env",
    needs="launch",
    answers=("enabled", "misspelt", "not-exported", "not-in-runtime-env", "legacy", "switched-off", "not-debugging"),
    en="Is Ray's post-mortem debugger enabled under the name that Ray reads?",
    zh="Ray 的 post-mortem 调试器是否以 Ray 认得的变量名开启？",
)
def env(evidence: Evidence, report: Progress) -> Finding:
    """Look at the exports and the runtime env of the training job."""
    del report
    settings = read_settings(evidence)
    launch, job = settings.launch, settings.job
    if launch is None or job is None:
        return no_command()
    right = _set(launch, job, NAME)
    return _misspelt(launch, job, right) or _chosen(launch, job, right) or _reached(launch, job)


def switches(launch: Launch, job: Job) -> list[Setting]:
    """Return where a script sets a variable of the debugger, by whatever spelling, to anything but off."""
    return [one for name in (NAME, *_MISSPELT, CHOICE) for one in _set(launch, job, name)]


def _set(launch: Launch, job: Job, name: str) -> list[Setting]:
    """Return where the variable is set to anything but off."""
    both = (exported(launch, job, name), passed(job, name))
    return [one for one in both if one is not None and one.value not in _OFF]


def _misspelt(launch: Launch, job: Job, right: list[Setting]) -> Finding | None:
    """Report a name, or a value, that Ray does not read."""
    wrong = [one for name in _MISSPELT for one in _set(launch, job, name)]
    if wrong and not right:
        return found(
            Verdict.PROBLEM,
            "misspelt",
            f"The script sets {wrong[0].name}, as slime's guide spells it; Ray reads {NAME} and ignores the other, so "
            "the post-mortem debugger is off."
            if wrong[0].name == _MISSPELT[0]
            else f"The script sets {wrong[0].name}, which Ray does not read; it reads {NAME}, so the post-mortem "
            "debugger is off.",
            f"脚本按 slime 指南的拼写设置了 {wrong[0].name}；Ray 读取的是 {NAME}，前者不起作用，"
            "post-mortem 调试器没有开启。"
            if wrong[0].name == _MISSPELT[0]
            else f"脚本设置了 {wrong[0].name}，Ray 不读取它，只读取 {NAME}；post-mortem 调试器没有开启。",
            citations=tuple(cite_place(one.place) for one in wrong),
        )
    last = passed(job, NAME) or exported(launch, job, NAME)
    if last is not None and last.sure and last.value is not None and last.value not in (*_OFF, "1"):
        return found(
            Verdict.PROBLEM,
            "misspelt",
            f"The script sets {NAME}={last.value}; Ray takes no value but 1, so the post-mortem debugger is off.",
            f"脚本设置了 {NAME}={last.value}；Ray 只认 1，post-mortem 调试器没有开启。",
            citations=(cite_place(last.place),),
        )
    return None


def _chosen(launch: Launch, job: Job, right: list[Setting]) -> Finding | None:
    """Report a RAY_DEBUG by which VS Code finds nothing to attach to."""
    chosen = passed(job, CHOICE) or exported(launch, job, CHOICE)
    if chosen is None or chosen.value in (None, "1"):
        return None
    lines = tuple(cite_place(one.place) for one in (chosen, *right))
    if chosen.value == "legacy":
        return found(
            Verdict.WARNING,
            "legacy",
            "RAY_DEBUG=legacy selects the older `ray debug` console; the VS Code debugger cannot attach to it.",
            "RAY_DEBUG=legacy 选择旧的 `ray debug` 控制台；VS Code 调试器无法连接。",
            citations=lines,
        )
    return found(
        Verdict.WARNING,
        "switched-off",
        f"RAY_DEBUG={chosen.value} switches the debugger off: Ray knows 1 (the default) and legacy, and with any other "
        "value a breakpoint() passes without a word.",
        f"RAY_DEBUG={chosen.value} 关闭了调试器：Ray 只认 1（默认）和 legacy，"
        "其他值会让 breakpoint() 直接跳过且没有提示。",
        citations=lines,
    )


def _reached(launch: Launch, job: Job) -> Finding:
    state, citations = reach(launch, job, NAME, "1")
    outside = exported(launch, job, NAME)
    if state is Reach.RUNTIME_ENV:
        return found(
            Verdict.OK,
            "enabled",
            f"{NAME}=1 is in the runtime env: a task or actor that raises an exception waits for the debugger instead "
            "of failing. Take it out after debugging.",
            f"{NAME}=1 在 runtime env 里：task 或 actor 抛出异常时会停下等待调试器，而不是失败。调试后请去掉。",
            citations=citations,
        )
    if state in (Reach.BEFORE_RAY, Reach.EXPORTED):
        seen = (
            "only processes of the machine whose `ray start` follows the export see it"
            if state is Reach.BEFORE_RAY
            else "no worker sees it"
        )
        seen_zh = (
            "只有在 export 之后执行 `ray start` 的那台机器上的进程能看到"
            if state is Reach.BEFORE_RAY
            else "worker 看不到它"
        )
        return found(
            Verdict.WARNING if state is Reach.BEFORE_RAY or not job.has_runtime_env else Verdict.PROBLEM,
            "not-in-runtime-env",
            f"{NAME}=1 is exported but not in the runtime env: {seen}.",
            f"{NAME}=1 已 export，但不在 runtime env 里：{seen_zh}。",
            citations=citations,
        )
    return _unset(job, outside, citations)


def _unset(job: Job, outside: Setting | None, citations: tuple[Citation, ...]) -> Finding:
    inside = passed(job, NAME)
    if inside is not None and inside.value in _OFF and outside is None:
        return found(
            Verdict.OK,
            "not-exported",
            f"The runtime env passes {NAME} on, but the script does not export it: it is 0 unless the caller sets it.",
            f"runtime env 会传递 {NAME}，但脚本没有 export 它：除非调用者设置，否则为 0。",
            citations=citations,
        )
    if inside is not None and inside.value is None:
        return unknown(
            f"The runtime env passes {NAME} on, with a value known only when the script runs.",
            f"runtime env 会传递 {NAME}，其值要到脚本运行时才知道。",
            settle_en=f"print {NAME} inside a worker, or set it to 1 in the script",
            settle_zh=f"在 worker 里打印 {NAME}，或在脚本里直接设为 1",
            slots=("launch",),
            citations=citations,
        )
    return found(
        Verdict.OK,
        "not-debugging",
        "The script does not ask for Ray's debugger.",
        "脚本没有启用 Ray 调试器。",
        citations=citations,
    )
