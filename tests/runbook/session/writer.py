"""A process that writes to a session until it is killed: `python -m tests.runbook.session.writer FOLDER`.

It prints the number of each event after `append` returned, so that the test knows what must not be lost.
"""

from __future__ import annotations

import sys

from runbook.session.events import Noted
from runbook.session.journal import Journal


def words(number: int) -> str:
    """Return the note with this number; long enough that a kill can fall into the middle of its line."""
    return f"note {number} " + "x" * (number % 7 * 5000)


def main(folder: str) -> None:
    """Append notes for ever."""
    with Journal.open(folder) as journal:
        number = len(journal.records)
        while True:
            record = journal.append(Noted(words(number)), float(number))
            sys.stdout.write(f"{record.n}\n")
            sys.stdout.flush()
            number += 1


if __name__ == "__main__":
    main(sys.argv[1])
