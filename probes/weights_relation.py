"""How one received tensor is related to the checkpoint: equal, trained, or wrong in a way that has a name.

Exact statements rest on hashes; statements about trained tensors rest on the sample, whose distance is the root mean
square difference in units of the tensor's own standard deviation. Two unrelated tensors are 1.4 apart, a tensor and
the same one after hundreds of RL steps less than NEAR, so there is room for no doubt between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from probes.recorder.slime_runbook_recorder.fingerprint import block_rows, places
from probes.weights_fingerprint import Print, Stored, decode, pieces, row_hashes, values_at
from probes.weights_reference import Reference, address

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAR = 0.05
"""Distance that training explains. An Adam step moves a weight by about the learning rate; at 1e-6 and a standard
deviation of 0.02, a thousand steps in one direction come to 0.05."""
ALIKE = 0.3
"""Distance up to which a tensor is still recognisably the other one (1.4 is the distance of unrelated ones)."""
GROSS = 0.25
"""Share of a tensor's size that a constant added or a factor must come to before it is a rule and not training."""
MANTISSA = {"BF16": 7, "F16": 10, "F32": 23, "F64": 52, "F8_E4M3": 3, "F8_E5M2": 2}
"""Stored bits of the significand: one unit in the last place is what rounding alone may change."""


@dataclass(frozen=True)
class Relation:
    """What a received tensor is.

    kind: "equal"; "cast" (the same values in another dtype); "near" (trained); "drifted" (further than NEAR);
    "elsewhere" (the content of another tensor: `origin`); "zero", "nonfinite", "padded" (rows appended), "part" (a
    slice), "shape", "transposed", "permuted" (rows), "shuffled" (the same values in another order), "offset", "scaled",
    "partly" (some rows are others), "far" (no relation found); "opaque" (quantised, cannot be compared); "named"
    (content unknown). origin: name in the checkpoint. detail: what else can be said, in English and Chinese.
    """

    kind: str
    origin: str = ""
    en: str = ""
    zh: str = ""
    distance: float = 0.0


HEALTHY = frozenset(("equal", "cast", "near"))
SOUND = HEALTHY | {"drifted", "opaque", "named"}
"""Kinds that do not say that the tensor is wrong."""


def distance(received: NDArray[Any], own: NDArray[Any], dtype: str, *, slack: bool = True) -> float:
    """Return how far two samples are apart, in standard deviations of `own`; nan where they cannot be compared.

    slack: forgive one unit in the last place, as rounding may change it.
    """
    import numpy as np

    if received.shape != own.shape:
        return float("nan")
    good = np.isfinite(received) & np.isfinite(own)
    if not good.any():
        return float("nan")
    return float(np.sqrt(np.mean(_gap(received[good], own[good], dtype, slack) ** 2)) / _scale(own[good]))


def _gap(received: NDArray[Any], own: NDArray[Any], dtype: str, slack: bool) -> NDArray[Any]:
    import numpy as np

    gap: NDArray[Any] = np.abs(received - own)
    if slack and dtype in MANTISSA:
        _, exponent = np.frexp(np.abs(own))
        gap = np.maximum(gap - np.ldexp(1.0, exponent - 1 - MANTISSA[dtype]), 0)
    return gap


def _scale(own: NDArray[Any]) -> float:
    """Return the unit of distance: the standard deviation, or a part of the size of what hardly varies, such as a norm.

    Training may move all of a norm's values together, so their small spread would be no fair measure.
    """
    import numpy as np

    deviation = float(np.std(own))
    return max(deviation, 0.2 * abs(float(np.mean(own))), 1e-3 if deviation == 0 else 1e-12)


def relate(received: Print | None, name: str, reference: Reference) -> Relation:
    """Return how a tensor that came as `name` is related to the checkpoint. Raises OSError, EOFError."""
    known = name in reference.stored
    if received is None:
        return Relation("named" if known else "far")
    if not known:
        return _of_unknown_name(received, reference)
    own = reference.print_of(name)
    plain = _plainly(received, own, name)
    if plain is not None:
        return plain
    if received.shape != own.shape:
        return _other_shape(received, own, name)
    return _same_shape(received, own, name, reference)


