"""Whether Ray can load debugpy.

Ray (ray/util/debugpy.py) compares the version as a *string* with "1.8.0": 1.8.x passes, and so would 1.9, but 1.10
and later are refused. When it cannot load debugpy it logs `Module 'debugpy>=1.8.0' cannot be loaded.` and goes on
without stopping at the breakpoint. The version stands in the output of `pip freeze`, or in what pip printed into the
log.
"""

from __future__ import annotations

from probes import logs
from probes.readers.joblog import citation
from probes.readers.logscan import signature
from probes.readers.versions import Version, read_versions
from probes.thresholds import evidence as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

WANTED = "1.8.0"
REFUSED = signature("debugpy", "Module 'debugpy>=1.8.0' cannot be loaded")
PRINTED = signature(
    "debugpy-version",
    ("debugpy==", " debugpy-"),
    r"(?:^|[\s)])debugpy==(\d[\w.]{0,30})\s*$"
    r"|Successfully installed (?:\S{1,200} ){0,400}debugpy-(\d[\w.]{0,30})(?:\s|$)",
)


@probe(
    "ray_debugger.debugpy",
    needs="versions|log",
    answers=("right", "other-version", "absent"),
    en="Is debugpy there in a version that Ray accepts?",
    zh="debugpy 是否存在，且版本为 Ray 所接受？",
    deadline=logs.DEADLINE,
)
def debugpy(evidence: Evidence, report: Progress) -> Finding:
    """Read the version, and Ray's own complaint in the log, which weighs more."""
    versions = read_versions(evidence.paths("versions"))
    scanned = logs.collect(evidence, report, [REFUSED, PRINTED])
    installed = versions.get("debugpy")
    if installed is None and (printed := scanned.of(PRINTED.label)):
        text = next((group for group in printed[-1].groups if group), b"").decode("ascii", "replace")
        installed = Version("debugpy", text, citation(printed[-1]))
    if installed is not None and installed.text < WANTED:
        return _judged(installed)
    for hit in scanned.standing(REFUSED.label)[:1]:
        return found(
            Verdict.PROBLEM,
            "absent",
            "Ray could not load debugpy (absent, or of a version that it refuses), so breakpoints do not stop.",
            "Ray 无法加载 debugpy（不存在或版本被拒绝），断点不会停下。",
            citations=(citation(hit),),
        )
    if installed is not None:
        return _judged(installed)
    if len(versions) >= limits.WHOLE_FREEZE.value:
        first = next(iter(versions.values()))
        return found(
            Verdict.WARNING,
            "absent",
            f"debugpy is not among the {len(versions)} installed packages.",
            f"已安装的 {len(versions)} 个包里没有 debugpy。",
            citations=(first.citation,),
        )
    return unknown(
        "The version of debugpy is not known.",
        "不知道 debugpy 的版本。",
        settle_en="attach the output of `pip freeze`",
        settle_zh="附上 `pip freeze` 的输出",
        slots=("versions",),
    )


def _judged(installed: Version) -> Finding:
    """Compare a version as Ray does."""
    accepted = not installed.text < WANTED
    return found(
        Verdict.OK if accepted else Verdict.PROBLEM,
        "right" if accepted else "other-version",
        f"debugpy {installed.text} is installed"
        + (", which Ray accepts." if accepted else f"; Ray compares it as a string with {WANTED} and refuses it."),
        f"已安装 debugpy {installed.text}"
        + ("，Ray 接受该版本。" if accepted else f"；Ray 把它当字符串与 {WANTED} 比较，会拒绝它。"),
        citations=(installed.citation,),
    )
