"""Whether a rollout dump is of this run: its token ids, its number of samples, its lengths and its rollout ids.

A replay trusts the file: slime formats the path with the rollout id and trains on whatever is in it
(slime/ray/rollout.py, observability/rollout_data_utils.py). An id beyond the model's vocabulary indexes past the
embedding; fewer samples than a global batch stop the replay ("Not enough samples" up to v0.2.4, an AssertionError of
utils/dp_schedule.py later). Other sizes may be the work of custom functions or filters: they are a warning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from probes import dumps
from probes.launch_rules import Asked, Untold, jobs_of
from probes.readers.hf_config import field, read_config
from probes.readers.rollout_dump import Dump
from probes.settings import Settings
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe

_CUSTOM = (
    "rollout-function-path",
    "custom-generate-function-path",
    "dynamic-sampling-filter-path",
    "rollout-sample-filter-path",
    "load-debug-rollout-data-subsample",
    "partial-rollout",
)
"""Flags with which the number of samples or their lengths may be any."""


@dataclass(frozen=True)
class _Fault:
    """What does not match. proven: no custom function explains it."""

    answer: str
    en: str
    zh: str
    citations: tuple[Citation, ...]
    proven: bool = False


@probe(
    "separate.dump_match",
    needs=("rollout_dump", "launch|log|hf_checkpoint"),
    answers=("matches", "other-model", "other-sizes", "no-rollout"),
    en="Is the rollout dump of this run's model and sizes?",
    zh="rollout dump 与这次任务的模型和规模一致吗？",
    deadline=dumps.DEADLINE,
)
def dump_match(evidence: Evidence, report: Progress) -> Finding:
    """Compare the dumps with checkpoint and flags; the first fault counts."""
    read = dumps.Read()
    opened = list(dumps.dumps_of(evidence, "rollout", report, read))
    if not opened:
        return dumps.nothing_read(read, "rollout dump", "rollout dump")
    settings = next(iter(jobs_of(evidence)), Settings())
    checked: list[str] = []
    faults = [*_vocabulary(evidence, opened, checked), *_replayed(settings, opened, checked)]
    if settings.known:
        faults += _sizes(settings, opened, checked)
    faults.sort(key=lambda one: not one.proven)
    if faults:
        first = faults[0]
        verdict = Verdict.PROBLEM if first.proven else Verdict.WARNING
        return found(verdict, first.answer, first.en, first.zh, citations=first.citations)
    if not checked:
        return unknown(
            "Neither the vocabulary nor the sizes of the run are known.",
            "任务的词表与规模都未知。",
            settle_en="attach the HF checkpoint or the launch script",
            settle_zh="附上 HF checkpoint 或启动脚本",
            slots=("hf_checkpoint", "launch"),
        )
    shown = ", ".join(dict.fromkeys(checked))
    return found(
        Verdict.OK,
        "matches",
        f"{len(opened)} dump(s) match the run: {shown}.",
        f"{len(opened)} 个 dump 与任务一致：{shown}。",
        citations=(_place(opened[0], f"{len(opened[0].samples)} samples"),),
    )


def _place(dump: Dump, what: str) -> Citation:
    return cite(dump.path, what.encode(), line=None, offset=None)


def _vocabulary(evidence: Evidence, opened: list[Dump], checked: list[str]) -> Iterator[_Fault]:
    config = next((one for path in evidence.paths("hf_checkpoint") if (one := read_config(path)) is not None), None)
    size = field(config, "vocab") if config is not None else None
    if size is None or not isinstance(size.value, int):
        return
    for dump in opened:
        for position, sample in enumerate(dump.samples):
            ids = dumps.numbers(sample, "tokens")
            if ids is None or not ids.size:
                continue
            checked.append("token ids")
            if (largest := int(ids.max())) >= size.value:
                index = dumps.index_of(sample, position)
                yield _Fault(
                    "other-model",
                    f"Sample {index} holds token id {largest}, and the checkpoint's vocabulary ends at "
                    f"{size.value - 1}: the dump is of another model.",
                    f"样本 {index} 含 token id {largest}，而 ckpt 的词表只到 {size.value - 1}：dump 来自另一个模型。",
                    (_place(dump, f"sample {index}: token id {largest}"), size.citation),
                    proven=True,
                )
                return


def _replayed(settings: Settings, opened: list[Dump], checked: list[str]) -> Iterator[_Fault]:
    asked = Asked(settings)
    try:
        if not settings.known or not asked.given("load-debug-rollout-data"):
            return
        start = asked.maybe("start-rollout-id")
        if start is None and asked.given("load"):
            return
        first = int(start or 0)
    except Untold:
        return
    numbers = {dump.rollout_id for dump in opened if not dump.evaluation}
    if None in numbers or not numbers:
        return
    checked.append("rollout ids")
    if first not in numbers:
        listed = ", ".join(str(one) for one in sorted(one for one in numbers if one is not None)[:8])
        yield _Fault(
            "no-rollout",
            f"The replay starts at rollout {first}, and the dumps at hand are of rollout {listed}: no file is found.",
            f"重放从 rollout {first} 开始，而手边的 dump 是 rollout {listed}：slime 找不到文件。",
            tuple(line.citation for line in asked.lines[:2]),
        )


def _sizes(settings: Settings, opened: list[Dump], checked: list[str]) -> Iterator[_Fault]:
    asked = Asked(settings)
    rollouts = [dump for dump in opened if not dump.evaluation]
    try:
        custom = any(asked.given(flag) for flag in _CUSTOM)
        replay = asked.given("load-debug-rollout-data")
        batch, each = asked.maybe("rollout-batch-size"), asked.number("n-samples-per-prompt", 1)
        steps, whole = asked.maybe("num-steps-per-rollout"), asked.maybe("global-batch-size")
        limit = asked.maybe("rollout-max-response-len")
        dynamic = asked.on("use-dynamic-global-batch-size")
    except Untold:
        return
    if not batch:
        return
    step = batch * each // steps if steps else whole
    lines = tuple(line.citation for line in asked.lines)[:4]
    for dump in rollouts:
        count = len(dump.samples)
        checked.append("samples")
        here = (_place(dump, f"{count} samples"), *lines)
        if replay and step and count < step and not dynamic:
            yield _Fault(
                "other-sizes",
                f"The dump of rollout {dump.rollout_id} holds {count} samples, and one step takes {step:g}: the replay "
                "stops.",
                f"rollout {dump.rollout_id} 的 dump 只有 {count} 个样本，而一个 step 需要 {step:g} 个：重放会退出。",
                here,
                proven=not asked.settings.table,
            )
            return
        if not custom and count != batch * each:
            yield _Fault(
                "other-sizes",
                f"The dump of rollout {dump.rollout_id} holds {count} samples, and the flags make {batch * each:g}.",
                f"rollout {dump.rollout_id} 的 dump 有 {count} 个样本，而按参数应为 {batch * each:g} 个。",
                here,
            )
            return
        longest = max((int(sample.get("response_length") or 0) for sample in dump.samples), default=0)
        if not custom and limit is not None and longest > limit:
            yield _Fault(
                "other-sizes",
                f"A response of {longest} tokens is longer than --rollout-max-response-len {limit:g}.",
                f"有一条回复长 {longest} token，超过 --rollout-max-response-len {limit:g}。",
                here,
            )
            return
