"""Debug dumps page by page: rollouts, samples, and one sample token by token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probes.browse_dumps import dumps
from probes.browse_keep import Keep
from probes.browse_sample import PART
from probes.browse_step import Record, Row, judged, steps_of
from probes.samples import Generated
from runbook.browse import Ask, Page, Reading, Sheet, checked
from runbook.errors import EvidenceError
from runbook.evidence import Evidence
from runbook.text import Text
from tests.helpers import evidence_of, is_safe
from tests.probes import dump_makers as made
from tests.probes.readers.pickles import DUMPS, calling, torch_zip

IDS = [0, 1, 2, 3, 4]
ENGINE = [-0.1, -0.2, -0.3, -0.4, -0.5]


def opened(evidence: Evidence, *place: str, **ask: Any) -> Page:
    """Open a page as a worker does."""
    return checked(dumps.open(evidence, Ask(place, **ask)))


def sheet(evidence: Evidence, *place: str, **ask: Any) -> Sheet:
    """Open a page that is a sheet."""
    page = opened(evidence, *place, **ask)
    assert isinstance(page, Sheet)
    return page


def reading(evidence: Evidence, *place: str, **ask: Any) -> Reading:
    """Open a page that is a reading."""
    page = opened(evidence, *place, **ask)
    assert isinstance(page, Reading)
    return page


def column(page: Sheet, id: str) -> list[Any]:
    """Return the cells of a column."""
    return [line.cells[page.column(id)] for line in page.lines]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every page the time that it needs on a busy machine, so that no test depends on it."""
    monkeypatch.setattr("probes.browse_dumps.SECONDS", 600.0)
    monkeypatch.setattr("probes.browse_dumps.MORE_SECONDS", 600.0)


@pytest.fixture
def run(tmp_path: Path) -> Evidence:
    """Return the evidence of a run of three rollouts; sample 2 of the last one disagrees from token 4 on."""
    folder = made.run_folder(tmp_path)
    return evidence_of(("rollout_dump", folder / "dump"), ("hf_checkpoint", folder / "model"))


@pytest.mark.parametrize(("status", "kind"), [("truncated", "garbled"), ("completed", "coherent")])
def test_a_response_is_judged_as_the_probe_judges_it(status: str, kind: str) -> None:
    """Six times one stanza is a song when the model ended it itself, and a loop when it ran into the limit."""
    stanza = "The river runs\nbelow the hill\nand all the day\nthe wheel stands still.\n"
    assert judged(Row("0", 0), stanza * 6, Generated(status)).kind == kind


def test_the_rollouts_show_the_trend(run: Evidence) -> None:
    """Two rollouts are 0.01 nat apart; the last one has 7 of 44 tokens 1.99 apart instead."""
    page = sheet(run)
    assert column(page, "step") == [0, 1, 2]
    assert column(page, "samples") == [4, 4, 4]
    mean = (37 * 0.01 + 7 * 1.99) / 44
    assert column(page, "gap") == pytest.approx([0.01, 0.01, mean], rel=1e-5)
    assert column(page, "largest") == pytest.approx([0.01, 0.01, 1.99], rel=1e-5)
    assert column(page, "disagree") == [0.0, 0.0, 0.25]
    assert column(page, "reward") == [1.5, 1.5, 1.5]
    assert [line.role for line in page.lines] == ["", "", "bad"]
    assert page.done == 1


def test_the_worst_sample_comes_first(run: Evidence) -> None:
    """The samples are ordered by their mean gap, and say at which token they first disagree."""
    page = sheet(run, "2")
    assert page.order == "-gap"
    assert column(page, "first") == [None, None, 4, None]
    assert column(page, "status") == ["completed"] * 4
    assert column(page, "length") == [11] * 4
    assert [line.role for line in page.lines] == ["", "", "bad", ""]


def test_a_sample_shows_each_token_with_its_gap(run: Evidence) -> None:
    """Tokens have their own text, trainer minus engine, both log-probs and their id; jumps are the disagreements."""
    page = reading(run, "2", "2")
    prompt, response = page.passages
    assert "".join(prompt.pieces) == "How many? please please"
    assert response.pieces == (*made.TEXTS[:6], *made.TEXTS[:5])
    assert response.values == pytest.approx([0.01] * 4 + [-1.99] * 7, rel=1e-5)
    assert [(jump.passage, jump.piece) for jump in page.jumps] == [(1, place) for place in range(4, 11)]
    tracks = {track.title.en: track.values for track in response.tracks}
    assert tracks["trainer"][:5] == pytest.approx((-0.24, -0.24, -0.24, -0.24, -2.24), rel=1e-5)
    assert tracks["engine"] == pytest.approx([-0.25] * 11)
    assert tracks["id"] == tuple(str(id) for id in [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4])
    facts = {name.en: words for name, words in page.facts}
    assert facts["reward"] == "2"
    assert facts["metadata"] == "{'source': 'kitchen'}"
    assert page.notes == ()


