"""Whether slime replaced `--load` by `--ref-load` without a word.

slime (slime/utils/arguments.py, slime_validate_args) takes `--load` only when the folder holds
latest_checkpointed_iteration.txt, or is a Hugging Face folder it can read; otherwise it silently sets load =
ref_load, finetune, no_load_optim and no_load_rng. For a fresh run that is by design: slime's own scripts give
`--load` and `--save` the same folder, which does not exist yet and which fills while the job runs, the tracker last.
So the fallback is a fault only where a checkpoint was meant: an iteration folder, a folder other than `--save`, or one
that a flag or a line of the log names as such (`resume`). Iterations in the folder of `--save` prove nothing.
"""

from __future__ import annotations

import os

from probes.readers.torch_dist import TRACKER, is_iteration_name
from probes.resume import intent, is_save, same_path
from probes.settings import Given, Settings, given, read_settings, scripted
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe


@probe(
    "launch.load_fallback",
    needs="launch|log",
    answers=("used-as-given", "fresh-start", "fell-back", "no-load"),
    en="Was the checkpoint of --load used, or silently replaced by --ref-load?",
    zh="--load 指定的检查点被采用了，还是被悄悄换成了 --ref-load？",
)
def load_fallback(evidence: Evidence, report: Progress) -> Finding:
    """Compare the script's --load with the table's `load`, and look into the folder where it is at hand."""
    del report
    settings = read_settings(evidence)
    load = scripted(settings, "load")
    if load is None:
        return _without_script(settings)
    shown = load.shown.rstrip("/")
    if not load.sure or not shown:
        return _open("a condition in the script decides whether --load is given", "脚本里的条件决定是否给出 --load")
    if os.path.basename(shown) != "release" and is_iteration_name(os.path.basename(shown)):
        return _iteration(load, settings)
    if settings.table is not None and "load" in settings.table.rows:
        return _compare(settings, load, evidence)
    return _look(load, settings, evidence)


def _without_script(settings: Settings) -> Finding:
    if settings.job is not None and settings.whole:
        return found(
            Verdict.OK,
            "no-load",
            "The script gives no --load, so the actor starts from --ref-load by design.",
            "脚本没有给 --load，actor 按设计从 --ref-load 开始。",
        )
    return _open("the launch script's --load is not known", "不知道启动脚本的 --load")


def _open(en: str, zh: str, citations: tuple[Citation, ...] = ()) -> Finding:
    return unknown(
        f"Cannot tell whether --load was used: {en}.",
        f"无法判断 --load 是否被采用：{zh}。",
        settle_en="attach the launch script and a log with Megatron's arguments table; compare its `load` with --load",
        settle_zh="附上启动脚本和含有 Megatron 参数表的日志，比较其中的 load 与 --load",
        slots=("launch", "log"),
        citations=citations,
    )


def _iteration(load: Given, settings: Settings) -> Finding:
    table = given(settings, "load") if settings.table is not None else None
    folder = load.shown
    return found(
        Verdict.PROBLEM,
        "fell-back",
        f"--load names the iteration folder {folder}; slime and Megatron look for {TRACKER} inside it, do not find it, "
        "and start from --ref-load or random weights. Name the folder above it (and --ckpt-step for an iteration).",
        f"--load 指向迭代目录 {folder}；slime 和 Megatron 在其中找不到 {TRACKER}，会从 --ref-load 或随机权重开始。"
        "应指向它的上一级目录（用 --ckpt-step 选迭代）。",
        citations=(load.citation, *((table.citation,) if table is not None else ())),
    )


def _compare(settings: Settings, load: Given, evidence: Evidence) -> Finding:
    applied, reference = given(settings, "load"), given(settings, "ref-load")
    if applied is not None and load.value is not None and same_path(applied.shown, load.value):
        return found(
            Verdict.OK,
            "used-as-given",
            f"--load {load.value} is what applied.",
            f"实际采用的就是 --load {load.value}。",
            citations=(applied.citation, load.citation),
        )
    if applied is None or reference is None or not same_path(applied.shown, reference.shown):
        return _open(
            "the table's `load` is neither --load nor --ref-load",
            "参数表里的 load 既不是 --load 也不是 --ref-load",
            (load.citation,),
        )
    if load.value is None and os.path.basename(load.shown) == os.path.basename(applied.shown.rstrip("/")):
        return _open("--load is only known when the script runs", "--load 的值要到脚本运行时才知道", (load.citation,))
    held, saved = _holds_iterations(load, evidence), is_save(settings)
    asked = intent(evidence, settings, load.shown)
    if asked.meant is None and saved and held is None:
        return _fresh(load, applied)
    if asked.meant is None:
        return _unfinished(load, held)
    why, why_zh = _why(asked.saved, held)
    return found(
        Verdict.PROBLEM,
        "fell-back",
        f"--load {load.shown} was silently replaced by --ref-load {applied.shown} ({why}); "
        "optimizer and random state were not loaded.",
        f"--load {load.shown} 被悄悄换成了 --ref-load {applied.shown}（{why_zh}）；优化器和随机状态没有加载。",
        citations=tuple(
            dict.fromkeys((load.citation, applied.citation, *((held,) if held is not None else ()), *asked.proof))
        ),
    )


