"""A made-up incident for the ticket's tests: small flows, findings with citations, a walk, secrets in the evidence."""

from __future__ import annotations

import msgspec

from runbook.evidence import Item
from runbook.finding import Citation, Curve, Finding, Grid, Measurement, Plot, Proposal, Table, Verdict
from runbook.flow.model import Action, Cause, Change, Flow, Node
from runbook.session import events as ev
from runbook.session.state import SessionState, fold, replay
from runbook.text import Text
from runbook.ticket.build import transcript
from runbook.ticket.transcript import Transcript
from runbook.walk import By

LOG = "/mnt/nfs/lihua/runs/grpo-235b/job.log"
LINE = (
    "(Worker pid=19388, ip=10.12.0.7) [2026-11-29 18:17:58] torch.AcceleratorError: CUDA error: "
    "an illegal memory access was encountered"
)
STACK = '(Worker pid=19388, ip=10.12.0.7)   File "/home/lihua/deep_ep/buffer.py", line 511, in low_latency_dispatch'
TABLE_LINE = "  wandb_key ....................................... 9c1d4e7f8a2b3c4d5e6f708192a3b4c5d6e7f809"
NCCL = "gpu-node-17:19388:20112 [3] NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out"


def text(en: str, zh: str = "") -> Text:
    """Return words; the Chinese ones default to marked English ones."""
    return Text(en, zh or f"中文 {en}")


FLOWS = {
    "crash": Flow(
        "crash",
        text("Illegal memory access", "非法显存访问"),
        text("The job dies with “an illegal memory access was encountered”.", "任务以“illegal memory access”退出。"),
        "present",
        {
            "present": Node(
                guide="ima 1",
                question=text("Which CUDA fault came first in the log?", "日志里最先出现的是哪种 CUDA 错误？"),
                probes=("cuda.fault",),
                answers={"ima": text("an illegal memory access"), "none": text("none")},
                branches={"ima": "graph", "none": "fine"},
            ),
            "graph": Node(
                guide="ima 2",
                question=text("Does it go away without CUDA graphs?", "关闭 CUDA graph 后是否消失？"),
                change=Change(add=("--disable-cuda-graph",), env={"CUDA_LAUNCH_BLOCKING": "1"}),
                probes=("cuda.fault",),
                branches={"none": "graph-bug", "ima": "deepep"},
            ),
            "deepep": Node(
                guide="ima 3",
                question=text("Is DeepEP on the stack?", "堆栈里是否有 DeepEP？"),
                probes=("cuda.stack",),
                branches={"deepep": "deepep-bug", "other": "unnamed"},
            ),
            "fine": Node(clear=text("The log shows no CUDA access fault.")),
            "graph-bug": Node(cause="ima-cuda-graph", fix=text("Pad the graph batch sizes.")),
            "unnamed": Node(cause="ima-other", fix=text("Take a core dump.")),
            "deepep-bug": Node(
                guide="ima 3",
                cause="ima-deepep",
                fix=text(
                    "Turn DeepEP off, then update it; 1.1.0 fixes the buffer size for hidden_size > 7168.",
                    "先关闭 DeepEP，再升级。",
                ),
                actions=(
                    Action(
                        text("See which version is installed."),
                        command="pip show deep_ep | head -n 3\nnvidia-smi --query-gpu=driver_version --format=csv",
                    ),
                    Action(
                        text("Run without it."),
                        change=Change(remove=("--enable-deepep-moe",), set={"--moe-a2a-backend": "none"}),
                    ),
                    Action(link="https://github.com/deepseek-ai/DeepEP/issues/1"),
                ),
                verify=("cuda.fault", "cuda.stack"),
            ),
        },
    ),
    "text": Flow(
        "text",
        text("Garbled text", "乱码"),
        text("The rollout is not coherent.", "rollout 不是人话。"),
        "coherent",
        {
            "coherent": Node(
                question=text("Is the first rollout coherent?", "首个 rollout 是否是人话？"),
                probes=("rollout.coherence",),
                branches={"coherent": "good", "garbled": "loaded"},
            ),
            "loaded": Node(
                question=text("Did the checkpoint load?", "checkpoint 是否加载？"),
                probes=("load.log",),
                branches={"loaded": "other", "not-loaded": "not-loaded"},
            ),
            "good": Node(clear=text("The text is coherent.", "文本正常。")),
            "not-loaded": Node(cause="checkpoint-not-loaded", fix=text("Point --load at the checkpoint.")),
            "other": Node(cause="parameter-values-wrong", fix=text("Compare the tensors.")),
        },
    ),
    "network": Flow(
        "network",
        text("Communication", "通信"),
        text("A collective times out.", "集合通信超时。"),
        "timeout",
        {
            "timeout": Node(
                question=text("Did a collective time out?", "是否有集合通信超时？"),
                probes=("nccl.timeout",),
                branches={"yes": "nccl", "no": "quiet"},
            ),
            "nccl": Node(cause="nccl-failure", fix=text("Look at what came before it.")),
            "quiet": Node(clear=text("No collective timed out.")),
        },
    ),
}

