"""Whether Megatron loaded its checkpoints, by the lines it prints (debug guide 1.1).

Actor and reference load one after the other, so any bad load counts, whatever succeeded besides. Three of the bad
ends are silent, and training goes on: a folder without its tracker file starts from random weights; with slime's
Megatron patch a key that the checkpoint lacks is skipped; and slime takes a folder without a tracker for a Hugging
Face model. Lines that look alarming and are not (no arguments in the checkpoint, changed sharding, RNG state) are
not looked at.
Sources: Megatron-LM megatron/training/checkpointing.py, core/dist_checkpointing/strategies/torch.py with slime's
docker/patch/*/megatron.patch, slime/backends/megatron_utils/checkpoint.py and hf_to_megatron/.
"""

from __future__ import annotations

import re

from probes import logs
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.logscan import Hit, signature
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found
from runbook.probe import Progress, probe

_LOADED = signature("loaded", "successfully loaded checkpoint from ", r"successfully loaded checkpoint from (\S.*?) \[")
_FROM_HF = signature(
    "from-hf",
    "Load checkpoint from HuggingFace model into Megatron",
    r"Load checkpoint from HuggingFace model into Megatron \(path=(.*?)\)",
)
_RANDOM = signature("random", ("could not find the metadata file ", "will start from random"))
_EXITED = signature("exited", "'--exit-on-missing-checkpoint' set", r">> '--exit-on-missing-checkpoint' set")
_SKIPPED = signature(
    "skipped",
    "from model not in state dict, will skip",
    r"([\w./-]+) from model not in state dict, will skip",
)
_REINIT = signature("reinit", "Will reinitialize critic output_layer")
_GOES_ON = signature("goes-on", ("Timer actor_train start", ": {'train/"))
_ERROR = signature(
    "error",
    (
        "value from checkpoint (", "Global shape mismatch for loaded", "from model not in state dict: [",
        "Unable to load optimizer from checkpoint", "Unable to load rng state from checkpoint",
        "Invalid metadata file", "is not a distributed checkpoint", "Checkpoint directory ", "Common file ",
        "Did you specify the wrong folder?", "does not exist, please check the path.",
        "HuggingFace checkpoint does not contain", "Unsupported HuggingFace model type:",
        "No safetensors checkpoint found in", "Shape mismatch loading ",
    ),
    r"\w value from checkpoint \(.{1,200}?\) is not equal to the input argument value \("
    r"|CheckpointingException: (?:Global shape mismatch for loaded|Checkpoint directory |Common file "
    r"|\S+ is not a distributed checkpoint)"
    r"|KeyError: .*from model not in state dict: \["
    r"|Unable to load (?:optimizer|rng state) from checkpoint \S+ ?Specify"
    r"|Unable to load (?:optimizer|rng state) from checkpoint .{1,400}exiting \.\.\."
    r"|ERROR: Invalid metadata file "
    r"|args\.load=.{1,400} does not exist or is an empty directory\. Did you specify the wrong folder\?"
    r"|FileNotFoundError: ref_load .{1,400} does not exist, please check the path\."
    r"|FileNotFoundError: No safetensors checkpoint found in "
    r"|KeyError: .HuggingFace checkpoint does not contain "
    r"|ValueError: (?:Unsupported HuggingFace model type: |Shape mismatch loading .{1,400}: HuggingFace )",
)  # fmt: skip
_FRAME = signature(
    "frame",
    ("in _load_base_checkpoint", "in _load_checkpoint_hf", "in _load_checkpoint_megatron", "in load_hf_weights"),
    r'File ".{1,400}", line \d+, in _?load_(?:base_checkpoint|checkpoint_hf|checkpoint_megatron|hf_weights)\s*$',
)
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit)\b(?::|$)")
_HARMLESS = re.compile(r"_extra_state|(?:^|[./])(?:rng_state|rerun_state|optimizer)(?:$|[./_])")
"""Keys whose absence changes no weight: Transformer Engine's FP8 bookkeeping, random number and optimizer state."""


@probe(
    "megatron.load_log",
    needs="log",
    answers=("loaded", "random-init", "partial", "failed"),
    en="Did Megatron load the checkpoint, by its log?",
    zh="日志显示 Megatron 是否成功加载了 checkpoint？",
    deadline=logs.DEADLINE,
)
def load_log(evidence: Evidence, report: Progress) -> Finding:
    """Judge the load lines of every role; the worst one counts, in the order failed, random, partial, loaded."""
    signatures = (_LOADED, _FROM_HF, _RANDOM, _EXITED, _SKIPPED, _REINIT, _GOES_ON, _ERROR, _FRAME)
    scanned = logs.collect(evidence, report, signatures)
    return _failed(scanned) or _random(scanned) or _partial(scanned) or _loaded(scanned)


