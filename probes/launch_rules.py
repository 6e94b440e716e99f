"""How a rule that slime or Megatron stops by is asked of a launch command before the job is started.

A rule is one function: it asks for flags and returns what is wrong, or None. What it asks for is recorded, so that its
finding cites the very lines; a flag whose value is not certain ends the rule as untold, with the flag's name and the
variable it rests on. Invariants: a rule that only some releases have proves nothing while the release is not known;
what rests on the default of an environment variable, on a conditional job or on a file that may override flags is a
warning, never a problem; rules hold only where every one of them could be asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from probes import logs
from probes.readers.hf_config import HfConfig, field, read_config
from probes.readers.launch_model import Gap, cite_place
from probes.readers.versions import read_versions
from probes.settings import Given, Settings, given, no_command, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, found, unknown
from runbook.probe import Progress
from runbook.text import Text, sanitise

Release = tuple[int, ...]

OVERRIDING = ("custom-config-path", "megatron-config-path")
"""Flags that name a file whose keys replace flags after the command line was read (slime/utils/arguments.py)."""


class Untold(Exception):  # noqa: N818 - no error: it ends the asking of one rule
    """A flag that a rule needs is not certain. flag: its name with dashes, and the value as written."""

    def __init__(self, flag: str) -> None:
        super().__init__(flag)
        self.flag = flag


@dataclass(frozen=True)
class Broken:
    """What does not hold, and what the program does then, as one sentence in two languages."""

    en: str
    zh: str
    proven: bool = True


_CONFIG = {
    "num-layers": "num_layers",
    "hidden-size": "hidden_size",
    "num-attention-heads": "heads",
    "num-query-groups": "kv_groups",
    "kv-channels": "head_dim",
    "num-experts": "experts",
}
"""Flags of the model, and the fields of config.json that say the same."""


class Asked:
    """The flags of one job, and a record of the lines that were looked at.

    config: the checkpoint's config.json, which tells the model's sizes where its script is not at hand: slime stops
    when the two differ (hf_validate_args), and launch.model_args compares the rest.
    """

    def __init__(self, settings: Settings, config: HfConfig | None = None) -> None:
        self.settings = settings
        self.config = config
        self.lines: list[Given] = []

    def _of_config(self, flag: str) -> Given | None:
        """Return a size of the model by config.json; None when the model has none. Raises Untold."""
        if self.config is None or flag not in _CONFIG:
            raise Untold(f"--{flag}")
        one = field(self.config, _CONFIG[flag])
        return None if one is None else Given(str(one.value), str(one.value), one.citation)

    def _found(self, flag: str, *, of_model: bool) -> Given | None:
        one = given(self.settings, flag)
        if one is None and of_model and not self.settings.whole_model:
            one = self._of_config(flag)
        if one is None:
            if not of_model and not self.settings.whole:
                raise Untold(f"--{flag}")
            return None
        if not one.sure:
            raise Untold(f"--{flag} {one.shown}".rstrip())
        self.lines.append(one)
        return one

    def maybe(self, flag: str, *, of_model: bool = False) -> float | None:
        """Return a number, None when the flag is certainly not given. Raises Untold."""
        one = self._found(flag, of_model=of_model)
        if one is None:
            return None
        try:
            return float(one.value or "")
        except ValueError:
            raise Untold(f"--{flag} {one.shown}".rstrip()) from None

    def number(self, flag: str, default: float, *, of_model: bool = False) -> float:
        """Return a number, `default` when the flag is certainly not given. Raises Untold."""
        value = self.maybe(flag, of_model=of_model)
        return default if value is None else value

    def text(self, flag: str, default: str | None = None, *, of_model: bool = False) -> str | None:
        """Return the value as text, `default` when the flag is certainly not given. Raises Untold."""
        one = self._found(flag, of_model=of_model)
        if one is None:
            return default
        if one.value is None:
            raise Untold(f"--{flag} {one.shown}".rstrip())
        return one.value

    def given(self, flag: str, *, of_model: bool = False) -> bool:
        """Return whether the flag is given, with whatever value; a switch that is off is not. Raises Untold."""
        one = self._found(flag, of_model=of_model)
        return one is not None and one.value != "False"

    def on(self, flag: str, *, of_model: bool = False) -> bool:
        """Return whether a switch is on. Raises Untold."""
        if flag == "group-query-attention" and given(self.settings, flag) is None and not self.settings.whole_model:
            return self._grouped()
        state, line = switched(self.settings, flag, of_model=of_model)
        if state is None:
            raise Untold(f"--{flag}")
        if line is not None:
            self.lines.append(line)
        return state

    def _grouped(self) -> bool:
        """Return whether query heads share keys, by config.json; latent attention has no groups. Raises Untold."""
        groups, heads = self._of_config("num-query-groups"), self._of_config("num-attention-heads")
        latent = self.config is not None and field(self.config, "kv_lora_rank") is not None
        return groups is not None and heads is not None and groups.value != heads.value and not latent


@dataclass(frozen=True)
class Rule:
    """One rule. name: what it compares, as the table shows it. source: the program and file that stops by it.

    since, until: the first and last slime release that has it; None: all that are known (v0.1.0 to v0.3.1 and later).
    """

    name: str
    source: str
    check: Callable[[Asked], Broken | None]
    since: Release | None = None
    until: Release | None = None

    def applies(self, release: Release | None) -> bool | None:
        """Return whether a release has this rule; None when that is not known."""
        if self.since is None and self.until is None:
            return True
        if release is None:
            return None
        return (self.since is None or release >= self.since) and (self.until is None or release <= self.until)

    @property
    def span(self) -> str:
        """Return the releases as words."""
        first, last = (".".join(map(str, one)) if one else "" for one in (self.since, self.until))
        return f"v{first}–v{last}" if first and last else f"≥ v{first}" if first else f"≤ v{last}" if last else "all"


@dataclass(frozen=True)
class Result:
    """How one rule came out for one job. broken, untold: at most one of them is set."""

    rule: Rule
    lines: tuple[Given, ...]
    broken: Broken | None = None
    untold: str = ""
    applies: bool | None = True
    certain: bool = True


def release_of(evidence: Evidence) -> Release | None:
    """Return the slime release that the versions name; None when none does or it is no number."""
    versions = read_versions(evidence.paths("versions"))
    for name in ("slime", "image:slime"):
        one = versions.get(name)
        match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![\da-f])", one.text) if one is not None else None
        if match:
            return tuple(int(part or 0) for part in match.groups())
    return None


def jobs_of(evidence: Evidence) -> tuple[Settings, ...]:
    """Return the settings of every job; the log's arguments table belongs to the only job, or to none of several."""
    settings = read_settings(evidence)
    if len(settings.jobs) < 2:
        return (settings,) if settings.known else ()
    return tuple(Settings(launch, job) for launch, job in settings.jobs)


