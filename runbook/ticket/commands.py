"""Finds what other programs take on their command lines: passwords, users, machines.

A flag means nothing without its program (`docker run -p 80:80`, `docker login -p X`), so a line is read command by
command, word by word, also where it was written as a list of quoted words. Linear: every command is read once, and at
most so far as the next one, or `_REACH` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from runbook.ticket.names import is_host
from runbook.ticket.span import HOST, SECRET, USER, Span

_PROGRAM = re.compile(
    r"(?<![A-Za-z0-9_-])(?<![A-Za-z0-9_]\.)(docker|podman|nerdctl|skopeo|crane|oras|helm|sshpass|curl|mysql|mysqldump|mysqladmin|redis-cli|wandb"
    r"|huggingface-cli|hf|modelscope|swanlab|ossutil(?:64|mac64)?|coscmd|mc|aws|openssl|zip|unzip|7z|https?|ldapsearch"
    r"|mongo|mongosh|smbclient|ssh|scp|sftp|rsync|mosh|ssh-copy-id|ping|telnet|nc|nslookup|dig|sudo|su|chown|squeue"
    r"|scancel|srun|sbatch|salloc|pdsh|clush|mpirun|mpiexec|ray|kubectl|cd|ls|cp|mv|cat|du)[\"',]{0,2}(?=\s)"
)
_WORD = re.compile(r"[^\s\"'`|;&\[\](){}<>\\]+")
_STOP = re.compile(r"[|;&\n`]|\\n")
_REACH = 600
_JOIN = re.compile(r"[=:]")

_SECRETS = {
    "sshpass": ("-p",),
    "redis-cli": ("-a", "--pass"),
    "hf": ("--token",),
    "huggingface-cli": ("--token",),
    "modelscope": ("--token",),
    "kubectl": ("--token",),
    "swanlab": ("-k", "--api-key"),
    "ossutil": ("-k", "-i"),
    "coscmd": ("-s", "-a"),
    "zip": ("-P",),
    "unzip": ("-P",),
    "ldapsearch": ("-w",),
    "mongo": ("-p",),
    "mongosh": ("-p",),
}
"""Program to the flags after which a secret stands, or that it is joined to."""
_REGISTRIES = {"docker", "podman", "nerdctl", "skopeo", "crane", "oras", "helm"}
_LOGINS = {"curl": ("-u", "--user", "-U", "--proxy-user"), "http": ("-a", "--auth"), "https": ("-a", "--auth")}
"""Program to the flags after which `name:password` stands."""
_JOINED = {"mysql", "mysqldump", "mysqladmin", "7z"}
"""Programs with a password joined to -p."""
_MARKED = {"openssl": "pass:", "smbclient": "%"}
"""Program to what a password stands behind, within a word."""
_USERS = {"sudo": ("-u",), "squeue": ("-u",), "scancel": ("-u",), "ssh": ("-l",)}
_HOSTS = {
    "srun": ("-w", "-x", "--nodelist", "--exclude"),
    "sbatch": ("-w", "-x", "--nodelist", "--exclude"),
    "salloc": ("-w", "-x", "--nodelist", "--exclude"),
    "pdsh": ("-w",),
    "clush": ("-w",),
    "mpirun": ("-H", "-host", "--host"),
    "mpiexec": ("-H", "-host", "--host"),
    "ray": ("--address",),
}
"""Program to the flags after which a list of machines stands."""
_TARGETS = {"ssh", "sftp", "mosh", "ssh-copy-id", "ping", "telnet", "nc", "nslookup", "dig"}
"""Programs whose first word that is no flag names a machine."""
_TAKES_VALUE = re.compile(r"-[a-zA-Z0-9]*[oplLRDFJbcEeIimOQSWw]")
_REMOTE = re.compile(r"(?:([A-Za-z_][\w.-]{0,31})@)?([A-Za-z0-9_][A-Za-z0-9_.-]*):(?=[/~.\w])(?!//)")
_TILDE = re.compile(r"~([a-z_][a-z0-9_.-]{1,31})")


class Word(NamedTuple):
    """A word of a command: text[start:end]."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Return where it ends."""
        return self.start + len(self.text)

    def span(self, skip: int, kind: str) -> Span:
        """Return what is left of the word after `skip` characters."""
        return Span(self.start + skip, self.end, kind, everywhere=self.end - self.start - skip >= 6)


def commands(text: str) -> Iterator[Span]:
    """Yield secrets, users and machines on command lines."""
    programs = list(_PROGRAM.finditer(text))
    for number, match in enumerate(programs):
        reach = programs[number + 1].start() if number + 1 < len(programs) else len(text)
        stop = _STOP.search(text, match.end(), min(reach, match.end() + _REACH))
        end = stop.start() if stop is not None else min(reach, match.end() + _REACH)
        words = list(_words(text, match.end(), end))
        program = "ossutil" if match[1].startswith("ossutil") else match[1]
        yield from _secrets(program, words)
        yield from _people(program, words)
        yield from _machines(program, words)