def _why(saved: bool, held: Citation | None) -> tuple[str, str]:
    """Say why a checkpoint was meant."""
    if held is not None:
        return f"it holds {held.excerpt}", f"其中有 {held.excerpt}"
    if saved:
        return "a resume was asked for", "本想续训"
    return "it is not the folder of --save, so a checkpoint was meant", "它不是 --save 的目录，说明本想加载一个检查点"


def _unfinished(load: Given, held: Citation | None) -> Finding:
    """Return the unknown of a folder that may be what the job is writing."""
    here = (
        f" it holds {held.excerpt}, which a job that saves there leaves until a save ends;" if held is not None else ""
    )
    here_zh = f"其中有 {held.excerpt}，往此处保存的任务在保存结束前也是如此；" if held is not None else ""
    return _open(
        f"{here} nothing shows that a resume was meant".strip(),
        f"{here_zh}没有证据表明本想续训",
        (load.citation, *((held,) if held is not None else ())),
    )


def _fresh(load: Given, applied: Given | None) -> Finding:
    return found(
        Verdict.OK,
        "fresh-start",
        f"--load {load.shown} is also --save: a fresh run starts from --ref-load by design "
        "(a run meant to resume would show its --load in the table).",
        f"--load {load.shown} 同时也是 --save：新任务按设计从 --ref-load 开始"
        "（若本想续训，参数表里的 load 应是 --load）。",
        citations=(load.citation, *((applied.citation,) if applied is not None else ())),
    )


def _folder(load: Given, evidence: Evidence) -> str | None:
    """Return the folder of --load when it is at hand: as evidence, or under its own path."""
    name = os.path.basename(load.shown.rstrip("/"))
    for path in evidence.paths("megatron_load"):
        if os.path.basename(os.path.normpath(path)) == name or (load.value and same_path(path, load.value)):
            return path
    return load.value if load.value and os.path.isabs(load.value) and os.path.isdir(load.value) else None


def _holds_iterations(load: Given, evidence: Evidence) -> Citation | None:
    """Return the newest iteration folder that lies in --load although the tracker is missing."""
    folder = _folder(load, evidence)
    if folder is None or os.path.exists(os.path.join(folder, TRACKER)):
        return None
    try:
        inside = sorted(name for name in os.listdir(folder) if is_iteration_name(name))
    except OSError:
        return None
    return cite(folder, f"{inside[-1]} without {TRACKER}") if inside else None


def _look(load: Given, settings: Settings, evidence: Evidence) -> Finding:
    """Judge from the folder itself when no table tells."""
    folder = _folder(load, evidence)
    if folder is not None and os.path.exists(os.path.join(folder, TRACKER)):
        return found(
            Verdict.OK,
            "used-as-given",
            f"--load {load.shown} holds {TRACKER}, so slime takes it.",
            f"--load {load.shown} 中有 {TRACKER}，slime 会采用它。",
            citations=(load.citation, cite(folder, TRACKER)),
        )
    held = _holds_iterations(load, evidence)
    if held is not None and folder is not None and not os.path.exists(os.path.join(folder, "config.json")):
        asked = intent(evidence, settings, folder)
        if asked.meant is None:
            return _unfinished(load, held)
        return found(
            Verdict.PROBLEM,
            "fell-back",
            f"--load {load.shown} holds {held.excerpt}: slime does not take it and silently starts from --ref-load.",
            f"--load {load.shown} 中有 {held.excerpt}：slime 不会采用它，而是悄悄从 --ref-load 开始。",
            citations=tuple(dict.fromkeys((load.citation, held, *asked.proof))),
        )
    if folder is not None and not is_save(settings) and not os.path.exists(os.path.join(folder, "config.json")):
        return _open(
            f"the folder is there but holds neither {TRACKER} nor an iteration",
            f"目录存在但没有 {TRACKER} 也没有迭代目录",
            (load.citation,),
        )
    return _open("no arguments table, and the folder is not at hand", "没有参数表，也看不到该目录", (load.citation,))