def ask(
    rules: Iterable[Rule], settings: Settings, release: Release | None, config: HfConfig | None = None
) -> list[Result]:
    """Ask every rule of one job."""
    overridden = settings.table is None and any(given(settings, flag) is not None for flag in OVERRIDING)
    results = []
    for rule in rules:
        applies = rule.applies(release)
        if applies is False:
            continue
        asked = Asked(settings, config)
        try:
            broken = rule.check(asked)
        except Untold as missing:
            results.append(Result(rule, tuple(asked.lines), untold=missing.flag, applies=applies))
            continue
        certain = _runs(settings) and not overridden and not any(line.default for line in asked.lines)
        results.append(Result(rule, tuple(asked.lines), broken, applies=applies, certain=certain))
    return results


def judge(
    rules: Iterable[Rule],
    evidence: Evidence,
    report: Progress,
    jobs: Iterable[Settings],
    words: tuple[str, str],
    names: tuple[str, str],
) -> Finding:
    """Return what rules come to over every job: the worst counts.

    words: answers when they hold and when one is broken. names: what the rules are about, in two languages. Without
    a job the finding is unknown.
    """
    release = release_of(evidence)
    asked = tuple(rules)
    config = next((one for path in evidence.paths("hf_checkpoint") if (one := read_config(path)) is not None), None)
    pairs = [(one, _of_job(ask(asked, one, release, config), one, words, names)) for one in jobs]
    if any(finding.verdict is Verdict.OK for _, finding in pairs):
        pairs = [(one, finding) for one, finding in pairs if _runs(one) or finding.verdict is Verdict.OK]
    if not pairs:
        return no_command()
    order = (Verdict.PROBLEM, Verdict.WARNING, Verdict.UNKNOWN, Verdict.OK)
    return tempered(min((finding for _, finding in pairs), key=lambda one: order.index(one.verdict)), evidence, report)


def tempered(finding: Finding, evidence: Evidence, report: Progress) -> Finding:
    """Return the finding, as a warning where the logs show that a job trained in spite of what stops it at its start.

    Then the script is not the one that ran, or its release does not check this.
    """
    if finding.verdict is not Verdict.PROBLEM or not evidence.has("log") or not logs.trained_on(evidence, report):
        return finding
    summary = Text(
        f"{finding.summary.en} The log shows training steps, so the job that ran was not stopped by it.",
        f"{finding.summary.zh}日志中已有训练步，因此实际运行的任务没有被它拦下。",
    )
    return msgspec.structs.replace(finding, verdict=Verdict.WARNING, summary=summary)


