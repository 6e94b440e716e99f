"""The kinds of evidence of a slime run, each with what it is recognised by: content first, then names.

Scores: 90 and more for a structure that nothing else has, 50 to 80 for typical content, below that for a name. A
dump that is truncated or hostile must still be taken, so that a probe can say what is wrong with it; hence nothing
here unpickles or needs a file to be whole.
"""

from __future__ import annotations

import os
import re

from probes.readers import rollout_dump, tensorboard, torch_dist
from probes.readers.joblog import recognised
from probes.readers.logfiles import expand, named_as_log
from probes.thresholds import evidence as limits
from runbook.evidence import Candidate, Match, Slot
from runbook.text import Text

_WEIGHTS = re.compile(r"\.safetensors(?:\.index\.json)?$|^pytorch_model.*\.bin(?:\.index\.json)?$")
_RECEIVED = re.compile(r"\.sent\.json$|^megatron_names\.|^(?:stage|engine|received|rank)[\w.-]*\.safetensors$")
_WORKER_LOG = re.compile(r"^(?:worker-[0-9a-f]{8,}-\w+-\d+\.(?:out|err)|raylet\.(?:out|err)|gcs_server\.(?:out|err))$")
_BARE_LOG_NAME = re.compile(r"^(?:stdout|stderr|log|nohup)", re.IGNORECASE)
_NOT_LOG = re.compile(
    r"\.(?:py|sh|md|rst|json|jsonl|ya?ml|toml|ini|cfg|html|jinja|pt|pth|safetensors|distcp)$", re.IGNORECASE
)
_STAMP = re.compile(
    rb"^(?:\x1b\[\d+m)?\(\w+ pid=\d+|^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\s",
    re.MULTILINE,
)
_SUBMIT = re.compile(
    rb"^[ \t]*(?:[A-Z_]\w*=\S*[ \t]+)*(?:(?:nohup|exec|time|sudo|env)[ \t]+)*"
    rb"(?:ray[ \t]+job[ \t]+submit\b|(?:\S*/)?(?:python[\d.]*|torchrun)[ \t](?:[^\n]*[ /])?train\w*\.py\b)",
    re.MULTILINE,
)
_PYTHON_LAUNCH = re.compile(
    rb"\bexecute_train\s*\(|\bsubmit_job\s*\(|ray job submit|(?:python3?|torchrun) [^\n]*train\w*\.py "
)
_DRIVER = re.compile(rb"^def (?:train|main)\(|^if __name__ ==|\bbreakpoint\(\)|\bparse_args\(", re.MULTILINE)
_DRIVER_IMPORT = re.compile(rb"^\s*(?:from|import) (?:slime|ray)\b", re.MULTILINE)
_VERSION_LINE = re.compile(
    rb"^[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?(?:\s*={2,3}\s*\S.*|\s+@\s+\S+|\s+v?\d+(?:\.\w+)+(?:\s.*)?)$"
)
_IMAGE_LINE = re.compile(
    rb"^(?:image:\s*)?(?:[\w.-]+(?::\d+)?/)*[\w.-]*(?:slime|sglang|megatron)[\w.-]*:[\w.-]+$", re.IGNORECASE
)
_DUMP_NAME = re.compile(r"^(?:eval_|rollout_|data_)?\d+(?:_\d+)?\.pt$|rollout|debug", re.IGNORECASE)

CUDA_CORE = b"\x04\x00\xbe\x00"
"""e_type ET_CORE and e_machine EM_CUDA (190) of an ELF header, little endian, at offset 16."""


def _match(score: int, en: str, zh: str) -> Match:
    return Match(score, Text(en, zh))


def recognise_launch(candidate: Candidate) -> Match | None:
    """Take a script with a training command: bash, a Python launcher, or a file with a bare command line."""
    head = candidate.head
    if candidate.is_dir or not head or b"\0" in head[:4096] or candidate.name.endswith((".md", ".rst")):
        return None
    if candidate.name.endswith(".py"):
        return _match(75, "a Python launcher", "Python 启动脚本") if _PYTHON_LAUNCH.search(head) else None
    if _SUBMIT.search(head) is None or _STAMP.search(head) is not None:
        return None
    shell = candidate.name.endswith((".sh", ".bash", ".slurm", ".sbatch")) or head.startswith(b"#!")
    return _match(85 if shell else 60, "it holds a training command", "其中有训练命令")


def recognise_driver(candidate: Candidate) -> Match | None:
    """Take a Python file that runs slime: it imports slime or Ray and has a main block, train() or a breakpoint."""
    if candidate.is_dir or not candidate.name.endswith(".py"):
        return None
    head = candidate.head
    if _DRIVER_IMPORT.search(head) is None or _DRIVER.search(head) is None:
        return None
    named = candidate.name.startswith(("train", "main"))
    return _match(70 if named else 45, "a driver script that imports slime or Ray", "导入 slime 或 Ray 的 driver 脚本")


