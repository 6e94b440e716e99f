"""What to do about a file that is no readable dump, by what is wrong with it.

Every kind that a reader gives a DumpError has its words here; a test holds the two together.
"""

from __future__ import annotations

from probes.readers.dump_errors import DumpError, Fault
from runbook.text import Text

REMEDIES: dict[str, Text] = {
    "attack": Text(
        "Do not load it with torch.load or slime, keep it for whoever answers for security, and find out who wrote it.",
        "不要用 torch.load 或 slime 加载；保留文件交给安全负责人，并查清来源。",
    ),
    "class": Text(
        "A custom generate or reward function put objects into the samples: write numbers and text there instead.",
        "自定义 generate 或 reward 函数把对象放进了样本：改为只写普通的数字和文本。",
    ),
    "bomb": Text(
        "No dump of slime looks like this. Do not load it elsewhere; write the dump again.",
        "slime 不会写出这样的文件。不要在别处加载；请重新生成 dump。",
    ),
    "forged": Text(
        "torch.save never writes such a zip. Do not load it; write the dump again, without packing or editing it.",
        "torch.save 不会写出这样的 zip。不要加载；请重新生成，且不要再压缩或修改。",
    ),
    "damaged": Text(
        "Copy it again and compare checksums with the original; if that is damaged too, write the dump again.",
        "重新拷贝并与原文件比较校验和；若原文件也损坏，请重新生成 dump。",
    ),
    "writing": Text(
        "Wait until the job has written it, then run this again.", "等作业写完之后再运行一次。"
    ),
    "memory": Text(
        "Read it on a machine with more free memory, or write a smaller dump (a smaller --rollout-batch-size).",
        "换一台空闲内存更大的机器读取，或生成更小的 dump（减小 --rollout-batch-size）。",
    ),
    "time": Text(
        "Copy it to a local disk and give that path.", "拷贝到本地盘，再给出该路径。"
    ),
    "encrypted": Text("Decrypt it first, and give the plain file.", "先解密，再给出明文文件。"),
    "compressed": Text("Unpack it first, and give the .pt file in it.", "先解压，再给出其中的 .pt 文件。"),
    "lfs-pointer": Text("Fetch the file itself with git lfs pull.", "用 git lfs pull 取回文件本身。"),
    "zeros": Text(
        "The disk was full or the node died while it was written; write the dump again.",
        "写入时磁盘已满或节点宕机；请重新生成 dump。",
    ),
    "weights": Text(
        "These are weights: give them as --hf-checkpoint or --received-weights, and the dump as --rollout-dump.",
        "这是权重：请用 --hf-checkpoint 或 --received-weights 给出，dump 用 --rollout-dump 给出。",
    ),
    "checkpoint": Text(
        "This is of a checkpoint: give its folder as --megatron-load, and the dump as --rollout-dump.",
        "这是 checkpoint 的一部分：请用 --megatron-load 给出其目录，dump 用 --rollout-dump 给出。",
    ),
    "core-dump": Text(
        "This is no debug dump: give it as --cuda-coredump.", "这不是 debug dump：请用 --cuda-coredump 给出。"
    ),
    "verl": Text(
        "Only slime's dumps can be read: run slime with --save-debug-rollout-data.",
        "只能读取 slime 的 dump：请用 --save-debug-rollout-data 运行 slime。",
    ),
    "newer": Text(
        "A newer slime wrote it: update this tool, or read it with the slime that wrote it.",
        "由更新的 slime 写出：升级本工具，或用对应版本的 slime 读取。",
    ),
    "unknown": Text(
        "Give the file that --save-debug-rollout-data or --save-debug-train-data names.",
        "提供 --save-debug-rollout-data 或 --save-debug-train-data 指定的文件。",
    ),
}  # fmt: skip
for _same, _kinds in (
    ("verl", ("openrlhf", "other-tool")),
    ("unknown", ("tar", "numpy", "table", "web-page", "pickle-0", "json", "text", "zip")),
):
    REMEDIES |= dict.fromkeys(_kinds, REMEDIES[_same])

_OF_FAULT = {
    Fault.TRUNCATED: Text(
        "Copy it again, or write the dump again: the job was killed or the disk full while it was written.",
        "重新拷贝或重新生成 dump：写入时作业被杀或磁盘已满。",
    ),
    Fault.EMPTY: Text(
        "Write the dump again, and look for a full disk or quota.", "重新生成 dump，并检查磁盘或配额是否已满。"
    ),
    Fault.UNREADABLE: Text("Check path, permissions and links.", "检查路径、权限和链接。"),
}


def remedy(error: DumpError) -> Text:
    """Return what to do about a file that cannot be read."""
    return REMEDIES.get(error.kind) or _OF_FAULT.get(error.fault) or REMEDIES["unknown"]
