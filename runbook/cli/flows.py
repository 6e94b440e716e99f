"""`slime-runbook flows list|lint|show|graph|schema`: the decision trees as data."""

from __future__ import annotations

import argparse
import os
import sys

from runbook.catalog import Catalog, load_catalog
from runbook.cli import options
from runbook.errors import FlowError, UsageError
from runbook.exits import ExitCode
from runbook.flow.lint import lint
from runbook.flow.load import VOCABULARY_FILE, LoadedFlow, load_flow, load_vocabulary
from runbook.flow.model import Flow
from runbook.text import sanitise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True)
    options.add_common(actions.add_parser("list", help="every flow with its title and file"))
    checking = actions.add_parser("lint", help="check flows: all known ones, or the given files")
    checking.add_argument("files", nargs="*", metavar="FILE")
    options.add_common(checking)
    showing = actions.add_parser("show", help="one flow, node by node")
    showing.add_argument("flow", metavar="FLOW")
    options.add_common(showing)
    drawing = actions.add_parser("graph", help="draw one flow")
    drawing.add_argument("flow", metavar="FLOW")
    drawing.add_argument("--format", choices=("tree", "mermaid"), default="tree")
    options.add_common(drawing)
    schema = actions.add_parser("schema", help="the JSON Schema of flow files, for editors")
    schema.add_argument("--of", choices=("flow", "causes"), default="flow")
    options.add_common(schema)


def run(parsed: argparse.Namespace) -> int:
    """Carry out the action."""
    return {"list": _list, "lint": _lint, "show": _show, "graph": _graph, "schema": _schema}[parsed.action](parsed)


def _list(parsed: argparse.Namespace) -> int:
    for name, loaded in load_catalog(parsed.flows).loaded.items():
        print(f"{name:<14} {loaded.flow.title.say(parsed.lang)}  ({len(loaded.flow.nodes)} nodes)")
        print(f"{'':<14} {loaded.flow.symptom.say(parsed.lang)}")
    return ExitCode.CLEAR


def _lint(parsed: argparse.Namespace) -> int:
    catalog = load_catalog(parsed.flows)
    vocabulary = dict(catalog.vocabulary)
    chosen: list[LoadedFlow] = []
    faults = 0
    for path in parsed.files:
        beside = os.path.join(os.path.dirname(path), VOCABULARY_FILE)
        try:
            chosen.append(load_flow(path))
            if os.path.isfile(beside):
                vocabulary.update(load_vocabulary(beside)[0])
        except FlowError as error:
            faults += 1
            print(sanitise(f"{error.message} ({error.hint})"))
    if not parsed.files:
        chosen = list(catalog.loaded.values())
    for loaded in chosen:
        complaints = lint(loaded, catalog.answers, vocabulary)
        faults += len(complaints)
        for complaint in complaints:
            print(sanitise(str(complaint)))
    print(f"{len(chosen)} flows, {faults} faults", file=sys.stderr)
    return ExitCode.CONFIRMED if faults else ExitCode.CLEAR


def _show(parsed: argparse.Namespace) -> int:
    from runbook.plain import Plain
    from runbook.walk import Decision, How

    catalog = load_catalog(parsed.flows)
    flow = _flow(catalog, parsed.flow)
    plain = Plain(parsed.lang, ascii_only=parsed.ascii)
    plain.line(f"{flow.flow}: {flow.title.say(parsed.lang)}", style="bold")
    plain.line(flow.symptom.say(parsed.lang))
    for name, node in flow.nodes.items():
        plain.node(flow, name, Decision(How.PERSON))
        if node.probes:
            plain.line(plain.say("asked of: ", "探针：") + ", ".join(node.probes), 2)
        for word, target in node.branches.items():
            words = f" ({node.answers[word].say(parsed.lang)})" if word in node.answers else ""
            plain.line(f"{word}{words} -> {target}", 2)
        if node.cause is not None:
            plain.line(plain.say("cause: ", "原因：") + node.cause, 2)
        if node.is_leaf:
            plain.leaf(node)
    return ExitCode.CLEAR


def _graph(parsed: argparse.Namespace) -> int:
    from runbook.flow.graph import mermaid, tree_lines
    from runbook.glyphs import wants_ascii

    flow = _flow(load_catalog(parsed.flows), parsed.flow)
    if parsed.format == "mermaid":
        sys.stdout.write(mermaid(flow, parsed.lang))
    else:
        print("\n".join(tree_lines(flow, parsed.lang, ascii_only=parsed.ascii or wants_ascii())))
    return ExitCode.CLEAR


def _schema(parsed: argparse.Namespace) -> int:
    import msgspec

    from runbook.flow.schema import flow_schema, vocabulary_schema

    schema = flow_schema() if parsed.of == "flow" else vocabulary_schema()
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n")
    return ExitCode.CLEAR


def _flow(catalog: Catalog, name: str) -> Flow:
    if name not in catalog.flows:
        raise UsageError(f"unknown flow {name!r}", f"flows: {', '.join(catalog.flows)}")
    return catalog.flows[name]
