"""Choices are kept as the session's own texts, so what was dropped stays dropped whatever is hidden later."""

from __future__ import annotations

from runbook.ticket.draft import Draft
from runbook.ticket.redact import Identity
from runbook.ticket.units import units
from tests.runbook.ticket.sample import LINE, sample, walked_state

RAW = sample(walked_state())
NOTE = "lihua@gpu-node-17 saw it twice; ask wang.fang@corp.example.net"


def _draft(*hide: str) -> Draft:
    return Draft.of(RAW, Identity(("lihua",), (), hide))


def test_a_line_leads_back_to_the_texts_of_the_session() -> None:
    """The texts behind a line are as the evidence and the people wrote them."""
    draft = _draft()
    (line,) = (line for line in draft.lines if line.text == "user-1@host-1 saw it twice; ask mail-1")
    assert draft.texts([line]) == {NOTE}
    assert draft.dropped([NOTE]) == {line.text}


def test_what_was_dropped_stays_dropped_when_a_word_is_hidden_later() -> None:
    """The line reads differently then, and still does not leave."""
    draft = _draft("twice", "illegal")
    assert draft.dropped([NOTE, LINE]) == {
        "user-1@host-1 saw it hidden-2; ask mail-1",
        LINE.replace("10.12.0.7", "ip-1").replace("illegal", "hidden-1"),
    }
    leaving = draft.leaving([NOTE, LINE])
    assert not any("saw it" in unit.text or "AcceleratorError" in unit.text for unit in units(leaving))


def test_a_text_that_is_no_line_any_more_is_dropped_where_it_stands_in_others() -> None:
    """After the evidence changed, a dropped text is redacted by itself and sought inside other lines."""
    draft = _draft()
    part = "lihua@gpu-node-17 saw it twice"
    assert draft.dropped([part]) == {"user-1@host-1 saw it twice"}
    assert not any("saw it twice" in unit.text for unit in units(draft.leaving([part])))


def test_nothing_dropped_is_the_redacted_transcript() -> None:
    """No choice changes nothing, and the raw transcript is never what leaves."""
    draft = _draft()
    assert draft.leaving(()) is draft.hidden
    assert draft.dropped(()) == frozenset()
    assert not any("lihua" in unit.text for unit in units(draft.hidden))