def _failed(scanned: Scanned) -> Finding | None:
    """Report the first error that ended a load."""
    ends = [(hit.line, joblog.citation(hit)) for hit in scanned.of(_ERROR.label, _EXITED.label)[:50]]
    ends += [(place.line or 0, place) for hit in scanned.of(_FRAME.label)[:8] if (place := _exception_after(hit))]
    if not ends:
        return None
    first = min(ends, key=lambda end: end[0])[1]
    hf = scanned.of(_FROM_HF.label)
    en, zh = "Megatron could not load the checkpoint", "Megatron 未能加载 checkpoint"
    if "Unrecognized model in" in first.excerpt and hf:
        en = "slime took the folder for a Hugging Face model (no tracker file, no iter_ folder) and could not load it"
        zh = "slime 把该目录当作 Hugging Face 模型（无 tracker 文件，非 iter_ 目录），未能加载"
    return found(
        Verdict.PROBLEM,
        "failed",
        f"{en}: {first.excerpt[:200]}",
        f"{zh}：{first.excerpt[:200]}",
        citations=(first, *(joblog.citation(hit) for hit in hf[:1])),
    )


def _exception_after(hit: Hit) -> Citation | None:
    """Return the line that ends the traceback a loading frame belongs to, None when the log does not show it."""
    lines = joblog.context(hit)
    for place in lines:
        if place.number > hit.line and _EXCEPTION.match(joblog.parse(place.raw).message):
            return joblog.cite_placed(hit.file, place)
    return None


def _random(scanned: Scanned) -> Finding | None:
    """Report a load that started from random weights."""
    hits = scanned.of(_RANDOM.label)
    if not hits:
        return None
    return found(
        Verdict.PROBLEM,
        "random-init",
        "Megatron found no tracker file where it was told to load from, and started from random weights.",
        "Megatron 在指定目录没有找到 tracker 文件，权重为随机初始化。",
        citations=tuple(joblog.citation(hit) for hit in hits[:2]),
    )


def _partial(scanned: Scanned) -> Finding | None:
    """Report keys of the model that the checkpoint did not have and the load skipped."""
    critic = bool(scanned.of(_REINIT.label))
    skipped: dict[str, Hit] = {}
    for hit in scanned.of(_SKIPPED.label):
        key = (hit.groups[0] or b"").decode("utf-8", "replace")
        if not _HARMLESS.search(key) and not (critic and "output_layer" in key):
            skipped.setdefault(key, hit)
    if not skipped:
        return None
    keys, first = list(skipped), next(iter(skipped.values()))
    shown = ", ".join(keys[:3]) + (", …" if len(keys) > 3 else "")
    return found(
        Verdict.PROBLEM,
        "partial",
        f"{len(keys)} parameters of the model are not in the checkpoint and kept their random values: {shown}.",
        f"模型有 {len(keys)} 个参数不在 checkpoint 中，保持随机值：{shown}。",
        citations=(joblog.citation(first, len(keys)),),
    )


def _loaded(scanned: Scanned) -> Finding:
    """Report success, or why neither success nor failure shows."""
    hits = scanned.of(_LOADED.label)
    if hits:
        folders = list(dict.fromkeys((hit.groups[0] or b"").decode("utf-8", "replace") for hit in hits))
        return found(
            Verdict.OK,
            "loaded",
            f"Megatron loaded {', '.join(folders[:3])}.",
            f"Megatron 已加载 {', '.join(folders[:3])}。",
            citations=tuple(joblog.citation(hit) for hit in hits[:3]),
        )
    hf = scanned.of(_FROM_HF.label)
    on = scanned.of(_GOES_ON.label)
    if hf and on and any(scanned.earlier(hf[0], each) for each in on):
        return found(
            Verdict.OK,
            "loaded",
            "Megatron loaded the Hugging Face model: training went on after it.",
            "Megatron 已加载 Hugging Face 模型：其后训练继续进行。",
            citations=(joblog.citation(hf[0]),),
        )
    return logs.unread(scanned.coverage) or logs.nothing_said(
        "The log shows neither that Megatron loaded a checkpoint nor that it failed to.",
        "日志既未显示 Megatron 成功加载 checkpoint，也未显示加载失败。",
    )
