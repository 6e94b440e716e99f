"""Rollouts are called coherent, partly garbled, garbled or empty, with the samples that show it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rollout_coherence import coherence
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import STAMP, ask, manager, word
from tests.probes.readers.pickles import DUMPS, torch_zip
from tests.probes.test_text_quality import GARBLED, HEALTHY


def of_dumps(*paths: Path) -> Finding:
    """Run the probe on rollout dumps."""
    finding = coherence.run(evidence_of(*(("rollout_dump", path) for path in paths)), silent)
    check_citations(finding)
    return finding


def write(folder: Path, number: int, *responses: str, **fields: Any) -> Path:
    """Write a rollout dump of these responses."""
    samples = [{"index": n, "response": text, "status": "completed", **fields} for n, text in enumerate(responses)]
    return torch_zip(folder / f"{number}.pt", pickle.dumps({"rollout_id": number, "samples": samples}, 2))


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("coherent", "ok:coherent"),
        ("garbled", "problem:garbled"),
        ("half", "problem:partly-garbled"),
        ("one-zero-mlp", "ok:coherent"),
        ("old", "problem:garbled"),
        ("old/rollout_data/0.pt", "ok:coherent"),
        ("old/train_data", "unknown"),
        ("malicious.pt", "unknown"),
    ],
)
def test_dumps_of_real_layouts(path: str, answer: str) -> None:
    """Each recorded folder or file gets the answer that reading its texts by eye gives."""
    assert word(of_dumps(DUMPS / path)) == answer


def test_the_earliest_garbled_rollout_answers_and_the_first_is_told() -> None:
    """Rollout 0 is fine and rollout 1 is not: the summary says that it began later."""
    finding = of_dumps(DUMPS / "old")
    assert finding.summary.en.startswith("Rollout 1 is garbled: 3 of 3 samples")
    assert "rollout 0 is coherent" in finding.summary.en
    assert finding.citations[0].path.endswith("rollout_data/1.pt")
    assert [row[:2] for row in finding.tables[0].rows] == [("rollout 0", "coherent"), ("rollout 1", "garbled")]


def test_every_sample_is_shown_with_its_reason() -> None:
    """The table of samples begins with the garbled ones and says why."""
    table = of_dumps(DUMPS / "half").tables[1]
    assert [row[1] for row in table.rows[:12]] == ["garbled"] * 12
    assert all("token salad" in row[3] for row in table.rows[:12])
    assert {row[1] for row in table.rows[12:]} == {"coherent"}


@pytest.mark.parametrize(
    ("garbled", "fine", "answer"),
    [(0, 20, "coherent"), (1, 60, "coherent"), (1, 12, "coherent"), (2, 60, "coherent"), (4, 20, "partly-garbled"),
     (10, 10, "partly-garbled"), (18, 2, "garbled"), (1, 1, "partly-garbled"), (1, 0, "garbled")],
)  # fmt: skip
def test_the_share_of_garbled_samples_decides(garbled: int, fine: int, answer: str, tmp_path: Path) -> None:
    """One odd sample in many is chance, a twentieth and more is not, seven in ten is all."""
    write(tmp_path, 0, *[GARBLED["rare-chinese"]] * garbled, *[HEALTHY["en-prose"]] * fine)
    assert of_dumps(tmp_path).answer == answer


@pytest.mark.parametrize(
    ("garbled", "fine", "verdict"),
    [(1, 0, "warning"), (1, 1, "warning"), (1, 3, "warning"), (2, 0, "problem"), (2, 2, "problem"),
     (2, 20, "warning"), (4, 20, "problem"), (16, 0, "problem")],
)  # fmt: skip
def test_only_as_many_as_no_mistake_explains_are_a_problem(
    garbled: int, fine: int, verdict: str, tmp_path: Path
) -> None:
    """With 2 in 1,000 misjudged, one of one is 2e-3, two of four 2e-5, two of 22 9e-4, four of 24 2e-7."""
    write(tmp_path, 0, *[GARBLED["rare-chinese"]] * garbled, *[HEALTHY["en-prose"]] * fine)
    finding = of_dumps(tmp_path)
    assert finding.verdict.value == verdict
    assert (finding.measurements[0].value <= 1e-4) is (verdict == "problem")


def test_short_and_aborted_samples_do_not_dilute_the_share(tmp_path: Path) -> None:
    """Answers of one word say nothing about the text, and aborted samples are not answers."""
    write(tmp_path, 0, *[GARBLED["symbols"]] * 4, *["42"] * 40)
    assert of_dumps(tmp_path).answer == "garbled"
    write(tmp_path, 0, *["42"] * 40)
    assert of_dumps(tmp_path).answer == "coherent"
    assert "too short" in of_dumps(tmp_path).summary.en
    write(tmp_path, 0, "", "", "", status="aborted")
    assert word(of_dumps(tmp_path)) == "unknown"


def test_empty_responses_are_a_problem_of_their_own(tmp_path: Path) -> None:
    """Half of the responses empty is `empty`, a few are not; nearly all of many are a problem."""
    write(tmp_path, 0, "", "<|im_end|>", "\n", HEALTHY["de"])
    assert word(of_dumps(tmp_path)) == "warning:empty"
    write(tmp_path, 0, *[""] * 7)
    assert word(of_dumps(tmp_path)) == "warning:empty"
    write(tmp_path, 0, *[""] * 9, HEALTHY["de"])
    assert word(of_dumps(tmp_path)) == "problem:empty"
    write(tmp_path, 0, "", *[HEALTHY["de"]] * 9)
    assert word(of_dumps(tmp_path)) == "ok:coherent"


def test_an_evaluation_dump_answers_only_where_there_is_no_other(tmp_path: Path) -> None:
    """Garbage in an evaluation does not answer for a rollout, but alone it does."""
    write(tmp_path, 0, *[HEALTHY["ru"]] * 4)
    garbled = write(tmp_path, 1, *[GARBLED["mixed-scripts"]] * 4)
    garbled.rename(tmp_path / "eval_1.pt")
    assert of_dumps(tmp_path).answer == "coherent"
    (tmp_path / "0.pt").unlink()
    assert of_dumps(tmp_path).answer == "garbled"


def test_a_folder_of_many_dumps_is_read_in_part_and_says_so(tmp_path: Path) -> None:
    """Of forty rollouts twelve are read, the first and the last among them."""
    for number in range(39):
        write(tmp_path, number, HEALTHY["fr"], HEALTHY["ja"])
    write(tmp_path, 39, GARBLED["random-weights"], GARBLED["temperature-2"])
    finding = of_dumps(tmp_path)
    assert finding.summary.en.startswith("Rollout 39 is garbled")
    assert "(12 of 40 dumps read)" in finding.summary.en


def test_the_summary_names_the_samples_the_reason_and_how_many_break_later(tmp_path: Path) -> None:
    """Indices and reasons are told in both languages, and that some responses begin well."""
    late = HEALTHY["en-prose"] * 3 + "".join(f"{n} {GARBLED['mixed-scripts']}" for n in range(5))
    write(tmp_path, 0, *[HEALTHY["de"]] * 4, late, late, GARBLED["symbols"])
    finding = of_dumps(tmp_path)
    assert "samples 4, 5, 6" in finding.summary.en
    assert "样本 4, 5, 6" in finding.summary.zh
    assert "coherent at first and broken later: 2 of them" in finding.summary.en
    assert "其中 2 个开头正常" in finding.summary.zh
    assert "from character" in finding.citations[0].excerpt
    row = finding.tables[1].rows[0]
    assert row[0] == "4"
    assert int(row[2].replace(",", "")) == pytest.approx(3 * len(HEALTHY["en-prose"]), abs=350)
    assert "scripts mixed" in row[3]
    assert len(row) == 6
    chinese = finding.tables[1].said("zh")
    assert "文字" in chinese.rows[0][3]
    assert "scripts mixed" not in str(chinese)


def test_three_rollouts_are_drawn_and_the_first_bad_one_is_marked(tmp_path: Path) -> None:
    """The share of garbled samples over the rollouts rises where the mark stands."""
    for number in range(4):
        write(tmp_path, number, *[HEALTHY["de"] if number < 2 else GARBLED["symbols"]] * 4)
    plot = of_dumps(tmp_path).plots[0]
    assert plot.curves[0].points == ((0.0, 0.0), (1.0, 0.0), (2.0, 1.0), (3.0, 1.0))
    assert plot.marks[0][0] == 2.0


def test_that_every_response_was_truncated_is_said(tmp_path: Path) -> None:
    """Truncation is no proof of garbage; it is measured and told."""
    write(tmp_path, 0, *[HEALTHY["it"]] * 3, status="truncated")
    finding = of_dumps(tmp_path)
    assert word(finding) == "ok:coherent"
    assert "every response ran into the length limit" in finding.summary.en
    assert {m.name: m.value for m in finding.measurements}["truncated samples"] == 1.0


def printed(response: str, prompt: str = "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n") -> str:
    """Return the line that slime prints for a sample."""
    return f"{STAMP}sglang_rollout.py:420 - First rollout sample: {[prompt + response]!r}, label: 2, reward: 1"


@pytest.mark.parametrize("name", ["english-token-salad", "mixed-scripts", "exclamation-marks", "newlines"])
def test_a_garbled_sample_printed_in_a_log_is_cited_by_its_line(name: str, tmp_path: Path) -> None:
    """Without a dump the printed sample answers; the citation is that very line, and one sample is a warning."""
    log = tmp_path / "job.log"
    log.write_text(f"{STAMP}rollout.py:1 - Router launched at 10.0.0.1:3000\n{printed(GARBLED[name])}\n")
    finding = ask(coherence, log)
    assert word(finding) == "warning:garbled"
    assert finding.citations[0].line == 2


def rollouts(*texts: tuple[str, str], start: int | None = 0) -> str:
    """Return the lines of rollouts that print these first and last samples; without `start` no metric line follows."""
    lines = []
    for place, (first, last) in enumerate(texts):
        lines.append(printed(first))
        lines.append(printed(last).replace("First rollout sample", "Finish rollout"))
        lines += [manager(start + place)] if start is not None else []
    return "\n".join(lines) + "\n"


FINE = (HEALTHY["en-prose"], HEALTHY["de"])
BROKEN = (GARBLED["mixed-scripts"], GARBLED["english-token-salad"])


@pytest.mark.parametrize(("start", "told", "first"), [(0, "5", "rollout 0"), (20, "25", "rollout 20")])
def test_a_later_printed_rollout_is_told_as_later(tmp_path: Path, start: int, told: str, first: str) -> None:
    """Rollout 0 fine and rollout 5 garbled is not a broken first rollout; the manager's line says the number."""
    log = tmp_path / "job.log"
    log.write_text(rollouts(*[FINE] * 5, BROKEN, start=start))
    finding = ask(coherence, log)
    assert word(finding) == "problem:garbled"
    assert finding.summary.en.startswith(f"Rollout {told} is garbled: 2 of 2 samples")
    assert f"{first} is coherent, so it began after a weight update" in finding.summary.en
    assert [row[1] for row in finding.tables[0].rows] == [*["coherent"] * 5, "garbled"]


