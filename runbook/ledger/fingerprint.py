"""The fingerprint of a confirmed cause: what is the same whenever the same fault happens again.

It is made of the cause, the probe that proved it and the first line that it cites, from which everything is taken that
differs from run to run. Invariants: one table of rules (RULES) does that, in its order, each with its reason; no digit
is left, and no rule looks at which digits stand somewhere, so that another number never makes another fingerprint; a
word of the line that is no name of a file's folder, a machine or a person stays, so that another word does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from runbook.finding import Finding
from runbook.text import CUT, EXCERPT_LIMIT, sanitise
from runbook.ticket import names
from runbook.triage import Verdicted

SCHEME = 1
"""Raised when a rule changes: fingerprints of two schemes are never equal."""

LENGTH = 160
"""Characters of the text that count. An excerpt is cut at EXCERPT_LIMIT, elsewhere in every run; its begin is not."""

_NUMBER = "\0"
"""Stands for a number while the rules work: no line that was sanitised holds it. It is written as "#"."""


class Fingerprint(NamedTuple):
    """id: 16 hex digits. text: the line as it was compared, not redacted."""

    id: str
    cause: str
    probe: str
    text: str


class Rule(NamedTuple):
    """One thing that differs from run to run. taken_out: the line without it. why: what writes it so."""

    taken_out: Callable[[str], str]
    why: str


def _rule(pattern: str, replacement: str | Callable[[re.Match[str]], str], why: str) -> Rule:
    return Rule(partial(re.compile(pattern).sub, replacement), why)


def _file_name(found: re.Match[str]) -> str:
    """Return the file that a path names, "<path>" for a folder: programs name their files, people their folders."""
    last = found[0].rstrip("/").rpartition("/")[2]
    return last if _WITH_SUFFIX.search(last) else "<path>"


_WITH_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,11}(?:\.\d+)*$")

_WORD = re.compile(r"[^\W\d_]{2}")
_DIGIT = re.compile(r"\d")


def _without_names(text: str) -> str:
    """Return the text without the names of machines and people that a ticket would hide.

    They are sought where every digit is the same one: `node07` and `node12` must be found alike.
    """
    even = _DIGIT.sub("7", text)
    for finder, word in ((names.mails, "<mail>"), (names.hosts, "<host>"), (names.users, "<user>")):
        for span in sorted(finder(even), reverse=True):
            if "<" not in even[span.start : span.end]:
                text = f"{text[: span.start]}{word}{text[span.end :]}"
                even = f"{even[: span.start]}{word}{even[span.end :]}"
    return text


_DATE = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s+)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d+"
_HEX = r"[0-9A-Fa-f]{1,4}"
_CLOCK = r"\d+:\d+:\d+(?:[.,]\d+)?"
_SIZES = r"(?:[KMGTPkmgtp]?i?[Bb]|[Bb]ytes?)"
_TIMES = r"(?:ns|us|µs|ms|s|sec|secs|seconds?|milliseconds?|min|mins|minutes?|h|hours?|days?)"

RULES: tuple[Rule, ...] = (
    _rule(
        r"^\s*\([\w.:<>-]+ (?:pid=\d+(?:, ip=[^)]*)?|\+[\dhms]+)\)\s*|^\s*\((?:raylet|gcs_server|autoscaler)\)\s*",
        "",
        "Ray puts the actor, its process and its address before a line, or who it is and how long it runs",
    ),
    _rule(
        r"\s*\[repeated \d+x across cluster\].*$",
        "",
        "Ray says once how many processes printed the line (log deduplication)",
    ),
    _rule(
        r"^(?:\[(?:rank|default)\d+\]:?\s*)+",
        "",
        "torchrun and PyTorch put the rank before a line, where there are several",
    ),
    _rule(r"(?<=://)[^\s/'\"<>()\[\]{},]+", "<host>", "an address of a service: machine and port"),
    _rule(
        r"(?<![\w>/.~-])(?:~[\w.-]*|\.{1,2}|/[^\s/'\"`,;:()\[\]{}<>|=]+)(?:/[^\s/'\"`,;:()\[\]{}<>|=]+)+/?",
        _file_name,
        "where a program, a checkpoint or a home lies is the run's own; the file's name is the program's",
    ),
    _rule(
        rf"(?<![\w:.-])(?=[0-9A-Fa-f:]*\d)(?:(?:{_HEX}:){{3,7}}{_HEX}|(?:{_HEX}:)*(?:{_HEX})?::(?:{_HEX}:)*(?:{_HEX})?)"
        r"(?:%\w+)?(?![\w:])",
        _NUMBER,
        "an IPv6 or a hardware address",
    ),
    Rule(_without_names, "machines and people by their look, as a ticket hides them"),
    _rule(
        rf"(?<!\w)[DIWEF]\d+ {_CLOCK} (?:\d+ )?",
        "",
        "glog, as in ProcessGroupNCCL, begins with severity, date, time and thread",
    ),
    _rule(
        rf"\[?\d+-\d+-\d+[ T]{_CLOCK}(?:Z|[+-]\d+:?\d*)?(?: (?:[A-Z]P\d+ ?)+)?\]?\s*",
        "",
        "logging prints date and time; servers with several ranks print these beside it",
    ),
    _rule(rf"{_DATE} {_CLOCK}(?:\s+[A-Z]{{3,4}}\b)?(?:\s+\d+)?\s*", "", "syslog and `date` name month and weekday"),
    _rule(
        r"\d+%\|[^|]*\|[^\[\]]{0,40}\[[^\[\]]*\]|\d+it \[[^\[\]]*\]",
        "<bar>",
        "tqdm draws percent, bar, count, time and rate",
    ),
    _rule(r"(\b[^<]{0,80}<bar>)(?:\s*\1)+", r"\1", "each bar is drawn over the one before it"),
    _rule(r"[█▉▊▋▌▍▎▏━╸╺─]+|[#=>.-]{8,}", "", "bars and rules are as long as there was room"),
    _rule(
        r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Fa-f])",
        _NUMBER,
        "a UUID: of a GPU, a process group, a request",
    ),
    _rule(r"\d+[xX][0-9A-Fa-f]+(?!\w)", _NUMBER, "a pointer, a program counter, a shape"),
    _rule(r"\b(I[Dd]|id)([:=]\s*)\w+", rf"\1\2{_NUMBER}", "Ray names nodes, workers and tasks by hex digits, also few"),
    _rule(
        r"(?<!\w)(?:[0-9a-f]{12,}|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,})(?!\w)",
        _NUMBER,
        "an id in hex digits: of an actor, a commit, a core dump",
    ),
    _rule(
        r"(?i)\b(host(?:name)?|node(?: name)?)(\s*[:=]\s*)[^\s,;)\]}'\"]+|(?<=, node )[\w.-]+(?=, device)",
        r"\1\2<host>",
        "a machine that is announced as one",
    ),
    _rule(r"raysubmit_\w+", "<job>", "Ray draws the name of a job by lot"),
    _rule(
        rf"(?<![\w.-])[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?\s?(?:{_SIZES}|{_TIMES})(?:/s)?(?!\w)",
        _NUMBER,
        "a size, a duration: their unit goes with their number",
    ),
    _rule(rf"(?<![\w.)\]])[-+](?=\.?[\d{_NUMBER}])", "", "the sign of a number"),
    _rule(r"\d+(?:[.,_]\d+)*(?:[eE][-+]?\d+)?%?", _NUMBER, "steps, counts, ports, ranks, layers, lines, addresses"),
    _rule(rf"{_NUMBER}(?:\s*[,x×]\s*{_NUMBER})+", _NUMBER, "a shape or a list of numbers, of any length"),
    _rule(rf"{_NUMBER}(?:[.,]?{_NUMBER})+", _NUMBER, "a long number that an earlier rule took in two parts"),
    _rule(r"\s+", " ", "columns are as wide as what stands in them"),
)  # fmt: skip
"""What is taken out, in this order. `\\d+` wherever digits stand: which ones, and how many, must not matter."""


def fingerprint(cause: Verdicted) -> Fingerprint | None:
    """Return the fingerprint of a confirmed cause, None for one that no finding proves."""
    if not cause.by:
        return None
    first = cause.by[0]
    return _made(cause.cause, first.probe, _line(first))


def _line(finding: Finding) -> str:
    """Return the first line with a word in it that a finding cites; the word it answered with where there is none."""
    return next(
        (cited.excerpt for cited in finding.citations if _WORD.search(same(cited.excerpt))), finding.answer or ""
    )


@lru_cache(maxsize=512)
def _made(cause: str, probe: str, line: str) -> Fingerprint:
    text = same(line)
    whole = "\0".join((str(SCHEME), cause, probe, text))
    id = hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return Fingerprint(id, cause, probe, begin(text, LENGTH))


def same(line: str) -> str:
    """Return what is the same in every run of a line that a program printed, at most LENGTH characters."""
    text = sanitise(line, EXCERPT_LIMIT).removesuffix(CUT)
    for rule in RULES:
        text = rule.taken_out(text)
    return text.replace(_NUMBER, "#").strip()[:LENGTH].rstrip()


def begin(text: str, most: int) -> str:
    """Return the begin of a text in whole words: half of a name is no name that redaction would know."""
    kept = text[:most]
    return text if len(text) < most else (kept[: kept.rfind(" ")].rstrip() if " " in kept else kept)
