"""Sends weight updates to a running SGLang server; runs in SGLang's own environment, not in this project's.

    python sender.py URL CHECKPOINT PORT

It plays slime's part: what is in CHECKPOINT goes out by each way that SGLang takes updates, several requests making
one update. One line of JSON a request tells what the server answered.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import requests
import torch
import torch.multiprocessing
from safetensors import safe_open
from sglang.srt.utils import MultiprocessingSerializer  # type: ignore[import-not-found]  # in its own environment
from sglang.srt.utils.common import init_custom_process_group  # type: ignore[import-not-found]
from sglang.srt.weight_sync.tensor_bucket import FlattenedTensorBucket  # type: ignore[import-not-found]

Named = list[tuple[str, torch.Tensor]]
GROUP = {"master_address": "127.0.0.1", "world_size": 2, "group_name": "slime-pp_0", "backend": "gloo"}


def main(url: str, checkpoint: str, port: int) -> None:
    """Send five updates; versions 1 to 5."""
    torch.multiprocessing.set_sharing_strategy("file_system")
    weights = load(checkpoint)
    for part in halves(weights):
        tensors(url, part, "1")
    drifted = [(name, nudged(tensor)) for name, tensor in weights]
    for part in halves(drifted):
        bucket(url, part, "2")
    router = "model.layers.1.mlp.gate.weight"
    wrong = [(name.replace("mlp.gate", "mlp.router") if name == router else name, nudged(t)) for name, t in drifted]
    distributed(url, halves(wrong), "3", port)
    say("disk", post(url, "/update_weights_from_disk", model_path=checkpoint, weight_version="4"))
    tensors(url, [("model.layers.0.mlp.bogus.weight", torch.ones(2, 2, dtype=torch.bfloat16))], "5")


def load(checkpoint: str) -> Named:
    """Return every tensor of a checkpoint in the order of its index."""
    with open(f"{checkpoint}/model.safetensors.index.json", encoding="utf-8") as file:
        where: dict[str, str] = json.load(file)["weight_map"]
    found = []
    for name, shard in where.items():
        with safe_open(f"{checkpoint}/{shard}", "pt") as file:
            found.append((name, file.get_tensor(name)))
    return found


def nudged(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor after a small step."""
    return (tensor.float() * 1.004).to(tensor.dtype)


def halves(weights: Named) -> list[Named]:
    """Return two buckets, as slime cuts an update."""
    return [weights[: len(weights) // 2], weights[len(weights) // 2 :]]


def post(url: str, path: str, **body: Any) -> requests.Response:
    """Post JSON."""
    return requests.post(url + path, json=body, timeout=120)


def say(what: str, answer: requests.Response) -> None:
    """Print what the server answered."""
    print(json.dumps({"what": what, "status": answer.status_code, "answer": answer.json()}), flush=True)


def tensors(url: str, part: Named, version: str, load_format: str | None = None, value: Any = None) -> None:
    """Send through /update_weights_from_tensor."""
    packed = [MultiprocessingSerializer.serialize(part if value is None else value, output_str=True)]
    body = {"serialized_named_tensors": packed, "load_format": load_format, "weight_version": version}
    say(load_format or "tensor", post(url, "/update_weights_from_tensor", **body))


def bucket(url: str, part: Named, version: str) -> None:
    """Send as one flattened bucket."""
    flat = FlattenedTensorBucket(named_tensors=part)
    value = {"flattened_tensor": flat.get_flattened_tensor(), "metadata": flat.get_metadata()}
    tensors(url, part, version, "flattened_bucket", value)


def distributed(url: str, parts: list[Named], version: str, port: int) -> None:
    """Send by broadcast in a process group of the sender and the engine."""
    answers: dict[str, requests.Response] = {}

    def ask(path: str, **body: Any) -> threading.Thread:
        thread = threading.Thread(target=lambda: answers.update(last=post(url, path, **body)))
        thread.start()
        return thread

    thread = ask("/init_weights_update_group", rank_offset=1, master_port=port, **GROUP)
    group = init_custom_process_group(
        backend="gloo", init_method=f"tcp://127.0.0.1:{port}", world_size=2, rank=0, group_name=GROUP["group_name"]
    )
    thread.join()
    for part in parts:
        about = {
            "names": [name for name, _ in part],
            "dtypes": [str(tensor.dtype).removeprefix("torch.") for _, tensor in part],
            "shapes": [list(tensor.shape) for _, tensor in part],
        }
        thread = ask(
            "/update_weights_from_distributed", group_name=GROUP["group_name"], weight_version=version, **about
        )
        for work in [torch.distributed.broadcast(tensor, src=0, group=group, async_op=True) for _, tensor in part]:
            work.wait()
        thread.join()
        say("distributed", answers["last"])
    post(url, "/destroy_weights_update_group", group_name=GROUP["group_name"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
