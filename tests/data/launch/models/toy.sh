MODEL_ARGS=(
   --num-layers 8
   --hidden-size 128
   --rotary-base "${MODEL_ARGS_ROTARY_BASE:-10000}"
   --untie-embeddings-and-output-weights
)
