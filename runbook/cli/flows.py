"""`slime-runbook flows list|lint|show|graph|schema`: the decision trees as data."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from runbook.catalog import Catalog, load_flows
from runbook.cli import options
from runbook.errors import FlowError, UsageError
from runbook.exits import ExitCode
from runbook.flow.lint import lint, lint_guide
from runbook.flow.load import VOCABULARY_FILE, LoadedFlow, load_flow, load_vocabulary
from runbook.flow.model import Cause, Flow
from runbook.text import sanitise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="every flow with its title and what a person sees who should start there")
    options.add_flows(listing)
    options.add_language(listing)
    checking = actions.add_parser("lint", help="check flows: all known ones, or the given files")
    checking.add_argument("files", nargs="*", metavar="FILE")
    options.add_flows(checking)
    showing = actions.add_parser("show", help="one flow, node by node")
    showing.add_argument("flow", metavar="FLOW")
    options.add_drawn_flows(showing)
    drawing = actions.add_parser("graph", help="draw one flow")
    drawing.add_argument("flow", metavar="FLOW")
    drawing.add_argument("--format", choices=("tree", "mermaid"), default="tree")
    options.add_drawn_flows(drawing)
    schema = actions.add_parser("schema", help="the JSON Schema of flow files, for editors")
    schema.add_argument("--of", choices=("flow", "causes"), default="flow")


def run(parsed: argparse.Namespace) -> int:
    """Carry out the action."""
    return {"list": _list, "lint": _lint, "show": _show, "graph": _graph, "schema": _schema}[parsed.action](parsed)


def _list(parsed: argparse.Namespace) -> int:
    for name, loaded in options.catalog(parsed.flows, parsed.lang).loaded.items():
        print(f"{name:<14} {loaded.flow.title.say(parsed.lang)}  ({len(loaded.flow.nodes)} nodes)")
        print(f"{'':<14} {loaded.flow.symptom.say(parsed.lang)}")
    return ExitCode.CLEAR


def _lint(parsed: argparse.Namespace) -> int:
    """Print every fault; flows that cannot be used count, and so does a section of the guide without a node."""
    probes = options.probe_catalog(options.default_language())
    shelf = load_flows(parsed.flows)
    vocabulary = dict(shelf.vocabulary)
    chosen, told = _read(parsed.files, vocabulary) if parsed.files else (list(shelf.every), [])
    for loaded in chosen:
        told += [str(complaint) for complaint in lint(loaded, probes.answers, vocabulary)]
    if not parsed.files:
        told += [str(complaint) for complaint in lint_guide(shelf.every, shelf.guide)]
        told += [one.reason for one in shelf.broken if one.reason not in told]
    for words in told:
        print(sanitise(words))
    print(f"{len(chosen)} flows, {len(told)} faults", file=sys.stderr)
    return ExitCode.CONFIRMED if told else ExitCode.CLEAR


def _read(files: Iterable[str], vocabulary: dict[str, Cause]) -> tuple[list[LoadedFlow], list[str]]:
    """Return the flows in `files` and what is wrong with those that cannot be read.

    The causes beside a file are added to `vocabulary`.
    """
    chosen: list[LoadedFlow] = []
    told: list[str] = []
    for path in files:
        beside = os.path.join(os.path.dirname(path), VOCABULARY_FILE)
        try:
            chosen.append(load_flow(path))
            if os.path.isfile(beside):
                vocabulary.update(load_vocabulary(beside).causes)
        except FlowError as error:
            told.append(f"{error.message} ({error.hint})")
    return chosen, told


def _show(parsed: argparse.Namespace) -> int:
    from runbook.plain import Plain
    from runbook.walk import Decision, How

    catalog = options.catalog(parsed.flows, parsed.lang)
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

    flow = _flow(options.catalog(parsed.flows, parsed.lang), parsed.flow)
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