def test_tokens_outside_the_loss_are_not_compared(tmp_path: Path) -> None:
    """A tool's output, where the engine gave no log-prob, is no disagreement however far the trainer is."""
    mask = [1, 1, 0, 0, 1]
    told = made.rollout_sample(0, IDS, [-0.1, -0.1, 0.0, 0.0, -0.1], loss_mask=mask)
    trained = made.train_sample(0, IDS, [-0.1, -0.1, 0.0, 0.0, -0.1], [-0.1, -0.1, -9.0, -9.0, -0.1], loss_masks=mask)
    made.write_rollout(tmp_path, 0, [told])
    made.write_train(tmp_path, 0, [trained])
    page = reading(evidence_of(("rollout_dump", tmp_path)), "0", "0")
    response = page.passages[-1]
    assert response.quiet == (2, 3)
    assert [value is None for value in response.values] == [False, False, True, True, False]
    assert page.jumps == ()


def test_without_a_tokenizer_the_text_is_cut_in_shares(tmp_path: Path) -> None:
    """The pieces put together are the response, and the page says that their borders are estimated."""
    made.write_rollout(tmp_path, 0, [made.rollout_sample(0, IDS, ENGINE)])
    page = reading(evidence_of(("rollout_dump", tmp_path)), "0", "0")
    assert "".join(page.passages[-1].pieces) == "The answer is 12."
    assert len(page.passages[-1].pieces) == 5
    assert any("estimated" in note.en for note in page.notes)
    assert page.levels == ()
    rows = sheet(evidence_of(("rollout_dump", tmp_path)), "0")
    assert rows.column("gap") == rows.column("first") == -1, "there is nothing to compare with"
    assert any("give rollout and train dump" in note.en for note in rows.notes)


def test_a_train_dump_alone(tmp_path: Path) -> None:
    """It holds both log-probs but no text: with a tokenizer the text is told, without one the ids are shown."""
    made.write_train(tmp_path / "d", 0, [made.train_sample(7, IDS, ENGINE, [-0.1, -0.2, -0.3, -0.4, -3.5])])
    alone = evidence_of(("train_dump", tmp_path / "d"))
    page = reading(alone, "0", "7")
    assert page.passages[-1].pieces == ("0 ", "1 ", "2 ", "3 ", "4 ")
    assert [jump.piece for jump in page.jumps] == [4]
    model = made.write_tokenizer(tmp_path / "model")
    known = evidence_of(("train_dump", tmp_path / "d"), ("hf_checkpoint", model))
    assert reading(known, "0", "7").passages[-1].pieces == made.TEXTS[:5]


def test_another_tokenizer_is_told(tmp_path: Path) -> None:
    """Where the checkpoint's tokenizer gives another text than the recorded response, the page says so."""
    made.write_rollout(tmp_path / "d", 0, [made.rollout_sample(0, IDS, ENGINE, response="Quite another text.")])
    evidence = evidence_of(("rollout_dump", tmp_path / "d"), ("hf_checkpoint", made.write_tokenizer(tmp_path / "m")))
    assert any("another text" in note.en for note in reading(evidence, "0", "0").notes)


def test_dumps_of_other_tokens_are_not_compared(tmp_path: Path) -> None:
    """Where the two dumps hold different tokens, no gap is shown and the place is named."""
    made.write_rollout(tmp_path, 0, [made.rollout_sample(0, IDS, ENGINE)])
    other = made.train_sample(0, [0, 1, 5, 3, 4], ENGINE, ENGINE)
    del other["rollout_log_probs"]
    made.write_train(tmp_path, 0, [other])
    page = reading(evidence_of(("rollout_dump", tmp_path)), "0", "0")
    assert page.passages[-1].values == ()
    assert any("other tokens from token 4" in note.en for note in page.notes)


def test_a_suspicious_text_is_named(tmp_path: Path) -> None:
    """A loop is garbled, an empty response is empty, an aborted sample is not judged."""
    loop = made.rollout_sample(0, IDS, ENGINE, response="ha " * 300)
    empty = made.rollout_sample(1, IDS, ENGINE, response="")
    aborted = made.rollout_sample(2, IDS, ENGINE, response="ha " * 300, status="aborted")
    made.write_rollout(tmp_path, 0, [loop, empty, aborted])
    page = sheet(evidence_of(("rollout_dump", tmp_path)), "0", again=True)
    said = [cell.en if isinstance(cell, Text) else cell for cell in column(page, "suspicion")]
    assert "repeats 'ha '" in said[0]
    assert said[1:] == ["empty", ""]
    assert [line.role for line in page.lines] == ["bad", "warn", "warn"]


