"""Finds people and machines by their names: users, e-mail addresses, hosts.

What looks alike is told apart by where it stands: `train.py`, `model.safetensors` and `torch.cuda.nccl` are no hosts,
`pass@1` is no e-mail address. Every search is linear: words are taken whole, at
their boundaries, and judged one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runbook.ticket.span import HOST, MAIL, PSEUDONYM, USER, Gate, Span
from runbook.ticket.wordlists import (
    EXTENSIONS,
    FOLDERS,
    LOOSE_SUFFIXES,
    MODEL_FAMILIES,
    NO_DOMAINS,
    NO_USERS,
    PUBLIC_HOSTS,
    SUFFIXES,
)

_LETTER = r"(?:(?u:[^\W\d])|%[0-9A-Fa-f]{2}|\\{1,2}(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}))"
_USER_NAME = rf"{_LETTER}(?:(?u:[\w.-])|{_LETTER}){{0,63}}"
"""A name in any script, percent-encoded or under the escapes of JSON, Python or a shell, too."""
_SEP = r"(?:[/\\]{1,4}|%2[Ff])"
_HOME = Gate(
    rf"(?:[/\\]|%2[Ff])(?:home\d{{0,3}}|homes|Users|users|user|usr\d)(?:[/\\]{{1,4}}|%2[Ff])({_USER_NAME})",
    "/home",
    "/user",
    "/usr",
    "\\home",
    "\\user",
    "\\usr",
    "%2f",
)
_WINDOWS_HOME = Gate(
    r"[A-Za-z]:[/\\]{1,4}Users[/\\]{1,4}([^/\\:*?\"<>|\n]{2,64})(?=[/\\])",
    "users",
)
_MOUNT = Gate(
    rf"(?<![A-Za-z0-9_.-])/(?:(?:mnt|cpfs\d{{0,2}}|gpfs\d{{0,2}}|nas|vol|volume\d?)/[A-Za-z0-9_.-]{{1,64}}|scratch\d?|fsx|lustre)"
    rf"/({_USER_NAME})(?=/)",
    "/mnt/",
    "/cpfs",
    "/gpfs",
    "/nas/",
    "/vol",
    "/scratch",
    "/fsx/",
    "/lustre/",
)
_DISK = Gate(
    r"(?<![A-Za-z0-9_.-])/(?:mnt|(?:data|disk|ssd|nvme|nfs|hdd|raid|storage|work|fast|u)\d{0,3})/"
    rf"(?:({_USER_NAME})(?=/)|([a-z]{{3,16}})(?=[\s\"',;:)\]]|$))",
    "/mnt/",
    "/data",
    "/disk",
    "/ssd",
    "/nvme",
    "/nfs",
    "/hdd",
    "/raid",
    "/storage",
    "/work",
    "/fast",
    "/u",
)
"""Where a user's folder may be, and a project's as well: what is found there is not sought elsewhere."""
_TILDE = Gate(
    r"(?<![\w/~.-])~([A-Za-z_][A-Za-z0-9_.-]{0,63})(?=/)",
    "~",
)
_USER_SAID = Gate(
    r"(?:(?<![A-Za-z0-9])(?:USER|LOGNAME|USERNAME|SUDO_USER|JOB_USER|JOB_OWNER|user|owner|login|[Uu]ser_?[Nn]ame|[Uu]ser_?[Ii]d"
    r"|[Jj]ob_?[Oo]wner|[Ss]ubmitted_?[Bb]y)=\\{0,2}[\"']?"
    r"|[\"'](?:user_?name|user_?id|owner|login|submitted_by|created_by)\\{0,2}[\"']\s?:\s?\\{0,2}[\"']"
    r"|[\"']user\\{0,2}[\"']\s?:\s?\\{0,2}[\"'](?=[\w.-]{1,64}\\{0,2}[\"'])"
    r"|\b[Ll]ogged in as:?\s|\b(?:for|by|as) user[\s:]\s?|\buid=\d{1,10}\("
    r"|\b(?:[Ss]ubmitted|[Ss]tarted|[Ll]aunched|[Oo]wned|[Kk]illed|[Cc]ancelled) by:?\s(?:user\s)?"
    r"(?=[a-z][\w.-]{1,31}\s(?:at|on|in)\b)"
    r"|\b(?:job|Job|file|process|run) owner(?: is|:)\s{1,3}|(?<![\w.])(?:user_?name|login name|owner)(?:: {1,3}| ?= ?))"
    rf"({_USER_NAME})",
    "user",
    "logname",
    "owner",
    "login",
    "logged in",
    "uid=",
    "submitted",
    "started by",
    "launched by",
    "killed by",
    "cancelled by",
    "created_by",
)
_AUTHOR = Gate(
    r"\b(?:Author|Committer|Co-authored-by|Signed-off-by|Reported-by|From): {0,3}([^<>\n@:]{2,64}?) {0,2}<",
    "author: ",
    "committer: ",
    "co-authored-by: ",
    "signed-off-by: ",
    "reported-by: ",
    "from: ",
)
_LISTED = re.compile(
    r"(?m)^\s{0,8}(?:[-dl](?:[r-][w-][xsStT-]){3}[.+@]?\s+\d{1,6}\s+(?P<file>[\w.-]{2,32})\s+[\w.-]{1,32}\s+\d"
    r"|(?P<process>[a-z_][\w.+-]{1,31})\s{1,12}\d{1,9}\s{1,5}\d{1,4}(?:\.\d)?\s{1,5}\d{1,3}\.\d\s{1,8}\d{1,12}\s{1,8}\d{1,12}\s)",
    re.ASCII,
)
"""A line of `ls -l` or of `ps aux`."""
_PROMPT = Gate(
    r"(?<![\w.-])([a-z_][a-z0-9_.-]{0,31})@([A-Za-z][A-Za-z0-9.-]{0,63})(?::(?:~|/[\w./-]{0,200})[$#]?|\s(?:~|[\w./-]{1,64})\][$#])",
    "@",
)
_LAST_LABEL = re.compile(
    rf"(?i)\.(?:{'|'.join(sorted(SUFFIXES | LOOSE_SUFFIXES))})(?![A-Za-z0-9_]|[.-]{{1,4}}[A-Za-z0-9_])"
)
_WORD_BEFORE = re.compile(
    r"(?:(?<![A-Za-z0-9_.%-])|(?<=%)(?!2[Ff]|3[AaDd]|[24]0)|(?<=%2[Ff])|(?<=%3[AaDd])|(?<=%[24]0))[A-Za-z0-9_][A-Za-z0-9_.-]*$"
)
_URL = Gate(
    r"(?<![A-Za-z0-9])([a-z][a-z0-9]{1,9}(?:\+[a-z0-9]{2,6})?)://"
    r"(?:[^\s/?#\"'<>]{0,320}@)?([A-Za-z0-9_][A-Za-z0-9_.-]*)",
    "://",
)
_NO_HOST_SCHEMES = {"file", "env", "ipc", "inproc", "unix", "shm", "pkg", "data", "about"}
_HOST_SAID = Gate(
    r"(?:(?<![A-Za-z0-9])(?:HOSTNAME|HOST|NODENAME|NODE_NAME|POD_NAME|MASTER_ADDR|HEAD_NODE|HEAD_ADDR|RAY_ADDRESS|NODE_?LIST"
    r"|host_?name|node_?name|node name|nodelist|master_addr|BatchHost)"
    r"[\"'\\]{0,3}(?:\s?[:=]\s?|\s?\.{3,100}\s?|\s)[\"'\\]{0,3}"
    r"|--(?:master[-_]addr|node[-_]name|nodelist|host|hostname|rdzv[-_]endpoint|dist[-_]init[-_]addr|node[-_]ip[-_]address"
    r"|head[-_]node(?:[-_]ip)?)[= ][\"'\\]{0,3}"
    r"|[Cc]ould not resolve host(?:name)?:? |[Uu]nknown host:? |connect to host |srun: error: "
    r"|\*\*\* (?:JOB|STEP) \S{1,20} ON "
    r"|[\"'](?:host|node|server|address|addr|endpoint)[\"']\s?:\s?[\"']"
    r"|\b(?:host|node|server|address|addr|endpoint|ip)(?:=|:\s)[\"'\\]{0,3}"
    r"|\b(?:[Cc]onnect(?:ing|ed|ion)? (?:to|from)|[Ll]istening on|[Ll]aunched at|addresses of|[Ss]sh|reach)"
    r" [\[(\"']{0,2})"
    r"([A-Za-z0-9_][A-Za-z0-9_.-]*)(\[[0-9,-]{1,200}\])?",
    "host",
    "node",
    "pod_name",
    "_addr",
    "-addr",
    "ray_address",
    "server",
    "address",
    "addr",
    "endpoint",
    "ip=",
    "ip: ",
    "connect",
    "listening on",
    "launched at",
    "ssh",
    "reach",
    "srun: error: ",
    "*** ",
    "nodelist",
)
_STRONG_SAID = re.compile(
    r"(?i:host_?name|node_?name|node name|node_?list|master|head_node|_addr"
    r"|resolve host|unknown host|to host|batchhost)|^HOST|--|\*\*\*"
)
_MORE = re.compile(r",([A-Za-z0-9_][A-Za-z0-9_.-]*)(?:\[[0-9,-]{1,200}\])?")
"""A further name in a list of machines."""
_MPI = re.compile(r"(?m)^\[([A-Za-z][A-Za-z0-9_.-]*):\d{2,8}\] ", re.ASCII)
_HOSTS_FILE = re.compile(r"(?m)^\s{0,8}(?:\d{1,3}\.){3}\d{1,3}((?:[ \t]{1,16}[A-Za-z][A-Za-z0-9.-]{1,63}){1,6})[ \t]*$")
_BY_LOOK = Gate(
    r"(?<![A-Za-z0-9])(?:[dh]gx[-_]?[a-z0-9]{1,16}(?:-[a-z0-9]{1,16}){0,4}"
    r"|(?:[a-z]{1,12}-){0,2}(?:gpu|cpu|compute|login|worker|master|head|ray|kube|k8s|[abh]\d{2,3})-?(?:node|server|host|machine)s?-?\d{1,5}"
    r"|node-?0\d{1,4}|node-?\d{3,5}|gpu-?0\d{1,4})(?![A-Za-z0-9])",
    "dgx",
    "hgx",
    "node",
    "server",
    "host",
    "machine",
    "gpu",
)
"""What nobody calls anything but a machine."""
_POD = Gate(r"\b(?:pods?|node)/([a-z0-9][a-z0-9.-]{2,80})", "pod", "node/")
_POD_END = re.compile(r"-[bcdf-hj-np-tv-z0-9]{8,10}-[bcdf-hj-np-tv-z0-9]{5}(?![A-Za-z0-9_-])")
_POD_START = re.compile(r"(?<![A-Za-z0-9-])[a-z][a-z0-9-]{0,60}$")
"""A pod of a deployment: its name, then two suffixes that hold no vowel."""
_BRACKETED = Gate(
    r"\[([A-Za-z][A-Za-z0-9_.-]*)\]:\d{2,5}(?!\d)",
    "]:",
)
_NCCL = Gate(
    r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_][A-Za-z0-9_.-]*):\d{1,9}:\d{1,9} \[\d{1,3}\] NCCL",
    "] nccl",
)
_SYSLOG = re.compile(
    r"(?:\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"|T\d\d:\d\d:\d\d[\d.,]{0,10}(?:Z|[+-]\d\d:?\d\d)) "
    r"([A-Za-z0-9_][A-Za-z0-9_.-]*) [A-Za-z][\w./-]{0,40}(?:\[\d{1,9}\])?: ",
    re.ASCII,
)
_CLOUD_HOST = Gate(
    r"(?<![A-Za-z0-9_.-])ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?![A-Za-z0-9_-])",
    "ip-",
)
_AT = re.compile("@|%40")
_MAIL_LOCAL = re.compile(r"[A-Za-z0-9._%+-]{1,64}$")
_MAIL_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,253}")
_LOGIN_AT = re.compile(r"(?<![A-Za-z0-9_.-])[a-z_][a-z0-9_.-]{0,31}$")
_NO_HOST = re.compile(
    r"(?i)^(?:(?:rank|cuda|cpu|tp|pp|dp|ep|cp|etp|vpp|stage|layer|expert|step|iter|hip|xpu|port|pid|localhost)"
    r"[-_.:]?\d{0,4}|v?\d[\d.,_-]*[a-z]{0,4}\d*|0x[0-9a-f]+|[0-9a-f]{7,64}|n/?a|none|null|true|false|auto|all|any|unknown"
    r"|localhost[.\w-]*|.)$"
)
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]{1,15}")


_NO_USER = re.compile(r"(?i)none|null|true|false|self|unknown|\\.*|.*\.(?:py|sh|log|json|ya?ml|txt)")


def users(text: str) -> Iterator[Span]:
    """Yield user names: in home paths, on mounts, in variables that hold them and before "@host"."""
    for pattern in (_HOME, _WINDOWS_HOME, _TILDE, _USER_SAID, _AUTHOR):
        for match in pattern.finditer(text):
            yield from _user(text, *match.span(1))
    for match in _LISTED.finditer(text):
        yield from _user(text, *match.span(match.lastgroup or 0))
    for match in _PROMPT.finditer(text):
        yield from _user(text, *match.span(1))
    for pattern in (_MOUNT, _DISK):
        for match in pattern.finditer(text):
            start, end = match.span(match.lastindex or 0)
            name = text[start:end]
            if name.lower() != name or name in FOLDERS or name.startswith(MODEL_FAMILIES):
                continue
            if pattern is _MOUNT or not text.startswith(f"/{name}", end):
                yield from (span._replace(everywhere=pattern is _MOUNT) for span in _user(text, start, end))


def _user(text: str, start: int, end: int) -> Iterator[Span]:
    name = text[start:end].rstrip(".-")
    end = start + len(name)
    if name not in NO_USERS and not _NO_USER.fullmatch(name):
        whole = text[end : end + 1] != "…"
        yield Span(start, end, USER, whole and len(name) >= 3)


def mails(text: str) -> Iterator[Span]:
    """Yield e-mail addresses, and user and host of `user@host`."""
    for sign in _AT.finditer(text):
        at = sign.start()
        local = _MAIL_LOCAL.search(text, max(0, at - 64), at)
        domain = _MAIL_DOMAIN.match(text, sign.end())
        if local is not None and domain is not None:
            yield from _at(text, local.start(), at, sign.end(), sign.end() + len(domain[0].rstrip(".-")))


def _at(text: str, start: int, at: int, after: int, end: int) -> Iterator[Span]:
    local, domain = text[start:at], text[after:end]
    size = _domain_size(domain)
    if size:
        if local != "git":
            yield Span(start, after + size, MAIL, everywhere=True)
        return
    login = _LOGIN_AT.search(text, max(0, at - 32), at)
    odd = domain[0].isalpha() and "." not in domain and is_odd(domain) and not PSEUDONYM.fullmatch(domain)
    if login is not None and odd and is_host(domain):
        yield from _user(text, login.start(), at)
        yield Span(after, end, HOST, everywhere=True)


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


def hosts(text: str) -> Iterator[Span]:
    """Yield host names: in URLs, after words that announce one, before NCCL and syslog lines, and full domain names."""
    for match in _URL.finditer(text):
        if match[1] not in _NO_HOST_SCHEMES:
            yield from _host(text, *match.span(2), strong=True)
    yield from _said(text)
    for pattern in (_NCCL, _SYSLOG, _BRACKETED, _MPI, _POD):
        for match in pattern.finditer(text):
            yield from _host(text, *match.span(1), strong=pattern in (_NCCL, _SYSLOG))
    for match in _PROMPT.finditer(text):
        yield from _host(text, *match.span(2), strong=True)
    for match in _HOSTS_FILE.finditer(text):
        if any(is_odd(name) for name in match[1].split()):
            for name in re.finditer(r"\S+", match[1]):
                yield from _host(text, match.start(1) + name.start(), match.start(1) + name.end(), strong=True)
    yield from _by_look(text)


def _said(text: str) -> Iterator[Span]:
    """Yield the machines, one or a list, after a word that announces them."""
    for match in _HOST_SAID.finditer(text):
        announced = text[match.start() : match.start(1)]
        strong = _STRONG_SAID.search(announced) is not None and any(c in "=:.-" for c in announced)
        end = match.end() if match[2] else match.end(1)
        yield from _host(text, match.start(1), end, strong=strong)
        while more := _MORE.match(text, end):
            yield from _host(text, more.start(1), more.end(), strong=False)
            end = more.end()


def _by_look(text: str) -> Iterator[Span]:
    """Yield what names a machine wherever it stands."""
    for match in _CLOUD_HOST.finditer(text):
        yield Span(match.start(), match.end(), HOST, everywhere=True)
    for match in _POD_END.finditer(text):
        start = _POD_START.search(text, max(0, match.start() - 64), match.start())
        if start is not None and any(c.isdigit() for c in match[0]):
            yield Span(start.start(), match.end(), HOST, everywhere=True)
    for match in _BY_LOOK.finditer(text):
        if any(c.isdigit() for c in match[0]):
            yield from _host(text, *match.span(), strong=True)
    for last in _LAST_LABEL.finditer(text):
        word = _WORD_BEFORE.search(text, max(0, last.start() - 253), last.start())
        if word is not None and _is_domain(text[word.start() : last.end()], text[last.end() : last.end() + 2]):
            yield from _host(text, word.start(), last.end(), strong=True)


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
        return labels[0] not in NO_DOMAINS
    if "svc" in labels[1:] or labels[-2:] == ["cluster", "local"]:
        return True
    if last not in LOOSE_SUFFIXES:
        return False
    port = after[:1] == ":" and after[1:].isdigit()
    return port or any(c in "-0123456789" for label in labels[:-1] for c in label)