def _plainly(received: Print, own: Print, name: str) -> Relation | None:
    """Return what can be told without looking elsewhere."""
    if received.hash == own.hash and received.shape == own.shape and received.dtype == own.dtype:
        return Relation("equal", name)
    if received.all_zero and not own.all_zero:
        return Relation("zero", name)
    if received.recorded is not None and received.recorded.nonfinite:
        broken = _nonfinite(received.recorded.nonfinite, own, name)
        if broken is not None:
            return broken
    quantised = any(each.dtype not in MANTISSA or "F8" in each.dtype for each in (received, own))
    if quantised and (received.shape == own.shape or received.dtype != own.dtype):
        return Relation("opaque", name)
    return None


def _nonfinite(count: int, own: Print, name: str) -> Relation | None:
    """Return that values are no numbers, unless the checkpoint has as many of them."""
    if count <= own.stats.nonfinite:
        return None
    return Relation("nonfinite", name, f"{count} values are NaN or Inf", f"{count} 个值为 NaN 或 Inf")


def _same_shape(received: Print, own: Print, name: str, reference: Reference) -> Relation:
    """Relate two tensors of one shape that differ."""
    import numpy as np

    coarse = min((received.dtype, own.dtype), key=lambda dtype: MANTISSA[dtype])
    apart = distance(received.values, own.values, coarse)
    if received.dtype != own.dtype and np.array_equal(received.values, own.values, equal_nan=True):
        return Relation("cast", name, f"{received.dtype} instead of {own.dtype}", f"{received.dtype} 而非 {own.dtype}")
    if apart <= NEAR:
        return _compared_in_full(received, own, name, coarse, apart)
    broken = _nonfinite(received.stats.nonfinite, own, name) if received.stats.nonfinite else None
    if broken is not None:
        return broken
    found = find(received, name, reference) or _rearranged(received, own, name, coarse)
    if found is None and apart <= ALIKE:
        return Relation("drifted", name, f"{apart:.2f} standard deviations away", f"相差 {apart:.2f} 个标准差", apart)
    return found or Relation("far", name, "", "", apart)


def _rearranged(received: Print, own: Print, name: str, dtype: str) -> Relation | None:
    """Recognise the tensor itself with its values moved or changed by a rule."""
    if received.rows == own.rows and own.matrix[0] > 1:
        return _permuted(received, own, name)
    found = (
        _transposed(received, own, name) or _affine(received, own, name, dtype) or _patchy(received, own, name, dtype)
    )
    if found is not None:
        return found
    mine, theirs = received.stats, own.stats
    same = (mine.least, mine.most, mine.zeros) == (theirs.least, theirs.most, theirs.zeros)
    if same and own.numel > 64 and abs(mine.mean - theirs.mean) <= 1e-4 * max(abs(theirs.least), abs(theirs.most)):
        return Relation("shuffled", name, "the same values in another order", "数值相同但次序不同")
    return None


def _of_unknown_name(received: Print, reference: Reference) -> Relation:
    """Look for the content of a tensor whose name the checkpoint does not have."""
    exact = [name for name, stored in reference.stored.items() if stored.shape == received.shape]
    hits = [name for name in exact if reference.print_of(name).hash == received.hash]
    return Relation("elsewhere", hits[0]) if len(hits) == 1 else Relation("far")


def find(received: Print, name: str, reference: Reference) -> Relation | None:
    """Look for the content of a tensor under other names of the checkpoint: its peers first, then its neighbours."""
    place = address(name)
    exact = _exactly(received, name, reference, reference.peers(place.kind, received.shape))
    if exact is not None:
        return exact
    near = _nearly(received, name, reference, place.kind)
    if near is not None:
        return near
    neighbours = [other for other in reference.beside(name) if reference.stored[other].shape == received.shape]
    exact = _exactly(received, name, reference, neighbours)
    if exact is not None or place.layer is None:
        return exact
    fits = [
        (distance(received.values, reference.print_of(other).values, received.dtype), other) for other in neighbours
    ]
    least = min(fits, default=(1.0, ""))
    return Relation("elsewhere", least[1], distance=least[0]) if least[0] <= NEAR and received.matrix[0] > 1 else None


