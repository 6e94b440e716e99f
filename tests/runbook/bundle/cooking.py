"""A whole session over the kitchen, as a person leaves one: probes asked, a walk, an experiment with its run, notes.

Everything is asked of real files in `run/` and `again/` of the folder in which the test stands, so that paths read the
same everywhere and nothing in them is private.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from runbook.catalog import Catalog
from runbook.evidence import Item
from runbook.finding import Curve, Finding, Grid, Plot, Verdict, cite, found
from runbook.flow.load import flow_hash
from runbook.probe import silent
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.journal import read
from runbook.session.opening import new_session
from runbook.text import Text
from runbook.walk import By
from tests.runbook.tui import kitchen
from tests.runbook.tui.kitchen import both

LINES = [f"[rank{i % 8}] 03:00:{i % 60:02} loaf {i}: all is well in the kitchen" for i in range(1, 101)]
HOT = "\n".join([*LINES, "oven: 230 degrees", *LINES]) + "\n"
COLD = "\n".join([*LINES[:60], "[rank3] 03:01:00 oven: OFF", *LINES]) + "\n"
SCALE = "scale 512 g\n"
SCRIPT = "#!/bin/sh\nbake --minutes 40\n"
CHANGED = "#!/bin/sh\nbake --minutes 50 --flour rye\n"


def catalog() -> Catalog:
    """Return the kitchen's catalog with the true hashes of its flows."""
    known = kitchen.catalog()
    loaded = {name: one._replace(hash=flow_hash(one.flow)) for name, one in known.loaded.items()}
    return replace(known, loaded=loaded)


def items(*pairs: tuple[str, str], run: str = "") -> ev.EvidenceAdded:
    """Return evidence by slot."""
    return ev.EvidenceAdded(tuple(Item(slot, path, both("it was given", "给定"), run=run) for slot, path in pairs))


def ask(desk: Desk, *probes: object, run: str = "") -> None:
    """Journal what probes of the kitchen find, asked here and now."""
    for probe in probes:
        assert isinstance(probe, type(kitchen.oven))
        finding = probe.run(desk.state.evidence(run), silent)
        desk.append(ev.Found(msgspec.structs.replace(finding, probe=probe.id, seconds=0.2), run))


def drawn_finding() -> Finding:
    """Return a finding with a plot and a picture in it."""
    return msgspec.structs.replace(
        found(
            Verdict.WARNING,
            "raw",
            "The crust is pale.",
            "面包皮发白。",
            citations=(cite("run/scale.txt", "scale 512 g", line=1, offset=0),),
        ),
        probe="kitchen.slow",
        seconds=12.0,
        plots=(Plot(both("Heat", "热度"), "loaf", "C", (Curve("upper", ((1.0, 20.0), (2.0, None), (3.0, 180.0))),)),),
        grids=(Grid(both("Shelves"), ("upper", "lower"), ("a", "b"), ("gb", "bg"),
                    (("g", both("good", "好"), "good"), ("b", both("bad", "坏"), "bad"))),),
    )  # fmt: skip


def cook(folder: Path) -> Path:
    """Leave a session behind in `folder` (where the test stands) and return its folder."""
    for place, oven in (("run", HOT), ("again", COLD)):
        (folder / place).mkdir()
        (folder / place / "kitchen.log").write_text(oven)
    (folder / "run" / "scale.txt").write_text(SCALE)
    (folder / "run" / "bake.sh").write_text(SCRIPT)
    (folder / "changed.sh").write_text(CHANGED)
    desk = new_session(catalog(), str(folder / "sessions"))
    try:
        desk.begin("run")
        desk.append(
            items(("log", "run/kitchen.log"), ("scale", "run/scale.txt"), ("thermometer", "http://127.0.0.1:80"))
        )
        ask(desk, kitchen.oven, kitchen.dough)
        desk.append(ev.Found(drawn_finding()))
        desk.append(ev.FlowStarted("bread"))
        desk.answer("bread", "hot")
        desk.answer("bread", "risen", "root")
        diff = "--- a/bake.sh\n+++ b/bake.sh\n-bake --minutes 40\n+bake --minutes 50 --flour rye\n"
        desk.append(ev.CopyChanged("bread", "other-flour", "run/bake.sh", "changed.sh", diff, (), (), "sh changed.sh"))
        desk.append(items(("log", "again/kitchen.log"), run="run-2"))
        desk.append(ev.RunAttached("bread", "other-flour", "run-2", "again", (), (Text("not checked", "未核对"),)))
        ask(desk, kitchen.oven, run="run-2")
        desk.append(ev.Noted("Ann says the yeast is fresh", "root", "bread", "other-flour"))
        desk.append(ev.Noted("Look at the oven first", "root"))
        desk.answer("bread", "cold")
        desk.append(ev.WentBack("bread", "other-flour"))
        desk.append(ev.Answered("bread", "other-flour", "hot", By.PERSON, "root", ("kitchen.oven",)))
        return Path(desk.folder)
    finally:
        desk.close()


def reread(session: Path) -> Desk:
    """Return a desk over what the session holds; what is appended to it is kept nowhere, as in a bundle."""
    records, warnings = read(session)
    return Desk(catalog(), None, records, session_id=session.name, warnings=warnings)
