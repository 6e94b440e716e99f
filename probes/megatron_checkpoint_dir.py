"""Whether the folder of --load or --ref-load is a whole Megatron checkpoint (debug guide 1.1 a).

slime decides silently (slime/utils/arguments.py:1765-1870): without a tracker, --load is replaced by --ref-load, and a
--ref-load that is itself an iteration folder makes Megatron start from random weights. So a missing tracker beside
iteration folders is a problem even though nothing is printed, provided that the folder was meant to be loaded: one that
is --save as well, or that merely lies in RUN, may be the checkpoint that the job is still writing (`resume`). An empty
--load folder beside a whole --ref-load is how every first start looks, and a Hugging Face folder is a legitimate value;
neither is a fault.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace

from probes.readers import torch_dist
from probes.readers.dump_errors import DumpError, Fault
from probes.readers.torch_dist import REQUIRED_FILES, TRACKER, Folder, is_iteration_name
from probes.resume import intent
from probes.settings import read_settings, scripted
from runbook.evidence import Evidence, Item
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, not_applicable, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_FLAGS = {"megatron_load": "--load", "megatron_ref": "--ref-load"}


@dataclass(frozen=True)
class _Lack:
    """Something that is missing or too short: what, in words, and where."""

    en: str
    zh: str
    citation: Citation


@dataclass(frozen=True)
class _State:
    """What one folder is.

    kind: "complete", "no-tracker", "incomplete", "hf", "empty", "other", "unfinished" (no tracker, and nothing says
    that it was meant to be loaded) or "unknown". en, zh: why, as the end of a sentence that begins with the flag.
    """

    flag: str
    path: str
    kind: str
    en: str
    zh: str
    citations: tuple[Citation, ...] = ()


@probe(
    "megatron.checkpoint_dir",
    needs="megatron_load|megatron_ref",
    answers=("complete", "no-tracker", "incomplete", "not-a-checkpoint"),
    en="Is the Megatron checkpoint folder whole?",
    zh="Megatron checkpoint 目录是否完整？",
    deadline=180.0,
)
def checkpoint_dir(evidence: Evidence, report: Progress) -> Finding:
    """Check the tracker, the iteration folder it names, and the size of every data file."""
    states = [_meant(evidence, _state(_FLAGS[item.slot], item.path, report), item) for item in _asked(evidence)]
    for answer in ("incomplete", "no-tracker"):
        bad = [state for state in states if state.kind == answer]
        if bad:
            return _told(Verdict.PROBLEM, answer, bad[0], states)
    usable = [state for state in states if state.kind in ("complete", "hf")]
    reference = any(state.flag == "--ref-load" for state in usable)
    strange = [
        state for state in states if state.kind == "other" or (state.kind, state.flag) == ("empty", "--ref-load")
    ]
    if strange:
        first = next((state for state in strange if state.flag == "--ref-load"), strange[0])
        return _told(
            Verdict.PROBLEM if first.flag == "--ref-load" else Verdict.WARNING, "not-a-checkpoint", first, states
        )
    if not states:
        return unknown(
            "The folders of --load and --ref-load are not readable from here.",
            "无法从此处读取 --load 与 --ref-load 的目录。",
            settle_en="Give the folders of --load and of --ref-load, readable from here.",
            settle_zh="提供可从此处读取的 --load 与 --ref-load 目录。",
            slots=tuple(_FLAGS),
        )
    doubtful = [state for state in states if state.kind in ("unfinished", "unknown") or _is_open(state, reference)]
    if doubtful:
        return _doubt(doubtful[0])
    complete = [state for state in usable if state.kind == "complete"]
    if complete:
        return _told(Verdict.OK, "complete", complete[0], states)
    return not_applicable(
        "The folder given is a Hugging Face model, which slime converts itself.",
        "所给目录是 Hugging Face 模型，slime 会自行转换。",
    )


def _asked(evidence: Evidence) -> list[Item]:
    """Return the folders that the job was told to load.

    A folder that merely lies in RUN counts only when nothing names one: it may be the checkpoint that the job is
    writing, whose tracker comes last.
    """
    items = [item for item in evidence.items if item.slot in _FLAGS]
    meant = [item for item in items if item.origin != "found"] or items
    return list({(item.slot, item.path): item for item in meant if not item.missing}.values())


def _meant(evidence: Evidence, state: _State, item: Item) -> _State:
    """Turn a missing tracker of --load into a problem with its proof, or into "unfinished" when nothing proves it."""
    if state.kind != "no-tracker" or state.flag != "--load":
        return state
    settings = read_settings(evidence)
    load = scripted(settings, "load")
    if is_iteration_name(os.path.basename(os.path.normpath(item.path))):
        parent = load is not None and not is_iteration_name(os.path.basename(os.path.normpath(load.shown)))
        return replace(state, kind="unfinished") if parent or item.origin == "found" else state
    asked = intent(evidence, settings, item.path, given_by_hand=item.origin == "given")
    if asked.meant is None:
        return replace(state, kind="unfinished")
    return replace(state, citations=(*state.citations, *asked.proof))


def _is_open(state: _State, reference: bool) -> bool:
    """Whether an empty folder leaves open what is loaded: there is no reference that takes its place."""
    return state.kind == "empty" and not reference


def _doubt(state: _State) -> Finding:
    """Return the unknown of a folder that cannot be judged."""
    if state.kind != "unfinished":
        return unknown(
            f"{state.flag} {state.path} {state.en}.",
            f"{state.flag} {state.path} {state.zh}。",
            settle_en="Give the folders of --load and of --ref-load, readable from here.",
            settle_zh="提供可从此处读取的 --load 与 --ref-load 目录。",
            slots=tuple(_FLAGS),
        )
    return unknown(
        f"{state.flag} {state.path} {state.en}; nothing shows that it was meant to be loaded, and a job that saves "
        "there writes the tracker last.",
        f"{state.flag} {state.path} {state.zh}；没有证据表明本想从它加载，而往此处保存的任务最后才写 tracker。",
        settle_en="Say whether this was a resume: compare `load` in the log's arguments table with the script's "
        "--load, and look whether the tracker appears once the save ends.",
        settle_zh="确认是否为续训：比较日志参数表中的 load 与脚本的 --load，并看保存结束后 tracker 是否出现。",
        slots=("launch", "log"),
        citations=state.citations,
    )


def _told(verdict: Verdict, answer: str, state: _State, states: list[_State]) -> Finding:
    rows = tuple((one.flag, sanitise(one.path, 120), one.kind, sanitise(one.en, 200)) for one in states)
    zh = tuple(dict.fromkeys((sanitise(one.en, 200), sanitise(one.zh, 200)) for one in states))
    return found(
        verdict,
        answer,
        f"{state.flag} {state.path} {state.en}.",
        f"{state.flag} {state.path} {state.zh}。",
        citations=state.citations or (cite(state.path, f"{state.flag}: {state.en}"),),
        tables=(Table(Text("Checkpoint folders", "checkpoint 目录"), ("flag", "folder", "state", "why"), rows, zh),),
    )


def _state(flag: str, path: str, report: Progress) -> _State:
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            return _State(flag, path, "other", "is a file, not a folder", "是文件而不是目录")
        folder = torch_dist.read_folder(path)
        if folder.kind == "checkpoint" and folder.tracker is not None:
            return _tracked(flag, folder, report)
    except OSError as error:
        return _State(flag, path, "unknown", f"cannot be read ({error})", f"无法读取（{error}）")
    return _untracked(flag, folder)


def _untracked(flag: str, folder: Folder) -> _State:
    """Say what a folder without a tracker is."""
    path = folder.path
    if folder.kind == "iteration":
        parent = os.path.dirname(path.rstrip("/"))
        fate = "silently loads --ref-load instead" if flag == "--load" else "starts from random weights"
        fate_zh = "静默改为加载 --ref-load" if flag == "--load" else "从随机权重开始"
        en = f"is an iteration folder itself: without {TRACKER} in it slime {fate}; give {parent}"
        zh = f"本身就是迭代目录：其中没有 {TRACKER}，slime 会{fate_zh}；应改为 {parent}"
        return _State(flag, path, "no-tracker", en, zh, (cite(path, f"no {TRACKER} in this folder"),))
    if folder.kind == "checkpoint":
        names = ", ".join(folder.iterations[-3:])
        en = f"holds {names} but no {TRACKER}, so slime does not load it"
        zh = f"有 {names} 但没有 {TRACKER}，因此 slime 不会加载"
        return _State(flag, path, "no-tracker", en, zh, (cite(path, f"{names}; no {TRACKER}"),))
    if folder.kind == "hf":
        return _State(flag, path, "hf", "is a Hugging Face folder", "是 Hugging Face 目录")
    if folder.kind == "empty":
        return _State(
            flag, path, "empty", "is empty, so slime starts from --ref-load", "为空目录，slime 会从 --ref-load 开始"
        )
    return _State(
        flag,
        path,
        "other",
        f"holds neither {TRACKER} nor iteration folders nor a Hugging Face model",
        f"既没有 {TRACKER}，也没有迭代目录或 Hugging Face 模型",
    )


def _tracked(flag: str, folder: Folder, report: Progress) -> _State:
    """Check the iteration that the tracker names."""
    tracker = os.path.join(folder.path, TRACKER)
    line = _tracker_line(tracker)
    wanted = folder.wanted
    if wanted is None:
        en = f"has a tracker that says {sanitise(folder.tracker or '', 40)!r}, neither a number nor release"
        return _State(flag, folder.path, "incomplete", en, "的 tracker 内容既不是数字也不是 release", (line,))
    place = os.path.join(folder.path, wanted)
    if not os.path.isdir(place):
        there = ", ".join(folder.iterations[-3:]) or "no iteration folder"
        en = f"has a tracker that names {wanted}, which is not there ({there})"
        zh = f"的 tracker 指向 {wanted}，但该目录不存在（现有：{there}）"
        return _State(flag, folder.path, "incomplete", en, zh, (line, cite(folder.path, f"no {wanted}; {there}")))
    try:
        lacks = list(_lacks(place, report))
    except DumpError as error:
        where = f"has {wanted}/.metadata that cannot be judged: {error.what}"
        return _State(flag, folder.path, "unknown", where, f"的 {wanted}/.metadata 无法判断：{error.what}")
    if lacks:
        more = f" and {len(lacks) - 1} more" if len(lacks) > 1 else ""
        en = f"is incomplete in {wanted}: {lacks[0].en}{more}"
        zh = f"的 {wanted} 不完整：{lacks[0].zh}" + (f" 等 {len(lacks)} 处" if more else "")
        return _State(flag, folder.path, "incomplete", en, zh, (line, *(lack.citation for lack in lacks[:5])))
    en, zh = f"is whole: the tracker names {wanted} and every file is there", f"完整：tracker 指向 {wanted}，文件齐全"
    return _State(flag, folder.path, "complete", en, zh, (line,))


def _tracker_line(path: str) -> Citation:
    """Cite the first line of a tracker file."""
    with open(path, "rb") as file:
        raw = file.read(4096).split(b"\n")[0]
    if raw.strip():
        return cite(path, raw, line=1, offset=0)
    return cite(path, "the first line is blank")


def _lacks(place: str, report: Progress) -> Iterator[_Lack]:
    """Yield what an iteration folder lacks. Raises DumpError when its layout is not known or `.metadata` is hostile."""
    names = torch_dist.names_in(place)
    if any(torch_dist.LEGACY_RANK.match(name) for name in names):
        yield from _legacy_lacks(place, names)
        return
    if names and not any(name in REQUIRED_FILES or name.endswith(".distcp") for name in names):
        raise DumpError(Fault.FOREIGN, place, "another layout than torch_dist or mp_rank")
    for name in REQUIRED_FILES:
        path = os.path.join(place, name)
        if name not in names:
            yield _Lack(f"{name} is missing", f"缺少 {name}", cite(place, f"no {name}"))
        elif os.path.getsize(path) == 0 or (name == "common.pt" and torch_dist.is_cut_zip(path)):
            size = os.path.getsize(path)
            yield _Lack(f"{name} is cut off", f"{name} 被截断", cite(path, f"{name}: {size} bytes"))
    if ".metadata" not in names or os.path.getsize(os.path.join(place, ".metadata")) == 0:
        return
    try:
        needed = torch_dist.read_metadata(os.path.join(place, ".metadata")).needed
    except DumpError as error:
        if error.fault is not Fault.TRUNCATED:
            raise
        yield _Lack(".metadata is cut off", ".metadata 被截断", cite(error.path, error.what))
        return
    yield from _short_files(place, needed, report)


def _short_files(place: str, needed: dict[str, int], report: Progress) -> Iterator[_Lack]:
    for number, (name, bytes_needed) in enumerate(sorted(needed.items())):
        report(number, len(needed), "file")
        path = os.path.join(place, name)
        try:
            size = os.path.getsize(path)
        except FileNotFoundError:
            yield _Lack(f"{name} is missing", f"缺少 {name}", cite(place, f"no {name}, which .metadata names"))
            continue
        if size < bytes_needed:
            excerpt = f"{name}: {size} bytes, .metadata needs {bytes_needed}"
            en = f"{name} has {size} bytes and needs {bytes_needed}"
            yield _Lack(en, f"{name} 只有 {size} 字节，需要 {bytes_needed}", cite(path, excerpt))


def _legacy_lacks(place: str, names: dict[str, bool]) -> Iterator[_Lack]:
    """Yield the ranks without a folder, and the rank folders without a model file."""
    for name in torch_dist.missing_legacy_ranks(names):
        yield _Lack(f"{name} is missing", f"缺少 {name}", cite(place, f"no {name}"))
    for name in sorted(names):
        if not torch_dist.LEGACY_RANK.match(name):
            continue
        model = os.path.join(place, name, "model_optim_rng.pt")
        if not os.path.isfile(model):
            yield _Lack(f"{name}/model_optim_rng.pt is missing", f"缺少 {name}/model_optim_rng.pt", cite(place, name))
        elif torch_dist.is_cut_zip(model):
            size = os.path.getsize(model)
            yield _Lack(
                f"{name}/model_optim_rng.pt is cut off",
                f"{name}/model_optim_rng.pt 被截断",
                cite(model, f"{size} bytes"),
            )
