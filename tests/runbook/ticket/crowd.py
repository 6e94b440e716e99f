"""A transcript of hundreds of causes and thousands of lines, in words that are costly in every markup."""

from __future__ import annotations

import msgspec

from runbook.ticket import transcript as tr
from runbook.ticket.transcript import Transcript
from tests.runbook.ticket.sample import sample, walked_state

COSTLY = {
    "plain": "rank 3 stopped at step 17 ",
    "emoji": "🔥🧯🚒 rank 3 🫠 ",
    "markup": "*_[{|\\`<@#~^+-!:)}]> ",
    "chinese": "第三个 rank 停在第十七步，",
}


def crowded(words: str, language: str = "en", *, lines: int = 20_000, causes: int = 300) -> Transcript:
    """Return a transcript with that many quoted lines and causes.

    words: what all its texts are made of. The first confirmed cause, the next action and the notes are long, too.
    """
    base = sample(walked_state(), language)
    excerpt = (words * 20)[:400]
    each = 40
    proofs = tuple(
        tr.Proof(
            f"p.{n}", words * 30, tuple(tr.Place(f"/r/{words[:30]}/{n}.log", m + 1, m, excerpt) for m in range(each))
        )
        for n in range(lines // each)
    )
    link = tr.Link("node", words * 20, words * 10, "evidence", words * 5, proofs[0].places[0])
    do = tr.Do(words * 40, "\n".join([f"echo {words}"] * 200), (f"+ --{words}",) * 200)
    many = tuple(
        tr.CauseLine(
            n + 1, f"cause-{n}", words * 10, "confirmed" if n < causes // 2 else "possible", "f", "n",
            proofs=proofs[n % len(proofs) :][: 5 if n == 0 else 1], chain=(link,) * 30, consequences=(words * 20,) * 40,
            fix=words * 30, actions=(do,) * 20 if n == 0 else (), open=n,
        )
        for n in range(causes)
    )  # fmt: skip
    checks = tuple(
        tr.Check(f"p.{n}", words * 10, "problem", words, words * 30, places=proofs[n].places[:2],
                 numbers=(tr.Number(words, 1.0, words, "", words, words),),
                 tables=(tr.Table(words, (words, "b"), ((words * 30, words),) * 20),))
        for n in range(len(proofs))
    )  # fmt: skip
    out = tuple(tr.RuledOut(f"out-{n}", words * 10, words * 20, f"p.{n}", proofs[0].places[0]) for n in range(300))
    asked = tuple(tr.Question("f", f"n{n}", f"{n} {words * 10}", words * 10, words * 10) for n in range(300))
    note = tr.Remark((words * 100,) * 300, 1795978000.0, words * 10)
    return msgspec.structs.replace(
        base, title=words * 30, where=(words * 20,) * 5, seen=(words * 20,) * 3, causes=many, problems=proofs,
        checks=checks, ruled_out=out, unknown=asked, notes=(note,) * 20, symptoms=(words * 60,) * 9,
        next=msgspec.structs.replace(base.next, words=words * 300, actions=(do,) * 20),
    )  # fmt: skip