_TOOLS = (
    (b"Opening GPU coredump:", "output of cuda-gdb on a GPU core dump", "cuda-gdb 读取 GPU core dump 的输出"),
    (b"========= COMPUTE-SANITIZER", "output of compute-sanitizer", "compute-sanitizer 的输出"),
)
"""First lines of tools that name the faulting kernel, so that what they print is read as a log."""


def recognise_log(candidate: Candidate) -> Match | None:
    """Take a log with lines of slime, Megatron, SGLang or Ray, packed or not, or a folder of Ray's log files."""
    if candidate.is_dir:
        workers = [name for name in candidate.names if _WORKER_LOG.match(name)]
        return _match(80, "a folder of Ray log files", "Ray 日志目录") if len(workers) > 1 else None
    if tensorboard.named(candidate.path) and tensorboard.looks(candidate.head):
        return _match(65, "metrics in a TensorBoard event file", "TensorBoard event 文件中的指标")
    files, _ = ((), ()) if _NOT_LOG.search(candidate.name) or candidate.size == 0 else expand((candidate.path,))
    if not files or (files[0].packing == "plain" and candidate.head[:4] in (b"\x7fELF", b"PK\x03\x04")):
        return None
    for mark, en, zh in _TOOLS:
        if mark in candidate.head:
            return _match(65, en, zh)
    named = named_as_log(candidate.name) or _BARE_LOG_NAME.search(candidate.name) is not None
    if not recognised(files[0]) or not (named or _STAMP.search(candidate.head)):
        return None
    return _match(
        65 if named else 50,
        "it has lines of slime, Megatron, SGLang or Ray",
        "含有 slime、Megatron、SGLang 或 Ray 的日志行",
    )


def recognise_hf(candidate: Candidate) -> Match | None:
    """Take a folder with a model's config.json, or with weights as Hugging Face names them."""
    names = candidate.names
    if not candidate.is_dir or any(name.endswith(".sent.json") for name in names):
        return None
    weights = any(_WEIGHTS.search(name) for name in names)
    if "config.json" in names:
        inner = Candidate(f"{candidate.path.rstrip('/')}/config.json", is_dir=False).head
        if b'"model_type"' in inner or b'"architectures"' in inner:
            return _match(
                90 if weights else 60,
                "config.json of a model" + (" and its weights" if weights else ""),
                "含模型的 config.json" + ("和权重" if weights else ""),
            )
    if "model.safetensors.index.json" in names or any(
        re.match(r"model-\d{5}-of-\d{5}\.safetensors$", name) for name in names
    ):
        return _match(85, "weights in Hugging Face's layout", "Hugging Face 格式的权重")
    return None


_ENGINE = re.compile(r"engine-\d{3}$")
"""Folder that the weight recorder makes for one engine process; it holds a process.json."""


def _recorded_engine(folder: str) -> bool:
    return _ENGINE.search(folder.rstrip("/")) is not None and os.path.isfile(os.path.join(folder, "process.json"))


def recognise_received(candidate: Candidate) -> Match | None:
    """Take a folder that the weight recorder wrote: what SGLang's load_weights was given."""
    names = candidate.names
    if candidate.is_dir and any(
        _recorded_engine(folder) for folder in (candidate.path, *(os.path.join(candidate.path, n) for n in names))
    ):
        return _match(96, "a recording of what SGLang's load_weights was given", "SGLang 的 load_weights 的录制结果")
    if not candidate.is_dir or "config.json" in names or not any(_RECEIVED.search(name) for name in names):
        return None
    return (
        _match(95, "weights as SGLang's load_weights was given them", "SGLang 的 load_weights 收到的权重")
        if any(_WEIGHTS.search(name) or name.endswith(".sent.json") for name in names)
        else None
    )


def recognise_megatron(candidate: Candidate) -> Match | None:
    """Take a Megatron checkpoint: the folder with tracker or iteration folders, or one iteration folder."""
    kind = torch_dist.folder_kind(candidate.names) if candidate.is_dir else ""
    if kind == "checkpoint":
        return _match(92, "a tracker file or iteration folders of Megatron", "Megatron 的 tracker 文件或迭代目录")
    if kind == "iteration":
        return _match(91, "one iteration of a Megatron checkpoint", "Megatron 检查点的一个迭代")
    return None


def _dump(candidate: Candidate) -> str:
    """Return "rollout", "train" or "" for a file that slime dumped, by the first keys of its pickle."""
    if candidate.is_dir or not candidate.name.endswith(rollout_dump.SUFFIXES) or b"rollout_id" not in candidate.head:
        return ""
    kind = rollout_dump.sniff(candidate.head)
    return kind if kind in ("rollout", "train") else ""


