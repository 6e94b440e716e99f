"""The page of known failures says everything of every entry."""

from __future__ import annotations

from probes.known import entries, shelves
from probes.known.document import document


def test_every_entry_is_on_the_page_with_source_and_limits() -> None:
    """Id, meaning, what it does not prove, sources and the first samples of each entry are there."""
    page = document(shelves())
    for entry in entries().values():
        _, _, rest = page.partition(f"### {entry.id}\n")
        own = rest.partition("\n#")[0]
        for text in (entry.means.en.rstrip(".") + ".", entry.proves_not, entry.positive[0], entry.negative[0]):
            assert text in own, entry.id
        assert all(one.project in own and one.place in own and one.versions in own for one in entry.source)
        assert all(flag in own for flag in (*entry.flags, *entry.without))


def test_backticks_in_a_sample_do_not_end_the_code() -> None:
    """A sample with backticks is fenced by more of them."""
    page = document(shelves())
    assert "``Search for `cudaErrorIllegalAddress' in" in page
