"""Finds keys, tokens and passwords: by their own shape, and by the name that stands before them.

Every search is linear in the text: a pattern begins with a literal or at a word boundary, and each of its runs is
bounded or the last thing in it. Tokens known by shape come from detect-secrets where its patterns are linear and
precise (see docs/decisions/0010-redaction.md); what it lacks, and everything known only by name, is here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from runbook.ticket.span import SECRET, WORD_START, Span

_END = r"(?![A-Za-z0-9])"
_CUT = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_|gh[pousr]_|sk-|glpat-|github_pat_|xox[a-z]-|eyJ|AKIA)[A-Za-z0-9._-]{3,200}(?=…$)"
)
"""An excerpt that was shortened may end inside a token."""

_SHAPES = re.compile(
    WORD_START + r"(?:"
    r"(?:hf_|api_org_)[A-Za-z0-9]{20,}"  # Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"  # GitHub
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|oas|imt|agent|soat)-[A-Za-z0-9_-]{16,}"  # GitLab
    r"|wandb_v1_[A-Za-z0-9_-]{20,}|local-[0-9a-f]{40}" + _END + r""  # W&B
    r"|(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}" + _END + r""  # AWS
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"  # Google
    r"|sk-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic and others that copied it
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"  # Slack
    r"|LTAI[A-Za-z0-9]{12,30}" + _END + r"|AKID[A-Za-z0-9]{13,40}" + _END + r"|AKLT[A-Za-z0-9_-]{20,60}"  # clouds
    r"|dckr_pat_[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}|nvapi-[A-Za-z0-9_-]{20,}"
    r"|tskey-[A-Za-z0-9-]{20,}|dop_v1_[a-f0-9]{64}|lsv2_[a-z]{2}_[A-Za-z0-9_]{32,}|r8_[A-Za-z0-9]{37}"
    r")"
)
_JWT = re.compile(WORD_START + r"eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,4}")
_HOOK = re.compile(
    r"(?:hooks\.slack\.com/services/|/webhook/send\?key=|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/"
    r"|discord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/)([A-Za-z0-9/_@-]{8,})"
)
_LOGIN_URL = re.compile(r"://([^\s/?#@:\"'<>]{0,64}:(?!\d{1,5}/)[^\s?#\"'<>]{1,256})@")
_LOGIN_LINE = re.compile(r"\blogin \S{1,64} password (\S{1,256})")
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_HEADER = re.compile(
    r"(?i)\b(?:proxy-)?authorization[\"'\\]{0,4}\s{0,8}[:=]\s{0,8}[\"'\\]{0,4}"
    r"(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,8})?([^\s\"'\\,;]+)"
    r"|\b(?:set-)?cookie[\"'\\]{0,4}\s{0,8}[:=]\s{0,8}[\"'\\]{0,4}([^\"'\\\n]+)"
    r"|\bbearer\s{1,8}([A-Za-z0-9._~+/=-]{16,})"
)

_KEY = re.compile(
    r"(?i)(?:(?P<strong>wandb[-_]?(?:api[-_]?)?key|api[-_]?key|secret[-_]?(?:access[-_]?)?key"
    r"|access[-_]?key(?:[-_]?(?:id|secret))?|(?:account|private|auth|encryption|signing)[-_]?key|(?:client|app)[-_]?secret"
    r"|passw(?:or)?d|passphrase|authtoken|(?:access|auth|api|bearer|refresh|session|security|hf|hub|github|gitlab|gh|gl|slack"
    r"|bot|wandb|personal|deploy|ci|job|registry|npm|pypi)[-_]?token|hugging[-_]?face[-_]?(?:hub[-_]?)?token)"
    r"|(?P<weak>token|secret|credentials?|passcode|sig(?:nature)?|webhook|pat|pwd)|(?P<faint>[-_?&]key))"
    r"(?![A-Za-z0-9_-])"
)
"""After a strong name any value is a secret, after a weak one what looks random, after a faint one that but no hash."""

_AFTER_KEY = re.compile(
    r"(?P<join>\\{0,2}[\"']?\s{0,8}(?:[:=]{1,2}|=>)\s{0,8}|\s{0,4}\.{2,100}\s{0,4}"
    r"|\\{0,2}[\"']\s{0,4},\s{0,4}|\s{1,8})"
    r"(?P<quote>\\{0,2}[\"'])?(?P<value>(?(quote)[^\"'\\]{1,512}|[^\s\"'&;|\\]{1,512}))"
)
_REST = {True: re.compile(r"[^\"'\\]*"), False: re.compile(r"[^\s\"'&;|\\]*")}
"""How a value goes on beyond the bound, quoted or not."""
_NOT_A_VALUE = re.compile(
    r"(?i)^(?:none|null|nil|true|false|yes|no|unset|empty|default|disabled|enabled|required|missing|not|is|was|for|and|or|in|to|of|the"
    r"|a|an|with|at|from|set|given|provided|invalid|incorrect|wrong|expired|error|[x*•.<>_-]+|\d{1,12}(?:\.\d+)?"
    r"|(?:your|my|the|a)[-_ ].{0,60}|<.{0,80}>|\[.{0,80}\]|\{.{0,80}\}|\$.{1,120}|%\w{1,60}%|os\.\S{0,80}"
    r"|str|int|bytes|bool|float)$"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F-]+")
_RUN = re.compile(r"[A-Za-z0-9]+")


def find(text: str) -> Iterator[Span]:
    """Yield every credential in `text`."""
    yield from _by_shape(text)
    yield from _by_name(text)


def _by_shape(text: str) -> Iterator[Span]:
    for pattern in (_SHAPES, *known_shapes(), *([_JWT] if "eyJ" in text else [])):
        for match in pattern.finditer(text):
            yield Span(match.start(), match.end(), SECRET, everywhere=True)
    for match in _CUT.finditer(text, max(0, len(text) - 256)):
        yield Span(match.start(), match.end(), SECRET)
    for pattern in (_HOOK, _LOGIN_LINE):
        for match in pattern.finditer(text):
            yield _span(text, *match.span(1))
    for match in _LOGIN_URL.finditer(text):
        yield _span(text, *match.span(1))
        yield _span(text, match.start(1) + match[1].find(":") + 1, match.end(1))
    for match in _HEADER.finditer(text):
        start, end = match.span(match.lastindex or 0)
        if not _NOT_A_VALUE.match(text[start:end]):
            yield _span(text, start, end)
    yield from _private_keys(text)


def _private_keys(text: str) -> Iterator[Span]:
    """Yield each private key from its first line to its last, or to the end of the text when that was cut off."""
    position = 0
    while begin := _PEM.search(text, position):
        end = _PEM_END.search(text, begin.end())
        position = end.end() if end is not None else len(text)
        yield Span(begin.start(), position, SECRET)


def _by_name(text: str) -> Iterator[Span]:
    position = 0
    while key := _KEY.search(text, position):
        position = key.end()
        after = _AFTER_KEY.match(text, position)
        if after is None or (after["join"].isspace() and not _is_flag(text, key.start())):
            continue
        start, end = after.span("value")
        value = text[start:end] if after["quote"] else text[start:end].rstrip(",)]}.:")
        if _NOT_A_VALUE.match(value) or (after["join"].isspace() and value.startswith("-")):
            continue
        if key["strong"] or (_random(value) and not (key["faint"] and _HEX.fullmatch(value))):
            rest = _REST[bool(after["quote"])].match(text, end)
            position = rest.end() if rest is not None else end
            end = position if position > end else start + len(value)
            yield _span(text, start, end)


def _is_flag(text: str, start: int) -> bool:
    """Return whether the name with the key word is a flag: only then may a mere blank stand before the value."""
    head = text[max(0, start - 48) : start]
    return re.search(r"--[A-Za-z0-9_-]*$", head) is not None


def _span(text: str, start: int, end: int) -> Span:
    return Span(start, end, SECRET, _telling(text[start:end]))


def _telling(value: str) -> bool:
    """Return whether a value is odd enough to be sought elsewhere without hiding ordinary words."""
    return len(value) >= 6 and not value.isalpha() and not value.isdigit()


def _random(value: str) -> bool:
    """Return whether a value looks like a key and not like a word, a number, a path, a tensor name or a version."""
    if _UUID.fullmatch(value):
        return True
    run = max(_RUN.findall(value), key=len, default="")
    digits = sum(character.isdigit() for character in run)
    return len(run) >= 16 and 2 <= digits < len(run) - 3 and entropy(run) >= 3.0


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits a character."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values()) if total else 0.0


@cache
def known_shapes() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of detect-secrets for tokens that their shape alone gives away.

    Left out: JWT, OpenAI and npm (quadratic on a long line; above), the entropy, keyword and address plugins (commit
    ids, settings and the addresses that matter here), Artifactory, Discord, Cloudant, IBM and SoftLayer (they match
    tensor and class names or never occur).
    """
    from detect_secrets.plugins import (
        aws,
        azure_storage_key,
        github_token,
        gitlab_token,
        mailchimp,
        pypi_token,
        sendgrid,
        slack,
        square_oauth,
        stripe,
        telegram_token,
        twilio,
    )

    plugins = (
        aws.AWSKeyDetector,
        azure_storage_key.AzureStorageKeyDetector,
        github_token.GitHubTokenDetector,
        gitlab_token.GitLabTokenDetector,
        mailchimp.MailchimpDetector,
        pypi_token.PypiTokenDetector,
        sendgrid.SendGridDetector,
        slack.SlackDetector,
        square_oauth.SquareOAuthDetector,
        stripe.StripeDetector,
        telegram_token.TelegramBotTokenDetector,
        twilio.TwilioKeyDetector,
    )
    return tuple(pattern for plugin in plugins for pattern in plugin.denylist)