def test_rewards_of_several_kinds(tmp_path: Path) -> None:
    """A dict with one number is that number; with several, none is chosen; a truth value is no reward."""
    rewards: list[object] = [{"score": 0.5}, {"a": 1, "b": 2}, None, True, 3]
    samples = [made.rollout_sample(i, IDS, ENGINE, reward=reward) for i, reward in enumerate(rewards)]
    made.write_rollout(tmp_path, 0, samples)
    assert column(sheet(evidence_of(("rollout_dump", tmp_path)), "0"), "reward") == [0.5, None, None, None, 3.0]


def test_an_index_that_occurs_twice_opens_both(tmp_path: Path) -> None:
    """Two samples of one index have pages of their own."""
    first = made.rollout_sample(5, IDS, ENGINE)
    made.write_rollout(tmp_path, 0, [first, first | {"prompt": "second"}])
    evidence = evidence_of(("rollout_dump", tmp_path))
    assert [line.id for line in sheet(evidence, "0").lines] == ["5", "5.2"]
    assert "".join(reading(evidence, "0", "5.2").passages[0].pieces) == "second"


def test_chat_messages_are_a_prompt(tmp_path: Path) -> None:
    """A prompt of messages shows who says what."""
    prompt = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]
    made.write_rollout(tmp_path, 0, [made.rollout_sample(0, IDS, ENGINE, prompt=prompt)])
    page = reading(evidence_of(("rollout_dump", tmp_path)), "0", "0")
    assert "".join(page.passages[0].pieces) == "[user] Hi\n[assistant] Yo"


def test_text_that_no_file_can_keep_is_shown_escaped(tmp_path: Path) -> None:
    """Lone surrogates, as JSON of a data set may hold, and numbers beyond 64 bits break no page."""
    odd = {"prompt": "Hi \ud83d", "response": "\ud83d Yo", "label": "\udc00", "status": "\udfff", "group_index": 10**40}
    made.write_rollout(tmp_path, 0, [made.rollout_sample(0, IDS, ENGINE) | odd])
    evidence = evidence_of(("rollout_dump", tmp_path))
    assert column(sheet(evidence, "0"), "prompt") == ["Hi \\ud83d"]
    passages = reading(evidence, "0", "0").passages
    assert "".join(passages[0].pieces) == "Hi \\ud83d"
    assert "".join(passages[1].pieces).startswith("\\ud83d Yo")


def test_a_long_response_comes_in_windows(tmp_path: Path) -> None:
    """The second window begins where the first ends, and a disagreement in it is known in the first."""
    count = PART + 100
    ids, engine = [0] * count, [-0.25] * count
    trainer = list(engine)
    trainer[PART + 7] = -5.25
    made.write_rollout(tmp_path, 0, [made.rollout_sample(0, ids, engine)])
    made.write_train(tmp_path, 0, [made.train_sample(0, ids, engine, trainer)])
    evidence = evidence_of(("rollout_dump", tmp_path))
    first, second = reading(evidence, "0", "0"), reading(evidence, "0", "0", part=1)
    assert (first.parts, len(first.passages[1].pieces)) == (2, PART)
    assert [(jump.part, jump.passage, jump.piece, jump.value) for jump in first.jumps] == [(1, 0, 7, -5.0)]
    (passage,) = second.passages
    assert (passage.first, len(passage.pieces), passage.values[7]) == (PART, 100, -5.0)


def test_what_is_kept_is_what_would_be_read(run: Evidence, tmp_path: Path) -> None:
    """With a folder to keep things in, every page is the same as without, also the second time."""
    keep = tmp_path / "keep"
    keep.mkdir()
    for place in ((), ("2",), ("2", "2"), ("1", "0"), ("2",)):
        fresh = opened(run, *place, again=True)
        assert opened(run, *place, again=True, keep=str(keep)) == fresh
        assert opened(run, *place, again=True, keep=str(keep)) == fresh
    (step, *_) = steps_of(run)
    folder = Keep(str(keep))
    assert folder.record(step, "1")[1] == Keep("").record(step, "1")[1]
    assert isinstance(folder.record(step, "1")[1], Record)


def test_damage_in_what_is_kept_does_no_harm(run: Evidence, tmp_path: Path) -> None:
    """Files that were cut or overwritten are read from the dumps again."""
    fresh = opened(run, "2", "2")
    for kept in ("", str(tmp_path)):
        opened(run, "2", keep=kept)
    for path in tmp_path.iterdir():
        if path.suffix in (".rows", ".records"):
            path.write_bytes(b"\xc1 not msgpack")
    assert opened(run, "2", "2", keep=str(tmp_path)) == fresh
    assert opened(run, "2", "2", keep=str(tmp_path / "gone")) == fresh


