"""Finds keys, tokens and passwords: by the name that stands before them, in addresses, in headers, inside Base64.

What its own shape gives away is found by `tokens`. Every search is linear in the text, as there. After a strong name
(`password`) any value is a secret, after a weak one (`token`) what looks random, after a faint one (`_key`) what looks
random and is no hash; placeholders and ordinary words are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runbook.ticket.sought import lowered
from runbook.ticket.span import SECRET, Gate, Span
from runbook.ticket.tokens import by_shape, encoded, entropy, is_login, is_shuffled

_HOOK = Gate(
    r"(?:hooks\.slack\.com/services/|/webhook/send\?key=|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/"
    r"|discord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/|sctapi\.ftqq\.com/)([A-Za-z0-9/_@-]{8,})",
    "hooks.slack.com/services/",
    "/webhook/send?key=",
    "/bot/v2/hook/",
    "/api/webhooks/",
    ".webhook.office.com/",
    "sctapi.ftqq.com/",
)
_LOGIN_URL = Gate(
    r"://(?:([^\s/?#@:\"'<>]{0,64}:(?!\d{1,5}/)[^\s?#\"'<>]{1,256})|([A-Za-z0-9._~%+-]{16,256}))@",
    "://",
)
_LOGIN_LINE = Gate(
    r"\blogin \S{1,64} password (\S{1,256})",
    " password ",
)
_AUTH_PAIR = Gate(
    r"\bauth\s?=\s?\(?\s?[\"'][^\"'\n]{1,128}[\"'],\s?[\"']([^\"'\n]{1,256})[\"']",
    "auth",
)
_LOGIN_CALL = Gate(
    r"\blogin\((?:(?:key|token|api_key)\s?=\s?)?[\"']([^\"'\n]{8,256})[\"']",
    "login(",
)
_HEADER = Gate(
    r"(?i)\b(?:proxy-)?authorization[\"'\\]{0,4}\s{0,8}[:=]\s{0,8}[\"'\\]{0,4}"
    r"(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,8})?([^\s\"'\\,;]+)"
    r"|\b(?:set-)?cookies?[\"'\\]{0,4}\s{0,8}[:=]\s{0,8}\{?[\"'\\]{0,4}(?!\s)([^\"'\\\n{}]+)(?![^\"'\\\n{}]|[\"'\\]{1,3}\s{0,4}:)"
    r"|\b(?:sessionid|csrftoken|xsrf-token|jsessionid|phpsessid|connect\.sid|sessdata)"
    r"\\{0,2}[\"']?\s{0,4}[:=]\s{0,4}\\{0,2}[\"']?([^\s\"'\\;,&]+)"
    r"|\bbearer\s{1,8}([A-Za-z0-9._~+/=-]{16,})",
    "authorization",
    "cookie",
    "sessionid",
    "csrftoken",
    "xsrf-token",
    "jsessionid",
    "phpsessid",
    "connect.sid",
    "sessdata",
    "bearer",
)
_QUERY = Gate(
    r"(?i)(?:[?&]|%3F|%26)(?:[a-z0-9_.-]{0,32}(?:signature|credential|security-token|accesskeyid|secret|password|token)"
    r"|sig|sign|pwd|api_?key|apikey|auth|ak|sk)(?:=|%3D)([^\s\"'<>&#\\]+)",
    "?",
    "&",
    "%3f",
    "%26",
)

_KEY = re.compile(
    r"(?:key(?:[-_]?(?:id|secret)|[-_]data)?|secret(?:[-_]?id)?|certificate[-_]data|authority[-_]data|passwd|password"
    r"|passphrase|passcode|token|credentials?|sig(?:nature)?|webhook|pat|pwd|ak|sk|密码|口令|密钥|秘钥|令牌)(?![a-z0-9_-])"
)
"""The end of a name, in a text in lower case."""
_STRONG = re.compile(
    r"(?:wandb[-_ ]?(?:api[-_ ]?)?key|api[-_ ]?key|secret[-_ ]?(?:access[-_ ]?)?key|secret[-_]?id"
    r"|access[-_ ]?key(?:[-_]?(?:id|secret))?|(?:account|private|auth|encryption|signing|license|subscription)[-_]?key"
    r"|(?:client|app|consumer)[-_]?secret|client[-_](?:key|certificate)[-_]data|certificate[-_]authority[-_]data"
    r"|(?P<pass>passw(?:or)?d|passphrase|密码|口令)|authtoken|密钥|秘钥|令牌|(?:access|auth|api|bearer|refresh|session"
    r"|security|hf|hub|github|gitlab|gh|gl|slack|bot|wandb|personal|deploy|ci|job|registry|npm|pypi)[-_]?token"
    r"|hugging[-_]?face[-_]?(?:hub[-_]?)?token)$"
)
_WEAK = re.compile(
    r"(?:token|secret|credentials?|passcode|sig(?:nature)?|webhook|(?<![a-z0-9])(?:pat|[as]k)|pwd|(?P<faint>[-_?&]key))$"
)
_NAME_REACH = 40
"""Characters of a name that are looked at."""
_ENVIRONMENT = Gate(
    r"(?<![A-Za-z0-9_])(?!(?:EOS|BOS|PAD|UNK|STOP|MASK|SEP|CLS|IMAGE|VIDEO|AUDIO|MAX|MIN|NUM|PUBLIC)_)"
    r"[A-Z0-9_]{1,60}?_(?:(?P<any>SECRET|PASS|PASSWD|AUTH)|TOKEN|KEY|AK|SK|PWD|COOKIE)=(?P<quote>[\"']?)"
    r"(?P<value>[^\s\"';&|]{6,512})",
    "_secret=",
    "_pass=",
    "_passwd=",
    "_auth=",
    "_token=",
    "_key=",
    "_ak=",
    "_sk=",
    "_pwd=",
    "_cookie=",
)

_OPENING = (
    r"(?:!!?[a-z]{1,12}\s{1,4}|[bBrRuU]{1,2}(?=[\"'])"
    r"|[\[{(]{1,3}\s{0,4}(?:\\{0,2}[\"']default\\{0,2}[\"']\s{0,4}:\s{0,4})?)?"
)
"""What may open a value: a tag of YAML, a prefix of Python, a bracket, the name of a field that holds it."""
_AFTER_KEY = re.compile(
    r"(?P<join>\\{0,2}[\"']?\]?\s{0,8}(?:=>|[:=：＝]{1,2}|%3[AaDd])\s{0,8}" + _OPENING + r"|\s{0,4}\.{2,100}\s{0,4}"
    r"|\\{0,2}[\"']\s{0,4},\s{0,4}(?:\\{0,2}[\"']value\\{0,2}[\"']\s{0,4}:\s{0,4})?"
    r"|(?P<said>\s{1,4}(?:is|was)\s{0,4}:?\s{1,4}|\s{0,4}[是为]\s{0,4}[:：]?\s{0,4})|\s{1,8})"
    r"(?P<quote>\\{0,2}[\"'])?"
)
_BOUND = 512
_BARE = re.compile(r"[^\s\"'&;|\\，。；]{1,512}")
_REST = re.compile(r"[^\s\"'&;|\\，。；]*")
"""How a value without quotes goes on beyond the bound."""
_NOT_A_VALUE = re.compile(
    r"(?i)^(?:none|null|nil|true|false|yes|no|unset|empty|default|disabled|enabled|required|missing|not|is|was|for|and|or|in|to|of|the"
    r"|a|an|with|at|from|set|given|provided|invalid|incorrect|wrong|expired|error|authentication|[x*•.<>_-]+|\d{1,12}(?:\.\d+)?"
    r"|(?:your|my|the|a)[-_ ].{0,60}|<.{0,80}>|\[.{0,80}\]|\{.{0,80}\}|\$.{1,120}|%\w{1,60}%|os\.\S{0,80}"
    r"|str|int|bytes|bool|float)$"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F-]+")
_LONG = re.compile(r"[A-Za-z0-9]+")
_NUMBER = re.compile(r"\d{4,}")


def find(text: str) -> Iterator[Span]:
    """Yield every credential in `text`."""
    yield from by_shape(text)
    yield from _announced(text)
    yield from _by_name(text)
    for start, end, content in encoded(text):
        if is_login(content) or any(True for _ in (*by_shape(content), *_announced(content), *_by_name(content))):
            yield Span(start, end, SECRET, everywhere=True)


def is_name(text: str) -> bool:
    """Return whether a text ends with a name after which a secret stands."""
    lower = lowered(text[-64:])
    return any(match.end() == len(lower) and _kind(lower, match.end()) for match in _KEY.finditer(lower))


def _kind(lower: str, end: int) -> re.Match[str] | None:
    """Return the name that ends there as a match of _STRONG or _WEAK, None when it is none."""
    start = max(0, end - _NAME_REACH)
    return _STRONG.search(lower, start, end) or _WEAK.search(lower, start, end)


def _announced(text: str) -> Iterator[Span]:
    """Yield what a web hook, an address with a login, a header, a query or a variable holds."""
    for pattern in (_HOOK, _LOGIN_LINE, _LOGIN_CALL, _AUTH_PAIR):
        for match in pattern.finditer(text):
            yield _span(text, *match.span(1))
    for match in _LOGIN_URL.finditer(text):
        start, end = match.span(match.lastindex or 0)
        yield _span(text, start, end)
        yield _span(text, start + text[start:end].find(":") + 1, end)
    for pattern in (_HEADER, _QUERY):
        for match in pattern.finditer(text):
            start, end = match.span(match.lastindex or 0)
            value = text[start:end]
            if not _NOT_A_VALUE.match(value) and (pattern is _HEADER or (len(value) >= 6 and _odd(value))):
                yield _span(text, start, end)
    for match in _ENVIRONMENT.finditer(text):
        start, end = match.span("value")
        value = match["value"]
        if _NOT_A_VALUE.match(value) or value[0] in "/.~$(<{":
            continue
        if match["any"] or (_odd(value) and not value.replace(".", "").isdigit() and not _HEX.fullmatch(value)):
            yield _span(text, start, end)


def _by_name(text: str) -> Iterator[Span]:
    lower = lowered(text)
    position = 0
    absent: set[str] = set()
    while end_of_name := _KEY.search(lower, position):
        position = end_of_name.end()
        name = _kind(lower, position)
        after = _AFTER_KEY.match(text, position) if name is not None else None
        if name is None or after is None:
            continue
        start = after.end()
        closed = _closing(text, start, after["quote"], absent)
        bare = _BARE.match(text, start)
        end = closed if closed >= 0 else bare.end() if bare is not None else start
        value = text[start : min(end, start + _BOUND)]
        if closed < 0:
            value = value.rstrip(",)]}.:")
        if value and _is_secret(text, name, after, value):
            if closed < 0 and end - start < _BOUND:
                end = start + len(value)
            elif closed < 0 and (rest := _REST.match(text, end)) is not None:
                end = rest.end()
            position = max(position, end)
            yield _span(text, start, end)


def _closing(text: str, start: int, quote: str | None, absent: set[str]) -> int:
    """Return where the quote that opened a value closes it, -1 when it does not or there is none.

    absent: quotes that do not occur in the rest of the text, to look for each once only.
    """
    if not quote or quote in absent:
        return -1
    end = text.find(quote, start)
    while end > start and len(quote) == 1 and text[end - 1] == "\\":
        end = text.find(quote, end + 1)
    if end < 0:
        absent.add(quote)
    return end


def _is_secret(text: str, name: re.Match[str], after: re.Match[str], value: str) -> bool:
    """Return whether the value that stands after a name is a secret; see the module's docstring."""
    strong = name.re is _STRONG
    faint = not strong and bool(name["faint"])
    alone = after["join"].isspace()
    numeric = strong and bool(name["pass"]) and not alone and _NUMBER.fullmatch(value)
    if (_NOT_A_VALUE.match(value) and not numeric) or (after["said"] and value.isalpha()):
        return False
    if alone and value.startswith("-"):
        return False
    if alone and not _is_flag(text, name.start()):
        return _random(value) and not faint and not _UUID.fullmatch(value)
    return strong or (_random(value) and not (faint and _HEX.fullmatch(value)))


def _is_flag(text: str, start: int) -> bool:
    """Return whether the name with the key word is a flag: only then may a mere blank stand before the value."""
    head = text[max(0, start - 48) : start]
    return re.search(r"--[A-Za-z0-9_-]*$", head) is not None


def _span(text: str, start: int, end: int) -> Span:
    return Span(start, end, SECRET, is_telling(text[start:end]))


def is_telling(value: str) -> bool:
    """Return whether a value is odd enough to be sought elsewhere without hiding ordinary words."""
    return len(value) >= 6 and not value.isalpha() and not value.isdigit()


def _odd(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _random(value: str) -> bool:
    """Return whether a value looks like a key and not like a word, a number, a path, a tensor name or a version."""
    if _UUID.fullmatch(value):
        return True
    run = max(_LONG.findall(value), key=len, default="")
    digits = sum(character.isdigit() for character in run)
    return (len(run) >= 16 and 2 <= digits < len(run) - 3 and entropy(run) >= 3.0) or is_shuffled(value, 0.4)