VOCABULARY = {
    "ima-deepep": Cause("ima", text("Illegal memory access or crash tied to DeepEP", "与 DeepEP 有关的非法显存访问")),
    "ima-cuda-graph": Cause("ima", text("Illegal memory access tied to CUDA graph replay")),
    "ima-other": Cause("ima", text("Illegal memory access that nothing narrows down"), general=()),
    "checkpoint-not-loaded": Cause("1.1", text("The checkpoint was not loaded", "checkpoint 未加载")),
    "parameter-values-wrong": Cause("1.1", text("A parameter arrived with other values")),
    "nccl-failure": Cause("-", text("NCCL failure", "NCCL 故障"), cascade=True),
}

FAULT = Finding(
    Verdict.PROBLEM,
    "ima",
    text("Eight ranks stopped at an illegal memory access; rank 3 was first."),
    (Citation(LOG, 48211, 9_771_204, LINE, 8, 1795976278.0),),
    probe="cuda.fault",
    seconds=0.31,
)
STACKED = Finding(
    Verdict.PROBLEM,
    "deepep",
    text("The stack of rank 3 ends in DeepEP's low_latency_dispatch."),
    (
        Citation(LOG, 48219, 9_772_010, STACK, 1, 1795976278.0),
        Citation(LOG, 48230, 9_773_112, STACK.replace("511", "604")),
    ),
    (Measurement("hidden_size", 8192.0, "", 7168.0, "DeepEP issue 1"), Measurement("loss", float("nan"), "nats")),
    (
        Table(
            text("Last frames by rank"),
            ("rank", "frame"),
            (("3", "buffer.py:511 `low_latency_dispatch`"), ("5", "a|b")),
        ),
    ),
    probe="cuda.stack",
    seconds=1.2,
)
TIMEOUT = Finding(
    Verdict.PROBLEM,
    "yes",
    text("A collective timed out after the fault."),
    (Citation(LOG, 48990, 9_900_001, NCCL, 3, 1795976900.0),),
    probe="nccl.timeout",
)
COHERENT = Finding(
    Verdict.OK,
    "coherent",
    text("512 samples read as text.", "512 个样本均为正常文本。"),
    (Citation("/mnt/nfs/lihua/runs/grpo-235b/rollout_0.pt", None, None, "sample 0: “Let x be …”"),),
    probe="rollout.coherence",
    seconds=0.8,
)
LOADED = Finding(
    Verdict.UNKNOWN,
    None,
    text("The log begins after the load."),
    settle_with=text("Give the log of the first hour."),
    slots=("log",),
    probe="load.log",
)
SETTING = Finding(
    Verdict.WARNING,
    "set",
    text("A key stands in the log's argument table."),
    (Citation(LOG, 118, 20_144, TABLE_LINE),),
    probe="args.keys",
)
SILENT = Finding(Verdict.NOT_APPLICABLE, None, text("No FP8 checkpoint."), probe="fp8.scales")
ITEMS = (
    Item("log", LOG, text("named job.log, holds log lines of the job"), "found"),
    Item("launch", "/home/lihua/code/run-235b.sh", text("given on the command line")),
    Item(
        "train_dump", "/mnt/nfs/lihua/dumps/{rollout_id}.pt", text("named by the launch script"), "named", missing=True
    ),
)