def test_a_dump_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    """What is kept belongs to one state of the files."""
    keep = tmp_path / "keep"
    keep.mkdir()
    evidence = evidence_of(("rollout_dump", tmp_path / "d"))
    made.write_rollout(tmp_path / "d", 0, [made.rollout_sample(0, IDS, ENGINE)])
    assert len(sheet(evidence, "0", keep=str(keep)).lines) == 1
    made.write_rollout(tmp_path / "d", 0, [made.rollout_sample(i, IDS, ENGINE) for i in range(3)])
    assert len(sheet(evidence, "0", keep=str(keep)).lines) == 3


def test_a_search_looks_into_the_whole_text(run: Evidence, tmp_path: Path) -> None:
    """Words far behind the excerpt of a row are found, whatever their case; every word has to stand there."""
    long = "filler " * 200 + "the Needle is here"
    samples = [made.rollout_sample(0, IDS, ENGINE), made.rollout_sample(1, IDS, ENGINE, response=long)]
    made.write_rollout(tmp_path / "d", 0, samples)
    evidence = evidence_of(("rollout_dump", tmp_path / "d"))
    assert [line.id for line in sheet(evidence, "0", find="needle FILLER").lines] == ["1"]
    assert sheet(evidence, "0", find="needle missing").lines == ()


def test_a_dump_that_cannot_be_read_is_a_row_that_says_why(tmp_path: Path) -> None:
    """A hostile and a truncated dump are named with their fault; the sound one beside them is shown, nothing is run."""
    target = tmp_path / "ran"
    torch_zip(tmp_path / "0.pt", calling("os system", f"touch {target}"))
    made.write_rollout(tmp_path, 1, [made.rollout_sample(0, IDS, ENGINE)])
    cut = made.write_rollout(tmp_path, 2, [made.rollout_sample(0, IDS, ENGINE)])
    cut.write_bytes(cut.read_bytes()[:400])
    page = sheet(evidence_of(("rollout_dump", tmp_path)))
    notes = column(page, "note")
    assert "nothing was run" in notes[0]
    assert notes[1] == ""
    assert "cut off" in notes[2]
    assert [line.role for line in page.lines] == ["bad", "", "bad"]
    assert not target.exists()
    assert sheet(evidence_of(("rollout_dump", tmp_path)), "0").lines == ()


def test_evaluations_stand_behind_the_rollouts(tmp_path: Path) -> None:
    """An evaluation dump of the same number is a row of its own and no point of the trend."""
    made.write_rollout(tmp_path, 0, [made.rollout_sample(0, IDS, ENGINE)])
    made.write_rollout(tmp_path, 0, [made.rollout_sample(0, IDS, ENGINE)], "eval_0")
    page = sheet(evidence_of(("rollout_dump", tmp_path)))
    assert [line.id for line in page.lines] == ["0", "eval-0"]
    assert column(page, "step") == [0, None]


def test_large_dumps_do_not_hold_up_the_first_page(run: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is more than can be read at once is listed with the reason, and read when the page is asked again."""
    monkeypatch.setattr("probes.browse_dumps.AT_ONCE", 0)
    first = sheet(run)
    assert (first.done, column(first, "gap")) == (0.0, [None, None, None])
    assert all(cell.en == "not read yet" for cell in column(first, "note"))
    assert sheet(run, again=True).done == 1


@pytest.mark.parametrize("place", [("9",), ("x",), ("2", "99"), ("2", "")])
def test_a_place_that_is_not_there(run: Evidence, place: tuple[str, ...]) -> None:
    """The error says what there is instead."""
    with pytest.raises(EvidenceError) as caught:
        opened(run, *place)
    assert "there is: 0, 1" in caught.value.hint


@pytest.mark.parametrize("name", sorted(path.name for path in DUMPS.iterdir()))
def test_every_page_of_recorded_dumps_is_safe(name: str) -> None:
    """Dumps of real runs and every version open on all levels."""
    evidence = evidence_of(("rollout_dump", DUMPS / name))
    first = sheet(evidence, again=True)
    for line in first.lines[:2]:
        rows = sheet(evidence, line.id, again=True)
        for row in rows.lines[:2]:
            page = reading(evidence, line.id, row.id)
            assert all(is_safe(part) for p in page.passages for piece in p.pieces for part in piece.split("\n"))


def test_a_zeroed_mlp_is_seen_token_by_token() -> None:
    """The dump of a run whose engine held other weights disagrees within the first tokens of most samples."""
    evidence = evidence_of(("rollout_dump", DUMPS / "one-zero-mlp"))
    first = sheet(evidence)
    page = sheet(evidence, first.lines[0].id)
    assert sum(place is not None and place < 30 for place in column(page, "first")) > len(page.lines) // 2
    assert all(gap > 0.1 for gap in column(page, "gap"))
