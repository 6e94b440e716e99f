"""Finds people and machines: user names, e-mail addresses, host names and network addresses.

What looks alike is told apart by where it stands: `2.10.0.1` after "version" is none, `train.py`, `model.safetensors`
and `torch.cuda.nccl` are no hosts, `pass@1` is no e-mail address. Every search is linear: words are taken whole, at
their boundaries, and judged one by one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from runbook.ticket.span import ADDRESS, HOST, MAIL, USER, WORD_START, Span
from runbook.ticket.wordlists import (
    EXTENSIONS,
    FOLDERS,
    LOOSE_SUFFIXES,
    MODEL_FAMILIES,
    NO_USERS,
    PUBLIC_HOSTS,
    SUFFIXES,
)

PSEUDONYM = re.compile(
    WORD_START + r"(?!ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?![A-Za-z0-9_-]))"
    r"(?:user|host|ip|mail|secret|hidden)-[0-9]{1,6}(?![A-Za-z0-9])"
)
"""What the redaction itself writes; it is never redacted again."""

_USER_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
_HOME = re.compile(rf"(?:[/\\]|%2[Ff])(?:home|homes|Users|users|user)(?:[/\\]{{1,4}}|%2[Ff])({_USER_NAME})")
_MOUNT = re.compile(rf"(?<![A-Za-z0-9_.-])/(?:mnt/[A-Za-z0-9_.-]{{1,64}}|scratch|fsx|lustre)/({_USER_NAME})/")
_TILDE = re.compile(r"(?<![\w/~.-])~([A-Za-z_][A-Za-z0-9_.-]{0,63})(?=/)")
_USER_SAID = re.compile(
    r"(?:\b(?:USER|LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER)=[\"']?"
    r"|[\"']user_?name[\"']\s?:\s?[\"']|\b[Ll]ogged in as:?\s|\bfor user\s|\buid=\d{1,10}\()"
    rf"({_USER_NAME})"
)
_WORD = re.compile(WORD_START + r"(?<![_.-])[A-Za-z0-9_][A-Za-z0-9_.-]*")
_URL = re.compile(
    r"(?<![A-Za-z0-9])([a-z][a-z0-9]{1,9}(?:\+[a-z0-9]{2,6})?)://"
    r"(?:[^\s/?#\"'<>]{0,320}@)?([A-Za-z0-9_][A-Za-z0-9_.-]*)"
)
_NO_HOST_SCHEMES = {"file", "env", "ipc", "inproc", "unix", "shm", "pkg", "data", "about"}
_HOST_SAID = re.compile(
    r"(?:\b(?:HOSTNAME|HOST|NODENAME|SLURMD_NODENAME|NODE_NAME|MASTER_ADDR|HEAD_NODE|host_?name|node_?name|node name"
    r"|nodelist|master_addr)"
    r"[\"'\\]{0,3}(?:\s?[:=]\s?|\s?\.{3,100}\s?|\s)[\"'\\]{0,3}"
    r"|--(?:master[-_]addr|node[-_]name|nodelist|host|hostname|rdzv[-_]endpoint)[= ][\"'\\]{0,3}"
    r"|[\"'](?:host|node|server|address|addr|endpoint)[\"']\s?:\s?[\"']"
    r"|\b(?:host|node|server|address|addr|endpoint|ip)(?:=|:\s)[\"'\\]{0,3}"
    r"|\b(?:[Cc]onnect(?:ing|ed|ion)? (?:to|from)|[Ll]istening on|[Ll]aunched at|addresses of|[Ss]sh|reach)"
    r" [\[(\"']{0,2})"
    r"([A-Za-z0-9_][A-Za-z0-9_.-]*)(\[[0-9,-]{1,200}\])?"
)
_STRONG_SAID = re.compile(r"(?i:host_?name|node_?name|node name|nodelist|master|head_node)|^HOST|--")
_BRACKETED = re.compile(r"\[([A-Za-z][A-Za-z0-9_.-]*)\]:\d{2,5}(?!\d)")
_NCCL = re.compile(r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_][A-Za-z0-9_.-]*):\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL")
_SYSLOG = re.compile(
    r"(?:\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"|T\d\d:\d\d:\d\d[\d.,]{0,10}(?:Z|[+-]\d\d:?\d\d)) "
    r"([A-Za-z0-9_][A-Za-z0-9_.-]*) [A-Za-z][\w./-]{0,40}(?:\[\d{1,9}\])?: "
)
_CLOUD_HOST = re.compile(r"(?<![A-Za-z0-9_.-])ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?![A-Za-z0-9_-])")
_QUAD = re.compile(WORD_START + r"(?<![_.])(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9_]|\.\d)")
_SIX = re.compile(r"(?<![A-Za-z0-9_.:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![A-Za-z0-9_:])")
_VERSION_BEFORE = re.compile(
    r"(?i)(?:==|>=|<=|~=|!=|[-_+]|\bv"
    r"|\b(?:version|ver|release|driver|toolkit|cudnn|nccl|cuda|python|build|rev)\b[\"']?[\s:=(]{0,4})$"
)
_MAIL_LOCAL = re.compile(r"[A-Za-z0-9._%+-]{1,64}$")
_MAIL_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,253}")
_LOGIN_AT = re.compile(r"(?<![A-Za-z0-9_.-])[a-z_][a-z0-9_.-]{0,31}$")
_NO_HOST = re.compile(
    r"(?i)^(?:(?:rank|cuda|cpu|tp|pp|dp|ep|cp|etp|vpp|stage|layer|expert|step|iter|hip|xpu|port|pid|localhost)"
    r"[-_.:]?\d{0,4}|v?\d[\d.,_-]*[a-z]{0,4}\d*|0x[0-9a-f]+|[0-9a-f]{7,64}|n/?a|none|null|true|false|auto|all|any|unknown"
    r"|localhost[.\w-]*|.)$"
)
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]{1,15}")


def users(text: str) -> Iterator[Span]:
    """Yield user names: in home paths, on mounts, in variables that hold them and before "@host"."""
    for pattern in (_HOME, _TILDE, _USER_SAID):
        for match in pattern.finditer(text):
            yield from _user(text, *match.span(1))
    for match in _MOUNT.finditer(text):
        name = match[1]
        if name.islower() and name not in FOLDERS and not name.startswith(MODEL_FAMILIES):
            yield from _user(text, *match.span(1))


def _user(text: str, start: int, end: int) -> Iterator[Span]:
    name = text[start:end].rstrip(".-")
    end = start + len(name)
    if name not in NO_USERS:
        whole = text[end : end + 1] != "…"
        yield Span(start, end, USER, whole and len(name) >= 3)


def mails(text: str) -> Iterator[Span]:
    """Yield e-mail addresses, and user and host of `user@host`."""
    at = text.find("@")
    while at >= 0:
        local = _MAIL_LOCAL.search(text, max(0, at - 64), at)
        domain = _MAIL_DOMAIN.match(text, at + 1)
        if local is not None and domain is not None:
            yield from _at(text, local.start(), at, at + 1 + len(domain[0].rstrip(".-")))
        at = text.find("@", at + 1)


def _at(text: str, start: int, at: int, end: int) -> Iterator[Span]:
    local, domain = text[start:at], text[at + 1 : end]
    size = _domain_size(domain)
    if size:
        if local != "git":
            yield Span(start, at + 1 + size, MAIL, everywhere=True)
        return
    login = _LOGIN_AT.search(text, max(0, at - 32), at)
    odd = domain[0].isalpha() and "." not in domain and is_odd(domain) and not PSEUDONYM.fullmatch(domain)
    if login is not None and odd and is_host(domain):
        yield from _user(text, login.start(), at)
        yield Span(at + 1, end, HOST, everywhere=True)


def _domain_size(text: str) -> int:
    """Return how many characters at the start of `text` are a domain name, 0 when none are.

    A name ends with a known last label, after which anything but a letter, a digit or "_" may follow.
    """
    size = found = 0
    for number, label in enumerate(text.split(".")):
        head = label.partition("-")[0]
        if number and (head.lower() in SUFFIXES or head.lower() in LOOSE_SUFFIXES):
            found = size + len(head)
        size += len(label) + 1
    return found


def addresses(text: str) -> Iterator[Span]:
    """Yield IPv4 and IPv6 addresses that name one machine; loopback, unspecified and broadcast ones stay."""
    for match in _QUAD.finditer(text):
        if is_address(match[0]) and not _VERSION_BEFORE.search(text, max(0, match.start() - 24), match.start()):
            yield Span(match.start(), match.end(), ADDRESS)
    for match in _SIX.finditer(text):
        if _names_one_machine(match[0]):
            yield Span(match.start(), match.end(), ADDRESS)


def is_address(quad: str) -> bool:
    """Return whether four numbers are an IPv4 address of one machine."""
    try:
        address = ipaddress.IPv4Address(quad)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_multicast or quad.startswith(("0.", "255.")))


def _names_one_machine(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return len(text.partition(":")[0]) == 4 and text[0].lower() in "23f"


def hosts(text: str) -> Iterator[Span]:
    """Yield host names: in URLs, after words that announce one, before NCCL and syslog lines, and full domain names."""
    for match in _URL.finditer(text):
        if match[1] not in _NO_HOST_SCHEMES:
            yield from _host(text, *match.span(2), strong=True)
    for match in _HOST_SAID.finditer(text):
        announced = text[match.start() : match.start(1)]
        strong = _STRONG_SAID.search(announced) is not None and any(c in "=:.-" for c in announced)
        end = match.end() if match[2] else match.end(1)
        yield from _host(text, match.start(1), end, strong=strong)
    for pattern in (_NCCL, _SYSLOG, _BRACKETED):
        for match in pattern.finditer(text):
            yield from _host(text, *match.span(1), strong=pattern is not _BRACKETED)
    for match in _CLOUD_HOST.finditer(text):
        yield Span(match.start(), match.end(), HOST, everywhere=True)
    for match in _WORD.finditer(text):
        if "." in match[0] and _is_domain(match[0].rstrip(".-"), text[match.end() : match.end() + 2]):
            yield from _host(text, *match.span(), strong=True)


def _host(text: str, start: int, end: int, *, strong: bool) -> Iterator[Span]:
    name = text[start:end].rstrip(".-")
    if not is_host(name) or (not strong and not is_odd(name)):
        return
    yield Span(start, start + len(name), HOST, is_odd(name) or len(name) >= 5)
    short = name.partition(".")[0]
    if short != name and is_odd(short) and is_host(short):
        # The first label of a full name is how the machine calls itself elsewhere.
        yield Span(start, start + len(short), HOST, everywhere=True)


def is_host(name: str) -> bool:
    """Return whether a word that stands where a host is named is one that must be hidden."""
    lower = name.lower()
    if (
        not name
        or _NO_HOST.match(name)
        or _PLACEHOLDER.fullmatch(name)
        or _is_public(lower)
        or not any(c.isalpha() for c in name)
    ):
        return False
    return lower.rpartition(".")[2] not in EXTENSIONS if "." in name else True


def is_odd(name: str) -> bool:
    """Return whether a name is unlike any ordinary word: it holds a digit, a hyphen or a dot."""
    return len(name) >= 3 and any(c in "0123456789-." for c in name)


def _is_public(lower: str) -> bool:
    return any(lower == host or lower.endswith(f".{host}") for host in PUBLIC_HOSTS)


def _is_domain(name: str, after: str) -> bool:
    """Return whether a dotted word that stands anywhere is a full domain name and no path of Python or of tensors."""
    labels = name.lower().split(".")
    last = labels[-1]
    if after[:1] == "(" or len(labels) < 2 or any(not label or "_" in label for label in labels):
        return False
    if last in SUFFIXES:
        return True
    if last not in LOOSE_SUFFIXES:
        return False
    port = after[:1] == ":" and after[1:].isdigit()
    return port or any(c in "-0123456789" for label in labels[:-1] for c in label)