def recognise_rollout_dump(candidate: Candidate) -> Match | None:
    """Take a rollout dump; one that cannot be read is taken by its name, so that a probe can say so."""
    kind = _dump(candidate)
    if kind == "rollout":
        return _match(80, "a rollout dump of slime", "slime 的 rollout dump")
    if (
        not kind
        and not candidate.is_dir
        and candidate.name.endswith(".pt")
        and _DUMP_NAME.search(candidate.name)
        and "train" not in candidate.path.rsplit("/", 2)[-2:][0]
    ):
        return _match(25, "a .pt file named like a rollout dump", "名字像 rollout dump 的 .pt 文件")
    return None


def recognise_train_dump(candidate: Candidate) -> Match | None:
    """Take a train dump of any version."""
    if _dump(candidate) == "train":
        return _match(80, "a train dump of slime", "slime 的 train dump")
    parent = candidate.path.rsplit("/", 2)[-2:][0]
    if (
        not candidate.is_dir
        and candidate.name.endswith(".pt")
        and not _dump(candidate)
        and ("train" in parent or "train" in candidate.name)
    ):
        return _match(25, "a .pt file named like a train dump", "名字像 train dump 的 .pt 文件")
    return None


def recognise_coredump(candidate: Candidate) -> Match | None:
    """Take an ELF core file of a GPU; one of a CPU process too, so that a probe says what it is."""
    head = candidate.head
    if head[:4] == b"\x7fELF" and head[16:20] == CUDA_CORE:
        return _match(95, "an ELF core file of a GPU", "GPU 的 ELF core 文件")
    if head[:4] == b"\x7fELF" and head[16:18] == CUDA_CORE[:2] and re.search(r"(?:^|_)core", candidate.name):
        return _match(20, "a core file of a CPU process, not of a GPU", "CPU 进程的 core 文件，不是 GPU 的")
    return None


def recognise_versions(candidate: Candidate) -> Match | None:
    """Take a list of installed packages, or an image tag."""
    head = candidate.head
    if candidate.is_dir or not head or b"\0" in head or candidate.name.startswith("requirements"):
        return None
    if candidate.name.endswith((".json", ".py", ".sh", ".log", ".md", ".yaml", ".yml")):
        return None
    lines = [line.strip() for line in head.splitlines() if line.strip() and not line.lstrip().startswith((b"#", b"-"))]
    lines = [line for line in lines if not re.match(rb"Package\s+Version", line)]
    lines = lines[: int(limits.VERSION_LINES_READ.value)]
    good = sum(bool(_VERSION_LINE.match(line) or _IMAGE_LINE.match(line)) for line in lines)
    if not good or good < limits.VERSION_LINES.value * len(lines):
        return None
    return _match(75 if good > 1 or b"==" in head else 55, "a list of installed versions", "已安装版本的列表")


LAUNCH = Slot("launch", Text("launch script", "启动脚本"), recognise_launch, many=True)
LOG = Slot("log", Text("logs", "日志"), recognise_log, many=True)
HF_CHECKPOINT = Slot("hf_checkpoint", Text("Hugging Face checkpoint", "Hugging Face 检查点"), recognise_hf)
MEGATRON_LOAD = Slot(
    "megatron_load", Text("Megatron checkpoint (--load)", "Megatron 检查点（--load）"), recognise_megatron
)
MEGATRON_REF = Slot(
    "megatron_ref", Text("Megatron reference checkpoint (--ref-load)", "Megatron 参考检查点（--ref-load）")
)
RECEIVED_WEIGHTS = Slot(
    "received_weights", Text("weights that SGLang received", "SGLang 收到的权重"), recognise_received, many=True
)
ROLLOUT_DUMP = Slot("rollout_dump", Text("rollout dumps", "rollout dump"), recognise_rollout_dump, many=True)
TRAIN_DUMP = Slot("train_dump", Text("train dumps", "train dump"), recognise_train_dump, many=True)
CUDA_COREDUMP = Slot("cuda_coredump", Text("CUDA core dumps", "CUDA core dump"), recognise_coredump, many=True)
DRIVER = Slot("driver", Text("driver script (train.py)", "driver 脚本（train.py）"), recognise_driver)
VERSIONS = Slot("versions", Text("installed versions", "已安装的版本"), recognise_versions, many=True)
RAY = Slot("ray", Text("Ray dashboard or GCS address", "Ray dashboard 或 GCS 地址"), holds="url")
SGLANG = Slot("sglang", Text("SGLang engine and router URLs", "SGLang 引擎和 router 的 URL"), holds="url", many=True)
