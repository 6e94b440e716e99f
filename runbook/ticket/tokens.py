"""Finds secrets that give themselves away: by a prefix, by an armour, by the look of random letters.

Every search is linear in the text: a pattern begins with a literal or at the start of a run of letters, and each of
its own runs is bounded or the last thing in it. Shapes of tokens come from detect-secrets where its patterns are linear
and precise (see docs/decisions/0010-redaction.md); what it lacks is here.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from runbook.ticket.span import SECRET, WORD_START, Gate, Span

_END = r"(?![A-Za-z0-9])"
_CUT = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_|gh[pousr]_|gsk_|sk-|glpat-|github_pat_|xox[a-z]-|eyJ|AKIA|LTAI|AKLT)[A-Za-z0-9._-]{3,200}"
    r"(?=…$)"
)
"""An excerpt that was shortened may end inside a token."""

_CLOUD_STARTS = (
    "akia", "asia", "abia", "acca", "a3t", "ltai", "akid", "aklt", "aktp", "aklp", "aktt", "altak",
)  # fmt: skip
"""How ids of cloud keys begin, in lower case."""
_CLOUD_ID = (
    r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}" + _END + r""  # AWS
    r"|LTAI[A-Za-z0-9]{12,30}" + _END + r"|AKID[A-Za-z0-9]{13,40}" + _END + r""  # Aliyun, Tencent
    r"|AK[LT][TP][A-Za-z0-9_-]{20,80}|ALTAK-?[A-Za-z0-9]{16,40}" + _END + r""  # Volcengine, Baidu
)
_SHAPES = Gate(
    WORD_START + r"(?:"
    r"(?:hf_|api_org_)[A-Za-z0-9]{20,}"  # Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"  # GitHub
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|oas|imt|agent|soat|sa)[-_][A-Za-z0-9_-]{16,}"  # GitLab, Grafana
    r"|wandb_v1_[A-Za-z0-9_-]{20,}|local-[0-9a-f]{40}" + _END + r"|" + _CLOUD_ID + r""  # W&B
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"  # Google
    r"|sk-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic and others that copied it
    r"|(?:gsk_|xai-|pplx-|tgp_v1_|fw_|nvapi-|jina_|e2b_|tvly-|ntn_|lin_api_|csk-)(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{20,}"
    r"|ms-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # ModelScope
    r"|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|SEC[0-9a-f]{64}" + _END + r""  # Slack, DingTalk
    r"|dckr_pat_[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}|dapi[0-9a-f]{32}" + _END + r""
    r"|tskey-[A-Za-z0-9-]{20,}|dop_v1_[a-f0-9]{64}|lsv2_[a-z]{2}_[A-Za-z0-9_]{32,}|r8_[A-Za-z0-9]{37}|hv[sb]\.[A-Za-z0-9_-]{20,}"
    r"|AAAA(?:B3NzaC1|C3NzaC1|E2VjZHNh)[A-Za-z0-9+/=]{16,}|SHA256:(?![0-9a-f]{43})[A-Za-z0-9+/]{43}" + _END + r""  # SSH
    r"|LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]{8,}"  # the Base64 of -----BEGIN
    r")",
    "hf_",
    "api_org_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat",
    "gldt",
    "glrt",
    "glcbt",
    "glptt",
    "glft",
    "gloas",
    "glimt",
    "glagent",
    "glsoat",
    "glsa",
    "wandb_v1_",
    "local-",
    *_CLOUD_STARTS,
    "aiza",
    "ya29.",
    "gocspx-",
    "sk-",
    "gsk_",
    "xai-",
    "pplx-",
    "tgp_v1_",
    "fw_",
    "nvapi-",
    "jina_",
    "e2b_",
    "tvly-",
    "ntn_",
    "lin_api_",
    "csk-",
    "ms-",
    "xox",
    "xapp-",
    "sec",
    "dckr_pat_",
    "npm_",
    "pypi-",
    "dapi",
    "tskey-",
    "dop_v1_",
    "lsv2_",
    "r8_",
    "hvs.",
    "hvb.",
    "aaaa",
    "sha256:",
    "ls0tls1c",
)
_ZHIPU = re.compile(WORD_START + r"[0-9a-f]{32}\.[A-Za-z0-9]{16}" + _END)
_JWT = Gate(
    WORD_START + r"eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,4}",
    "eyj",
)
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}(?:KEY|CERTIFICATE)(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}(?:KEY|CERTIFICATE)(?: BLOCK)?-----")
_ID = Gate(
    WORD_START + rf"(?:{_CLOUD_ID})",
    *_CLOUD_STARTS,
)
_PARTNER = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{28,88}(?![A-Za-z0-9/+])={0,2}")
_PARTNER_REACH = 160
"""Characters after the id of a cloud key in which its secret half is looked for."""
_RUN = re.compile(r"(?<![A-Za-z0-9/+_])[A-Za-z0-9/+]{32,128}(?![A-Za-z0-9/+_])={0,2}")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{12,4096}={0,2}(?![A-Za-z0-9+/_=-])")
_LOGIN = re.compile(r"[\w.@+-]{1,64}:[!-~]{4,256}")
_WORD = re.compile(r"(?<![A-Za-z0-9])[a-z]{4,}(?![A-Za-z0-9])")
_SHUFFLED_LEAST = 0.45
"""Share of neighbours of unlike class above which letters are random: those have 0.62, CamelCase 0.2 to 0.4."""


def by_shape(text: str) -> Iterator[Span]:
    """Yield every secret that needs no name before it."""
    patterns: tuple[Gate | re.Pattern[str], ...] = (_SHAPES, _ZHIPU, _JWT, *known_shapes())
    for pattern in patterns:
        for match in pattern.finditer(text):
            yield Span(match.start(), match.end(), SECRET, everywhere=True)
    for match in _CUT.finditer(text, max(0, len(text) - 256)):
        yield Span(match.start(), match.end(), SECRET)
    for match in _RUN.finditer(text):
        if is_shuffled(match[0], _SHUFFLED_LEAST):
            yield Span(match.start(), match.end(), SECRET, everywhere=True)
    yield from _partners(text)
    yield from _private_keys(text)


def _partners(text: str) -> Iterator[Span]:
    """Yield the secret halves that stand bare after the id of a cloud key."""
    done = 0
    for known in _ID.finditer(text):
        for match in _PARTNER.finditer(text, max(done, known.end()), known.end() + _PARTNER_REACH):
            if _is_mixed(match[0]):
                yield Span(match.start(), match.end(), SECRET, everywhere=True)
        done = known.end()


def _is_mixed(value: str) -> bool:
    return any(c.islower() for c in value) and any(c.isupper() for c in value) and any(c.isdigit() for c in value)


def _private_keys(text: str) -> Iterator[Span]:
    """Yield each armoured key from its first line to its last, or to the end of the text when that was cut off."""
    position = 0
    while begin := _PEM.search(text, position):
        end = _PEM_END.search(text, begin.end())
        position = end.end() if end is not None else len(text)
        yield Span(begin.start(), position, SECRET)


def opens_key(text: str) -> bool:
    """Return whether an armoured key begins in this line and does not end in it."""
    begin = _PEM.search(text)
    return begin is not None and _PEM_END.search(text, begin.end()) is None


def closes_key(text: str) -> bool:
    """Return whether an armoured key ends in this line."""
    return _PEM_END.search(text) is not None


def crosses(before: str, after: str) -> tuple[int, int] | None:
    """Return how many characters of a token end one line and how many begin the next, None when none goes on."""
    for match in _SHAPES.finditer(before + after):
        if match.start() < len(before) < match.end() and len(before) - match.start() >= 6:
            return len(before) - match.start(), match.end() - len(before)
    return None


def encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and content of every piece of Base64 in `text` that is plain text inside."""
    for match in _BASE64.finditer(text):
        word = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        if word.islower() or word.isupper() or word.isdigit():
            continue
        try:
            content = base64.b64decode(word + "=" * (-len(word) % 4)).decode("ascii")
        except (binascii.Error, ValueError):
            continue
        if content.isprintable() or "-----BEGIN" in content:
            yield match.start(), match.end(), content


def is_login(content: str) -> bool:
    """Return whether a text is `name:password` and nothing else, as Basic authentication encodes it."""
    return _LOGIN.fullmatch(content) is not None


def is_shuffled(value: str, least: float) -> bool:
    """Return whether letters of both cases and digits follow each other as in a random value.

    least: share of neighbouring letters and digits that must be of different classes. A path has words in it.
    """
    classes = [2 if c.isdigit() else 1 if c.isupper() else 0 for c in value[:200] if c.isalnum()]
    counts = Counter(classes)
    if len(classes) < 20 or min(counts[0], counts[1]) < 4 or counts[2] < 2 or _WORD.search(value):
        return False
    return sum(a != b for a, b in pairwise(classes)) >= least * (len(classes) - 1)


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