def _words(text: str, start: int, end: int) -> Iterator[Word]:
    """Yield words; one that a quote opens reaches to that quote unless flags or lists are quoted one by one."""
    position = start
    while position < end and (match := _WORD.search(text, position, end)):
        begin, position = match.span()
        opener = text[begin - 1 : begin]
        if opener in ("'", '"') and not match[0].startswith(("-", ",")):
            close = text.find(opener, begin, end)
            position = close if close > begin else position
        word = text[begin:position].rstrip(",")
        if word:
            yield Word(word, begin)


def _after(words: list[Word], flags: tuple[str, ...]) -> Iterator[tuple[Word, int]]:
    """Yield each value of one of the flags: the next word, or the rest of the word that begins with a flag."""
    for number, word in enumerate(words):
        for flag in flags:
            if word.text == flag:
                if number + 1 < len(words) and not words[number + 1].text.startswith("-"):
                    yield words[number + 1], 0
            elif word.text.startswith(f"{flag}=") or (len(flag) == 2 and word.text.startswith(flag)):
                rest = word.text[len(flag) :]
                yield word, len(flag) + (1 if rest.startswith("=") else 0)


def _secrets(program: str, words: list[Word]) -> Iterator[Span]:
    flags = _SECRETS.get(program, ())
    if program in _REGISTRIES and any(word.text == "login" for word in words):
        flags = ("-p", "--password")
    for word, skip in _after(words, flags):
        if not word.text[skip:].startswith("$"):
            yield word.span(skip, SECRET)
    for word, skip in _after(words, _LOGINS.get(program, ())):
        colon = word.text.find(":", skip)
        if colon >= 0 and not word.text[colon + 1 :].startswith("$"):
            yield word.span(colon + 1, SECRET)
    if program in _JOINED:
        yield from (word.span(2, SECRET) for word in words if word.text.startswith("-p") and word.text[2:])
    yield from _placed(program, [word for word in words if not word.text.startswith("-")])


def _placed(program: str, plain: list[Word]) -> Iterator[Span]:
    """Yield the secrets that a program takes at a place of their own or after a mark, among words that are no flags."""
    names = [word.text for word in plain]
    if program == "wandb" and names[:1] == ["login"]:
        yield from (word.span(0, SECRET) for word in plain[1:2] if len(word.text) >= 16)
    elif program == "mc" and names[:2] in (["alias", "set"], ["config", "host"]):
        yield from (word.span(0, SECRET) for word in plain[-2:] if "://" not in word.text)
    elif program == "aws" and names[:2] == ["configure", "set"] and len(plain) > 3 and _is_secret(names[2]):
        yield plain[3].span(0, SECRET)
    elif program in _MARKED:
        mark = _MARKED[program]
        for word in plain:
            at = word.text.find(mark)
            if at >= 0:
                yield word.span(at + len(mark), SECRET)


def _is_secret(name: str) -> bool:
    return any(part in name for part in ("secret", "token", "key", "password"))


def _people(program: str, words: list[Word]) -> Iterator[Span]:
    found = list(_after(words, _USERS.get(program, ())))
    plain = [word for word in words if not word.text.startswith("-")]
    if program in ("chown", "su"):
        found += [(word, 0) for word in plain[:1] if word.text not in ("the", "to")]
    for word, skip in found:
        name = _JOIN.split(word.text[skip:], maxsplit=1)[0]
        if _names_user(name):
            yield Span(word.start + skip, word.start + skip + len(name), USER, everywhere=len(name) >= 3)
    for word in plain:
        tilde = _TILDE.match(word.text)
        if tilde is not None:
            yield Span(word.start + 1, word.start + tilde.end(1), USER, everywhere=len(tilde[1]) >= 3)


def _names_user(name: str) -> bool:
    return name.isascii() and name[:1].isalpha() and name not in ("root", "nobody") and "/" not in name


def _machines(program: str, words: list[Word]) -> Iterator[Span]:
    for word, skip in _after(words, _HOSTS.get(program, ())):
        position = word.start + skip
        for name in word.text[skip:].split(",") if "://" not in word.text else ():
            host = name.partition(":")[0]
            yield from _host(position, host)
            position += len(name) + 1
    if program in _TARGETS:
        yield from _target(words)
    if program in ("scp", "rsync", "sftp"):
        for word in words:
            remote = _REMOTE.match(word.text)
            if remote is not None:
                start = word.start + remote.start(2)
                yield from _host(start, remote[2])
                if remote[1] and _names_user(remote[1]):
                    yield Span(word.start, word.start + len(remote[1]), USER, everywhere=len(remote[1]) >= 3)


def _target(words: list[Word]) -> Iterator[Span]:
    """Yield the machine that the first word names which is no flag and no value of one; an ordinary word is none."""
    skip = False
    for word in words:
        if skip or word.text.startswith("-"):
            skip = not skip and _TAKES_VALUE.fullmatch(word.text) is not None
            continue
        host = word.text.rpartition("@")[2].partition(":")[0].rstrip(".")
        start = word.start + word.text.rfind("@") + 1
        if "@" in word.text or any(c.isdigit() or c in "-." for c in host):
            yield from _host(start, host)
        return


def _host(start: int, name: str) -> Iterator[Span]:
    if is_host(name):
        yield Span(start, start + len(name), HOST, everywhere=len(name) >= 5)
