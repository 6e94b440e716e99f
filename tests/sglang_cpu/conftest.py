"""Runs the real SGLang 0.5.15 on a CPU, for those who ask for it.

    SLIME_RUNBOOK_SGLANG_CPU=1 python -m pytest tests/sglang_cpu -m sglang

Without the variable nothing here is collected. Its value is the environment to use, "1" for one in the cache folder;
what is not there is installed (about two minutes) by shared/sglang-cpu/install.sh beside this checkout, which also
holds the stubs that a machine without a GPU needs.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from probes.recorder import FOLDER
from tests.probes.weights_models import TINY, checkpoint

ASKED = os.environ.get("SLIME_RUNBOOK_SGLANG_CPU", "")
SUPPORT = Path(__file__).parents[3] / "shared" / "sglang-cpu"
STUBS = [str(SUPPORT / "stubs"), str(SUPPORT / "stubs_triton")]
START = 180.0
"""Seconds a server may take to come up."""

collect_ignore_glob = [] if ASKED else ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, which is of no use outside this folder."""
    config.addinivalue_line("markers", "sglang: needs the real SGLang on a CPU")


@dataclass(frozen=True)
class Server:
    """A running server. python: of its environment. checkpoint: what it serves. out: what its recorder writes."""

    url: str
    python: str
    checkpoint: Path
    out: Path
    log: Path


@pytest.fixture(scope="session")
def python() -> str:
    """Return the Python of SGLang's environment, installed if need be."""
    folder = Path.home() / ".cache" / "slime-runbook" / "sglang-cpu" if ASKED == "1" else Path(ASKED)
    if not (folder / "bin" / "python").exists():
        if not (SUPPORT / "install.sh").exists():
            pytest.skip(f"{SUPPORT} is not there to install SGLang from")
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["bash", SUPPORT / "install.sh", folder], check=True, timeout=1500)
    return str(folder / "bin" / "python")


@pytest.fixture(scope="session")
def server(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a tiny MoE model with the recorder on the path, and end it by its process group."""
    root = tmp_path_factory.mktemp("sglang")
    checkpoint(root / "hf", TINY)
    port = free_port()
    one = Server(f"http://127.0.0.1:{port}", python, root / "hf", root / "received", root / "server.log")
    environment = {
        **os.environ,
        "SGLANG_USE_CPU_ENGINE": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([FOLDER, *STUBS]),
        "SLIME_RUNBOOK_RECORD": str(one.out),
        "SLIME_RUNBOOK_RECORD_UPDATES": "9",
    }
    words = (
        f"{python} -m sglang.launch_server --model-path {one.checkpoint} --device cpu --host 127.0.0.1 --port {port} "
        "--attention-backend torch_native --skip-tokenizer-init --mem-fraction-static 0.3 --max-total-tokens 4096 "
        "--disable-overlap-schedule"
    ).split()
    with one.log.open("wb") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        wait(one, process)
        yield one
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    ends = time.monotonic() + START
    while time.monotonic() < ends:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{server.url}/model_info", timeout=2):
                return
        except OSError:
            time.sleep(1)
    pytest.fail(f"the server did not come up:\n{server.log.read_text(errors='replace')[-3000:]}")