def test_without_metric_lines_a_printed_rollout_is_named_by_its_place(tmp_path: Path) -> None:
    """The log may begin anywhere, so the place is not called the rollout's number."""
    log = tmp_path / "job.log"
    log.write_text(rollouts(FINE, FINE, BROKEN, start=None))
    assert ask(coherence, log).summary.en.startswith("Printed rollout no. 3 is garbled")


def test_the_same_samples_in_two_logs_count_once(tmp_path: Path) -> None:
    """The driver's log repeats what the worker's own file has."""
    for name in ("driver.log", "worker.log"):
        (tmp_path / name).write_text(rollouts((GARBLED["symbols"], HEALTHY["de"])))
    finding = ask(coherence, tmp_path / "driver.log", tmp_path / "worker.log")
    assert word(finding) == "warning:partly-garbled"
    assert len(finding.tables[0].rows) == 1


def test_single_garbled_samples_in_many_rollouts_are_weighed_against_all(tmp_path: Path) -> None:
    """Three odd samples among eighty are no proof, though each makes its own rollout look half garbled."""
    log = tmp_path / "job.log"
    odd = (GARBLED["symbols"], HEALTHY["de"])
    log.write_text(rollouts(odd, *[FINE] * 12, odd, *[FINE] * 12, odd, *[FINE] * 13))
    assert word(ask(coherence, log)) == "warning:partly-garbled"