def _runs(settings: Settings) -> bool:
    """Return whether the job certainly runs: one that a condition guards may be a combination that never occurs."""
    return settings.job is None or settings.job.sure


def _of_job(results: list[Result], settings: Settings, words: tuple[str, str], names: tuple[str, str]) -> Finding:
    table = _table(results, names)
    broken = [one for one in results if one.broken is not None and one.applies]
    broken.sort(key=lambda one: not (one.certain and one.broken is not None and one.broken.proven))
    if broken:
        first = broken[0]
        assert first.broken is not None
        problem = first.certain and first.broken.proven
        more = len(broken) - 1
        hint = _hint(first)
        citations = _cited(one.lines for one in broken)
        if not citations and settings.job is not None:
            citations = (cite_place(settings.job.place),)
        return found(
            Verdict.PROBLEM if problem and citations else Verdict.WARNING,
            words[1],
            first.broken.en + (f" {more} more rule(s) are broken, see the table." if more else "") + hint[0],
            first.broken.zh + (f"另有 {more} 条规则不满足，见表。" if more else "") + hint[1],
            citations=citations,
            tables=(table,),
        )
    untold = [one for one in results if one.untold]
    if untold:
        return _not_told(results, untold, settings, names)
    release_bound = [one for one in results if one.broken is not None]
    hint = ("", "")
    if release_bound:
        rule = release_bound[0].rule
        hint = (
            f" What breaks “{rule.name}” is refused by slime {rule.span} only; the version is not known.",
            f"不满足“{rule.name}”只有 slime {rule.span} 会拒绝；版本未知。",
        )
    return found(
        Verdict.OK,
        words[0],
        f"All {len(results) - len(release_bound)} rules about {names[0]} hold.{hint[0]}",
        f"关于{names[1]}的 {len(results) - len(release_bound)} 条规则都满足。{hint[1]}",
        citations=_cited(one.lines for one in results)[:4],
        tables=(table,),
    )


def _hint(result: Result) -> tuple[str, str]:
    if result.certain:
        return "", ""
    if any(line.default for line in result.lines):
        return (
            " A value is the default of an environment variable, which the caller may have set.",
            "其中一个值来自环境变量的默认值，调用者可能另有设置。",
        )
    return (
        " The command is conditional, or names a file that may override flags.",
        "该命令带条件，或指定了可能覆盖参数的文件。",
    )


def _not_told(results: list[Result], untold: list[Result], settings: Settings, names: tuple[str, str]) -> Finding:
    flags = list(dict.fromkeys(one.untold for one in untold))
    shown = ", ".join(flags[:4]) + (", …" if len(flags) > 4 else "")
    held = len(results) - len(untold)
    gap = next(iter(_gaps(settings)), None)
    why = f" ({gap.what}: {gap.why})" if gap is not None else ""
    return unknown(
        f"{held} of {len(results)} rules about {names[0]} hold; the rest needs {shown or 'the command'}, which is not "
        f"certain here{why}.",
        f"关于{names[1]}的 {len(results)} 条规则中 {held} 条满足；其余需要 {shown or '完整命令'}，此处无法确定{why}。",
        settle_en="attach the whole launch script with its model script, or a log with the arguments table",
        settle_zh="附上完整的启动脚本（连同模型脚本），或含参数表的日志",
        slots=("launch", "log"),
        citations=_cited(one.lines for one in untold)[:4],
    )


def _gaps(settings: Settings) -> tuple[Gap, ...]:
    return (*(settings.job.gaps if settings.job else ()), *(settings.launch.gaps if settings.launch else ()))


def _cited(groups: Iterable[tuple[Given, ...]]) -> tuple[Citation, ...]:
    return tuple(dict.fromkeys(line.citation for lines in groups for line in lines))[:8]


def _table(results: list[Result], names: tuple[str, str]) -> Table:
    rows = []
    for one in sorted(results, key=lambda each: (each.broken is None, not each.untold)):
        state = (
            "=" if one.broken is None and not one.untold else "?" if one.untold else "BROKEN" if one.applies else "≠?"
        )
        values = " ".join(dict.fromkeys(line.shown for line in one.lines)) if not one.untold else one.untold
        rows.append((state, one.rule.name, sanitise(values, 40), one.rule.span, one.rule.source))
    return Table(
        Text(f"Rules about {names[0]}", f"关于{names[1]}的规则"),
        ("", "rule", "values", "slime", "source"),
        tuple(rows),
    )
