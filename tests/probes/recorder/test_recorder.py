"""Tests of the recorder inside a process that imports something called sglang.srt, as an engine does.

The models here are small torch modules in a package of that name; what the real SGLang makes of the recorder is
tested in tests/sglang_cpu.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from probes.readers.received_weights import Update, read_updates
from probes.recorder import FOLDER

MODELS = """
import torch

class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(4, 8))

    def load_weights(self, weights):
        for name, tensor in weights:
            if name.endswith("norm.weight"):
                self.weight.data.copy_(tensor)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Part()

    def load_weights(self, weights, *, strict=False):
        Model.kind = type(weights).__name__
        pairs = iter(weights)
        first = next(pairs)
        Model.after_first = getattr(Model, "drawn", 0)
        self.norm.load_weights([first, *pairs])
        if strict:
            raise KeyError("unknown")
        return {first[0]}
"""
PREPARE = """
import json, sys, torch
from sglang.srt.models.tiny import Model, Part
model = Model()

def stream(*names):
    for name in names:
        Model.drawn = getattr(Model, "drawn", 0) + 1
        yield name, torch.full((4, 8), float(Model.drawn))
"""


class Engine:
    """A process with the recorder on its path. out: the folder it records into."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"
        package = folder / "site" / "sglang" / "srt" / "models"
        package.mkdir(parents=True)
        for each in (package, package.parent, package.parent.parent):
            (each / "__init__.py").write_text("")
        (package / "tiny.py").write_text(MODELS)
        self.path = [FOLDER, str(folder / "site")]

    def run(self, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python code in such a process."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(self.path),
            "SLIME_RUNBOOK_RECORD": str(self.out),
            **{f"SLIME_RUNBOOK_RECORD_{name}": value for name, value in variables.items()},
        }
        return subprocess.run(
            [sys.executable, "-c", PREPARE + textwrap.dedent(code)],
            env=environment, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    def updates(self) -> list[Update]:
        """Return what was recorded."""
        return read_updates([str(self.out)])[0]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Return an engine that has not run yet."""
    return Engine(tmp_path)


def lines(update: Update, file: str = "received.jsonl") -> list[dict[str, Any]]:
    """Return the lines of a recording."""
    return [json.loads(line) for line in Path(update.path, file).read_text().splitlines()]


def test_a_generator_stays_one_and_the_result_is_unchanged(engine: Engine) -> None:
    """Tensors are drawn one by one by load_weights itself; result and order are as without a recorder."""
    done = engine.run(
        """
        result = model.load_weights(stream("a.norm.weight", "b.weight"))
        print(Model.kind, Model.after_first, sorted(result))
        """
    )
    assert done.stdout.split() == ["generator", "1", "['a.norm.weight']"], done.stderr
    (update,) = engine.updates()
    assert [sent.name for sent in update.sent] == ["a.norm.weight", "b.weight"]
    assert [line["ev"] for line in lines(update)] == ["begin", "tensor", "tensor", "end"]


def test_only_the_outermost_call_counts(engine: Engine) -> None:
    """The parts' own load_weights do not appear; a list is handed on as the list it is."""
    done = engine.run("model.load_weights([('norm.weight', torch.ones(4, 8))]); print(Model.kind)")
    assert done.stdout.split() == ["list"], done.stderr
    (update,) = engine.updates()
    assert (update.model, len(update.sent)) == ("Model", 1)


def test_classes_defined_later_are_recorded(engine: Engine) -> None:
    """A model of another package, defined after everything was imported, with bases of its own, is recorded too."""
    done = engine.run(
        """
        from typing import Generic, TypeVar
        T = TypeVar("T")
        class Late(torch.nn.Module, Generic[T]):
            def load_weights(self, weights):
                return [name for name, _ in weights]
        class Sub(Late[int]):
            pass
        print(Sub().load_weights(stream("x")))
        """
    )
    assert done.stdout.split() == ["['x']"], done.stderr
    assert [update.model for update in engine.updates()] == ["Sub"]


def test_an_exception_of_the_model_goes_through_and_is_noted(engine: Engine) -> None:
    """What load_weights raises reaches its caller; the recording goes on with the next call."""
    done = engine.run(
        """
        try:
            model.load_weights(stream("norm.weight"), strict=True)
        except KeyError as error:
            print("raised", error)
        model.load_weights(stream("norm.weight"))
        """
    )
    assert "raised 'unknown'" in done.stdout, done.stderr
    (update,) = engine.updates()
    assert [words for words, _ in update.errors] == ["KeyError: 'unknown'"]
    assert len(update.sent) == 2


def test_a_faulty_recorder_never_stops_a_load(engine: Engine) -> None:
    """What cannot be recorded ends the recording with a line in its own log; the load does not notice."""
    done = engine.run(
        """
        model.load_weights([("norm.weight", torch.ones(4, 8)), ("strange", None)])
        model.load_weights([("norm.weight", torch.full((4, 8), 5.0))])
        print(float(model.norm.weight[0, 0]))
        """
    )
    assert done.stdout.split() == ["5.0"], done.stderr
    assert "recording stopped: AttributeError" in (engine.out / "recorder.log").read_text()


def test_a_folder_that_cannot_be_made_is_no_harm(engine: Engine) -> None:
    """Where nothing can be written the engine runs on."""
    engine.out.write_text("a file stands where the folder should be")
    done = engine.run("model.load_weights(stream('norm.weight')); print('on')")
    assert done.stdout.split() == ["on"], done.stderr


def test_the_limit_is_kept(engine: Engine) -> None:
    """Nothing is written beyond the limit, and the log says why it ends."""
    done = engine.run(
        "model.load_weights(stream(*(f'l{n}.norm.weight' for n in range(200)))); print('on')", LIMIT="20000"
    )
    assert done.stdout.split() == ["on"], done.stderr
    (update,) = engine.updates()
    assert 0 < len(update.sent) < 200
    assert sum(file.stat().st_size for file in Path(update.path).iterdir()) <= 20000
    assert "limit" in (engine.out / "recorder.log").read_text()


def test_the_tensors_themselves_on_request(engine: Engine) -> None:
    """The tensor file is one that safetensors itself reads, with every tensor of every call, whatever its dtype."""
    done = engine.run(
        """
        model.load_weights([("norm.weight", torch.arange(32.0).reshape(4, 8)), ("b", torch.ones(3).bfloat16())])
        model.load_weights([("c", torch.tensor(7)), ("d", torch.ones(2, 2).to(torch.float8_e4m3fn))])
        """,
        TENSORS="1",
    )
    assert done.returncode == 0, done.stderr
    (update,) = engine.updates()
    stored = load_file(Path(update.path) / "tensors-000.safetensors")
    assert sorted(stored) == ["b", "c", "d", "norm.weight"]
    assert stored["norm.weight"].flatten().tolist() == list(range(32))
    assert int(stored["c"]) == 7
    assert all(sent.start >= 0 for sent in update.sent)


def test_the_engines_own_parameters_follow(engine: Engine) -> None:
    """After each call the engine's parameters are noted: one changed with what was sent."""
    done = engine.run(
        "model.load_weights([('norm.weight', torch.ones(4, 8))]); model.load_weights([('x', torch.ones(1))])"
    )
    assert done.returncode == 0, done.stderr
    (update,) = engine.updates()
    own = lines(update, "engine.jsonl")
    assert [line["name"] for line in own] == ["norm.weight"] * 2
    assert own[0]["hash"] == own[1]["hash"] == lines(update)[1]["hash"]


def test_requests_make_updates(engine: Engine) -> None:
    """Calls that serve requests of one weight version are one update; the request's kind and group are noted."""
    done = engine.run(
        """
        class UpdateWeightsFromDistributedReqInput:
            def __init__(self, version): self.weight_version, self.group_name = version, "slime-pp_1"
        def serve(recv_req): model.load_weights(stream("norm.weight"))
        for version in ("1", "1", "2"):
            serve(UpdateWeightsFromDistributedReqInput(version))
        """
    )
    assert done.returncode == 0, done.stderr
    assert [(u.kind, u.version, len(u.sent), u.sent[0].source) for u in engine.updates()] == [
        ("distributed", "1", 2, "slime-pp_1"),
        ("distributed", "2", 1, "slime-pp_1"),
    ]


def test_recording_ends_after_as_many_updates_as_asked(engine: Engine) -> None:
    """Further updates are not recorded."""
    done = engine.run(
        """
        class UpdateWeightsFromTensorReqInput:
            def __init__(self, version): self.weight_version = version
        def serve(recv_req): model.load_weights(stream("norm.weight"))
        for version in range(5):
            serve(UpdateWeightsFromTensorReqInput(version))
        """,
        UPDATES="2",
    )
    assert done.returncode == 0, done.stderr
    assert [update.version for update in engine.updates()] == ["0", "1"]
    assert "2 updates are recorded, as asked" in (engine.out / "recorder.log").read_text()


def test_each_process_has_its_folder_and_there_are_no_more_than_asked(engine: Engine) -> None:
    """A second process records beside the first; a third one, beyond the number asked for, does not."""
    for _ in range(3):
        assert engine.run("model.load_weights(stream('norm.weight'))", ENGINES="2").returncode == 0
    assert sorted(path.name for path in engine.out.iterdir()) == ["engine-000", "engine-001", "recorder.log"]


def test_the_hidden_sitecustomize_still_runs(engine: Engine, tmp_path: Path) -> None:
    """A sitecustomize that the recorder's hides is run as well, in processes that never see SGLang too."""
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.hidden_ran = True\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(engine.path), "SLIME_RUNBOOK_RECORD": str(engine.out)}
    code = "import sys; print(sys.hidden_ran, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "False"], done.stderr
    assert not engine.out.exists()


def test_without_a_folder_nothing_is_installed(engine: Engine) -> None:
    """The recorder's folder alone on the path does nothing."""
    environment = {**os.environ, "PYTHONPATH": FOLDER}
    environment.pop("SLIME_RUNBOOK_RECORD", None)
    code = "import sys; print([type(f).__name__ for f in sys.meta_path if 'Watch' in str(type(f))])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["[]"], done.stderr


def test_the_recorder_needs_nothing_but_torch() -> None:
    """No module of the shipped folder imports anything but the standard library, torch and itself."""
    allowed = set(sys.stdlib_module_names) | {"torch", "slime_runbook_recorder"}
    for file in Path(FOLDER).rglob("*.py"):
        for line in file.read_text().splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]) and not words[1].startswith("."):
                assert words[1].split(".")[0] in allowed, f"{file.name}: {line}"