@pytest.mark.parametrize("name", ["think-backtrack", "json", "zh-tech", "short-number", "latex", "tool-calls"])
def test_a_healthy_sample_printed_in_a_log_is_coherent(name: str, tmp_path: Path) -> None:
    """The repr of prompt and response, with its escapes, is read back before it is judged."""
    log = tmp_path / "job.log"
    log.write_text(
        f"{printed(HEALTHY[name])}\n{printed(HEALTHY[name]).replace('First rollout sample', 'Finish rollout')}\n"
    )
    assert word(ask(coherence, log)) == "ok:coherent"


def test_a_garbled_prompt_does_not_make_the_response_garbled(tmp_path: Path) -> None:
    """Only what follows the assistant's mark is judged."""
    log = tmp_path / "job.log"
    prompt = "<|im_start|>user\nWhat is this: " + GARBLED["mixed-scripts"] + "<|im_end|>\n<|im_start|>assistant\n"
    log.write_text(printed(HEALTHY["en-prose"], prompt) + "\n")
    assert word(ask(coherence, log)) == "ok:coherent"


def test_a_log_without_samples_is_unknown(tmp_path: Path) -> None:
    """Silence is not coherence."""
    log = tmp_path / "job.log"
    log.write_text(f"{STAMP}rollout.py:1 - Router launched at 10.0.0.1:3000\n")
    assert word(ask(coherence, log)) == "unknown"


@given(response=st.text(max_size=200))
def test_hostile_printed_samples_never_break_the_probe(response: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a model says, the finding is safe text and its citation is true."""
    log = tmp_path_factory.mktemp("log") / "job.log"
    log.write_bytes((printed(response) + "\n").encode("utf-8", "surrogatepass"))
    assert ask(coherence, log).verdict.value in ("ok", "warning")