def _exactly(received: Print, name: str, reference: Reference, names: Any) -> Relation | None:
    """Return the one tensor among `names` with the same content; of several none can be said to be the origin."""
    hits = [other for other in names if other != name and reference.print_of(other).hash == received.hash]
    return Relation("elsewhere", hits[0]) if len(hits) == 1 else None


def _nearly(received: Print, name: str, reference: Reference, kind: str) -> Relation | None:
    """Return the peer that the received tensor is a trained version of, if one stands out."""
    import numpy as np

    names = reference.peers(kind, received.shape)
    if len(names) < 2 or received.matrix[0] < 2:
        return None
    table = reference.samples(kind, received.shape)
    gaps = np.sqrt(np.nanmean((table - received.values) ** 2, axis=1)) / np.maximum(np.nanstd(table, axis=1), 1e-12)
    order = np.argsort(gaps)
    best, second = float(gaps[order[0]]), float(gaps[order[1]])
    if best <= ALIKE and second > 2 * best + 0.2 and names[order[0]] != name:
        return Relation("elsewhere", names[order[0]], distance=best)
    return None


def _other_shape(received: Print, own: Print, name: str) -> Relation:
    """Relate two tensors of different shapes."""
    rows, columns = own.matrix
    got, wide = received.matrix
    words = f"{list(received.shape)} instead of {list(own.shape)}"
    words_zh = f"{list(received.shape)} 而非 {list(own.shape)}"
    spots = places(got, wide)
    if own.stored is not None and len(received.shape) == len(own.shape) > 1:
        if wide == columns and got > rows and _agree(received, own.stored, spots):
            return Relation("padded", name, f"{got - rows} rows too many: {words}", f"多出 {got - rows} 行：{words_zh}")
        if (got, wide) == (columns, rows) and _agree(received, own.stored, tuple((c, r) for r, c in spots)):
            return Relation("transposed", name, words, words_zh)
        for axis, pieces_of in (("rows", rows // max(got, 1)), ("columns", columns // max(wide, 1))):
            whole = (
                (got * pieces_of, wide) == (rows, columns)
                if axis == "rows"
                else (got, wide * pieces_of) == (rows, columns)
            )
            for number in range(min(pieces_of, 64) if whole else 0):
                moved = tuple((r + number * got, c) if axis == "rows" else (r, c + number * wide) for r, c in spots)
                if _agree(received, own.stored, moved):
                    en = f"only part {number + 1} of {pieces_of} of its {axis}: {words}"
                    return Relation("part", name, en, f"只有第 {number + 1}/{pieces_of} 份（{axis}）：{words_zh}")
    return Relation("shape", name, words, words_zh)


def _agree(received: Print, own: Stored, spots: tuple[tuple[int, int], ...]) -> bool:
    """Whether the received sample holds what the checkpoint has at `spots`; spots outside it do not count."""
    import numpy as np

    values = np.array(values_at(own, spots))
    inside = np.isfinite(values)
    if inside.sum() < min(4, len(spots)):
        return False
    return distance(received.values[inside], values[inside], received.dtype) <= NEAR


def _transposed(received: Print, own: Print, name: str) -> Relation | None:
    rows, columns = own.matrix
    if rows != columns or rows < 2 or own.stored is None:
        return None
    turned = tuple((column, row) for row, column in places(rows, columns))
    if _agree(received, own.stored, turned):
        return Relation("transposed", name, "rows and columns are exchanged", "行列互换")
    return None


def _affine(received: Print, own: Print, name: str, dtype: str) -> Relation | None:
    """Recognise a constant added to every value (norm weights stored around zero), or a constant factor."""
    import numpy as np

    good = np.isfinite(received.values) & np.isfinite(own.values)
    mine, theirs = received.values[good], own.values[good]
    if len(mine) < 8:
        return None
    shift = float(np.median(mine - theirs))
    if (
        abs(shift) > GROSS * max(_scale(theirs), abs(float(np.mean(theirs))))
        and distance(mine - shift, theirs, dtype) <= NEAR
    ):
        return Relation("offset", name, f"{shift:+.4g} was added to every value", f"每个值都加了 {shift:+.4g}")
    power = float(np.dot(theirs, theirs))
    factor = float(np.dot(mine, theirs)) / power if power else 0.0
    if abs(factor) > 1e-6 and abs(factor - 1) > GROSS and distance(mine / factor, theirs, dtype) <= NEAR:
        return Relation("scaled", name, f"every value is {factor:.4g} times as large", f"每个值都是 {factor:.4g} 倍")
    return None


def _patchy(received: Print, own: Print, name: str, dtype: str) -> Relation | None:
    """Recognise a tensor of which most is right and some rows are not, from the sample alone."""
    import numpy as np

    gap = _gap(received.values, own.values, dtype, slack=True) / _scale(own.values)
    far = gap > ALIKE
    if own.matrix[0] > 1 and far.any() and float(np.nanmedian(gap)) <= NEAR:
        share = float(np.mean(far))
        return Relation("partly", name, f"about {share:.0%} of it is other content", f"约 {share:.0%} 是其他内容")
    return None


def _permuted(received: Print, own: Print, name: str) -> Relation:
    """Describe rows that only changed places."""
    en, zh = "the right rows in another order", "行都对但次序不同"
    if received.stored is not None and own.stored is not None:
        theirs = {int(value): row for row, value in enumerate(row_hashes(own.stored))}
        order = [theirs.get(int(value), -1) for value in row_hashes(received.stored)]
        moved = [(row, origin) for row, origin in enumerate(order) if row != origin]
        if moved:
            en += f"; row {moved[0][0]} holds row {moved[0][1]}, {len(moved)} of {len(order)} rows moved"
            zh += f"；第 {moved[0][0]} 行是原第 {moved[0][1]} 行，共 {len(moved)}/{len(order)} 行移动"
    return Relation("permuted", name, en, zh)


def _changed_rows(received: Print, own: Print) -> tuple[str, str]:
    """Say which rows changed, as far as the hashes of blocks tell; nothing when all blocks did."""
    rows, size = own.matrix[0], block_rows(own.matrix[0])
    pairs = [(received.blocks[at : at + 8], own.blocks[at : at + 8]) for at in range(0, len(own.blocks), 8)]
    changed = [number for number, (mine, theirs) in enumerate(pairs) if mine != theirs]
    if len(changed) in (0, len(pairs)):
        return "", ""
    first, last = changed[0] * size, min((changed[-1] + 1) * size, rows) - 1
    words = f"{len(changed)}/{len(pairs)}"
    return (
        f"{words} blocks of rows changed, within rows {first}-{last}",
        f"{words} 个行块有变化，在第 {first}-{last} 行之内",
    )


def _compared_in_full(received: Print, own: Print, name: str, dtype: str, apart: float) -> Relation:
    """Look at every value of a tensor whose sample is near, as far as the values are there."""
    import numpy as np

    if received.stored is None or own.stored is None or received.dtype != own.dtype:
        return Relation("near", name, *_changed_rows(received, own), apart)
    changed, far, first, bad, rows = 0, 0, -1, 0, own.matrix[0]
    scale = _scale(own.values)
    for (row, mine), (_, theirs) in zip(pieces(received.stored), pieces(own.stored), strict=True):
        with np.errstate(invalid="ignore", over="ignore"):
            a, b = decode(mine, received.dtype), decode(theirs, own.dtype)
            gap = np.subtract(a, b, dtype=np.float32)
            changed += int(np.count_nonzero(gap))
            power = np.einsum("ij,ij->i", gap, gap) / gap.shape[1]
        suspects = np.flatnonzero(~(power <= (ALIKE * scale) ** 2))
        if not suspects.size:
            continue
        bad += int(np.count_nonzero(~np.isfinite(a[suspects])))
        slack = np.sqrt(np.mean(_gap(a[suspects], b[suspects], dtype, slack=True) ** 2, axis=1)) / scale
        wrong = suspects[slack > ALIKE]
        if wrong.size:
            first = row + int(wrong[0]) if first < 0 else first
            far += int(wrong.size)
    if bad and (broken := _nonfinite(bad, own, name)) is not None:
        return broken
    if far and rows > 1:
        en = f"{far} of {rows} rows, from row {first} on, are other content"
        return Relation("partly", name, en, f"{rows} 行中有 {far} 行（从第 {first} 行起）是其他内容", apart)
    share = changed / max(own.numel, 1)
    return Relation("near", name, f"{share:.1%} of its values changed", f"{share:.1%} 的值有变化", apart)
