#!/bin/bash
# A whole script in the manner of slime's: arrays, comments, a sourced model, a runtime env with escaped quotes.
pkill -9 sglang
ray stop --force
set -ex

export PYTHONUNBUFFERED=1
SCRIPT_DIR="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "${SCRIPT_DIR}/models/toy.sh"

CKPT_ARGS=(
   --hf-checkpoint /models/toy-Instruct
   #--hf-checkpoint /models/toy-FP8
   --ref-load /models/toy_torch_dist
   --load ${BASE}/toy_slime/
   --save ${BASE}/toy_slime/
)
ROLLOUT_ARGS=(
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --global-batch-size 256
   --rollout-temperature 0.8 # later flags win
   --rollout-temperature=1
   --save-debug-rollout-data /dumps/data_{rollout_id}.pt
)
SGLANG_ARGS=(
   --sglang-cuda-graph-bs 1 2 4 $(seq 8 8 24)
   # --sglang-moe-a2a-backend deepep
)

export MASTER_ADDR=${MASTER_ADDR:-"127.0.0.1"}
ray start --head --node-ip-address ${MASTER_ADDR} --num-gpus 8 --disable-usage-stats

RUNTIME_ENV_JSON="{
  \"env_vars\": {
    \"PYTHONPATH\": \"/root/Megatron-LM/\",
    \"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\",
    \"NCCL_NVLS_ENABLE\": \"${HAS_NVLINK}\"
  }
}"

ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json="${RUNTIME_ENV_JSON}" \
   -- python3 train.py \
   --actor-num-nodes 1 \
   --actor-num-gpus-per-node 8 \
   --colocate \
   ${MODEL_ARGS[@]} \
   ${CKPT_ARGS[@]} \
   ${ROLLOUT_ARGS[@]} \
   ${EVAL_ARGS[@]} \
   ${SGLANG_ARGS[@]}