def drawn_finding(probe: str = "cuda.stack", lines: int = 2) -> Finding:
    """Return the finding that proves the first cause, with a plot, a picture and a proposed edit.

    lines: of the picture and of the edit, about. What is private stands in all of them.
    """
    plot = Plot(
        text("Loss on gpu-node-17", "gpu-node-17 的 loss"),
        "step",
        "nats",
        (Curve("loss of lihua", ((0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 4.0))),),
        ((1.0, text("lihua changed gpu-node-17", "lihua 改动了 gpu-node-17")),),
        ((3.0, text("limit of /home/lihua/limits.yaml", "/home/lihua/limits.yaml 的上限")),),
    )
    legend = (("=", text("the same", "相同"), "good"), ("x", text("differs", "不同"), "bad"))
    labels = ("gpu-node-17", *(f"layer {number}" for number in range(1, lines)))
    picture = Grid(text("Layers by rank", "各层各 rank"), labels, ("r0", "r1"), ("=x",) * lines, legend)
    diff = "\n".join(["--- a/config.json", "+++ b/config.json", *(f"+ /home/lihua/dump/{n}" for n in range(lines - 2))])
    edit = Proposal("config.json.patch", "/home/lihua/code/config.json", diff)
    return msgspec.structs.replace(STACKED, probe=probe, plots=(plot,), grids=(picture,), proposals=(edit,))


def drawn_state(*findings: Finding) -> SessionState:
    """Return the state of a triage in which these findings stand, too."""
    state = triage_state()
    for number, finding in enumerate(findings):
        state = fold(state, ev.Record(100 + number, 1795978000.0, ev.Found(finding)), FLOWS)
    return state


def triage_state() -> SessionState:
    """Return the state after a triage without a walk."""
    events: list[ev.Event] = [
        ev.Opened("0.1.0", {"crash": "5f1c9a", "text": "77ab01"}, "/mnt/nfs/lihua/runs/grpo-235b", "lihua"),
        ev.EvidenceAdded(ITEMS),
        *(ev.Found(finding) for finding in (FAULT, STACKED, TIMEOUT, COHERENT, LOADED, SETTING, SILENT)),
    ]
    return _state(events)


def walked_state() -> SessionState:
    """Return the state of a session in which a person walked the crash flow, went back once and overruled a probe."""
    events: list[ev.Event] = [
        ev.Opened("0.1.0", {"crash": "5f1c9a", "text": "77ab01"}, "/mnt/nfs/lihua/runs/grpo-235b", "lihua"),
        ev.EvidenceAdded(ITEMS),
        ev.FlowStarted("text"),
        ev.Found(COHERENT),
        ev.Answered("text", "coherent", "garbled", By.PERSON, "lihua", ("rollout.coherence",)),
        ev.FlowStarted("crash"),
        *(ev.Found(finding) for finding in (FAULT, STACKED, TIMEOUT, LOADED, SETTING, SILENT)),
        ev.Answered("crash", "present", "ima", By.PROBE, "", ("cuda.fault",)),
        ev.Answered("crash", "graph", "none", By.PERSON, "lihua"),
        ev.WentBack("crash", "graph"),
        ev.Answered("crash", "graph", "ima", By.PERSON, "wang.fang"),
        ev.Answered("crash", "deepep", "deepep", By.PROBE, "", ("cuda.stack",)),
        ev.Noted("Paged by alert #4711.\nlihua@gpu-node-17 saw it twice; ask wang.fang@corp.example.net", "lihua"),
    ]
    return _state(events)


def open_state() -> SessionState:
    """Return the state of a session in which nothing is confirmed: no log, one flow begun."""
    events: list[ev.Event] = [
        ev.Opened("0.1.0", {"text": "77ab01"}, "/mnt/nfs/lihua/runs/grpo-235b", "lihua"),
        ev.FlowStarted("text"),
        ev.Found(LOADED),
        ev.Answered("text", "coherent", "garbled", By.PERSON, "lihua"),
    ]
    return _state(events)


def _state(events: list[ev.Event]) -> SessionState:
    return replay((ev.Record(n, 1795977000.0 + 60 * n, event) for n, event in enumerate(events)), FLOWS)


def sample(state: SessionState, language: str = "en") -> Transcript:
    """Return the transcript of a state."""
    report = state.report(FLOWS.values(), VOCABULARY)
    facts = (("Python", "3.11.7"), ("system", "Linux 6.18 x86_64"))
    return transcript(
        state, FLOWS, VOCABULARY, report, language=language, session="20261129-183000-a1b2c3", facts=facts
    )
