"""What a file is that is no dump, told by its first bytes, so that a path given by mistake says itself.

Invariants: only the head that was read is looked at; a text or container that is not known stays unnamed.
"""

from __future__ import annotations

import json
import re

MAGICS = (
    (b"version https://git-lfs", "lfs-pointer", "a git-LFS pointer, not the file itself"),
    (b"\x1f\x8b", "compressed", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "compressed", "a zstd file"),
    (b"BZh", "compressed", "a bzip2 file"),
    (b"\xfd7zXZ\x00", "compressed", "an xz file"),
    (b"7z\xbc\xaf\x27\x1c", "compressed", "a 7z archive"),
    (b"\x93NUMPY", "numpy", "a numpy .npy file"),
    (b"PAR1", "table", "a Parquet file"),
    (b"ARROW1", "table", "an Arrow file"),
    (b"\x89HDF\r\n\x1a\n", "table", "an HDF5 file"),
    (b"GGUF", "weights", "a GGUF model file"),
    (b"\x7fELF", "core-dump", "an ELF file, such as a CUDA core dump"),
    (b"Salted__", "encrypted", "a file that openssl encrypted"),
    (b"age-encryption.org/", "encrypted", "a file that age encrypted"),
    (b"-----BEGIN PGP MESSAGE", "encrypted", "a file that PGP encrypted"),
    (b"\x85\x02", "encrypted", "a file that PGP encrypted"),
    (b"<!DOCTYPE html", "web-page", "a web page, such as a failed download"),
    (b"<html", "web-page", "a web page, such as a failed download"),
)
TAR_AT = 257
"""Where a tar archive's "ustar" stands (POSIX pax)."""


def recognise(head: bytes, size: int) -> tuple[str, str] | None:
    """Return kind and words for the first bytes of a file that is neither a zip nor a binary pickle; None if unknown.

    head: at least 512 bytes where the file has them. size: of the whole file.
    """
    for magic, kind, words in MAGICS:
        if head[: len(magic)].lower() == magic.lower():
            return kind, words
    if head[TAR_AT : TAR_AT + 5] == b"ustar":
        legacy = head[:100].rstrip(b"\x00").split(b"/")[-1] in (b"sys_info", b"pickle", b"storages", b"tensors")
        return "tar", "a torch file of 2016 (tar)" if legacy else "a tar archive"
    if not head.strip(b"\x00"):
        return "zeros", "nothing but zero bytes: the file was allocated and never written"
    if _is_safetensors(head, size):
        return "weights", "a safetensors file: weights, not a dump"
    return _text(head)


def _is_safetensors(head: bytes, size: int) -> bool:
    length = int.from_bytes(head[:8], "little")
    return len(head) > 9 and head[8:9] == b"{" and 2 <= length <= size - 8 and b'"' in head[9:12]


def _text(head: bytes) -> tuple[str, str] | None:
    """Return what a text file is, a dump of another tool among them: verl and OpenRLHF write JSON lines."""
    if b"\x00" in head:
        return None
    if re.match(rb"\(?[dl](?:p0)?\n|\(dp|\(lp|[cI]\w+\n", head):
        return "pickle-0", "a pickle of protocol 0 (text)"
    if head.lstrip()[:1] in (b"{", b"["):
        keys = set(re.findall(rb'"([a-z_]{1,30})"\s*:', head))
        if {b"input", b"output"} <= keys and keys & {b"score", b"gts", b"step"}:
            return "verl", "JSON lines as verl writes them (trainer.rollout_data_dir)"
        return "json", "a JSON text"
    try:
        json.loads(f'"{head[:64].decode("ascii").translate({10: 32, 13: 32, 9: 32, 34: 32, 92: 32})}"')
    except (UnicodeDecodeError, ValueError):
        return None
    return "text", "a text file"
