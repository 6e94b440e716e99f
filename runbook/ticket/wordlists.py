"""The lists by which redaction tells names from ordinary words; each says what it decides."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NO_USERS = frozenset({"root", "Shared", "Public", "default", "nobody"})
"""Accounts that belong to nobody: their paths stay as they are."""

GENERIC = _set(
    """
    someone nobody anybody
    ubuntu user users admin administrator debian centos rocky ec2-user opc guest test tester tests demo dev
    devel developer runner ray slurm jenkins gitlab github docker app apps service worker workers node nodes
    host hosts home homes data dataset datasets model models checkpoint checkpoints ckpt ckpts weights output
    outputs result results log logs run runs train trainer training eval rollout rollouts actor critic reward
    engine router driver head main master slave server client code project projects repo repos src lib libs bin
    etc opt var tmp temp cache share shared public private work works workspace workspaces scratch storage store
    mount mnt nfs nas lustre gpfs cfs oss bucket disk local global job jobs task tasks exp exps experiment
    experiments team group groups org common base base_dir root system sys env envs venv conda python torch cuda
    nccl gpu cpu rank linear norm attention attn mlp gate expert experts layer layers weight bias embed lm_head
    hang loss grad step steps batch token tokens prompt response sample samples message error warning info debug
    none null true false yes not and the for with from into this that llm rl rlhf sft nlp infra research science
    lab labs prod production staging memory launch script config configs path file folder line probe flow cause
    session ticket http https ssh git file port name time date version process thread address secret mail hidden
    pod container cluster nodes image images
    """
)
"""What users and hosts are called too, but what mostly means something else: hidden only where it names one."""

FOLDERS = GENERIC | _set(
    """
    hf huggingface hub megatron dist torch_dist sglang vllm verl openrlhf tensorboard wandb profile
    profiles dump dumps debug core cores artifacts assets release releases backup backups archive archives raw
    processed pretrain pretrained finetune finetuned instruct chat bench benchmark benchmarks corpus tokenizer
    tokenizers docs scripts examples third_party pkg packages wheels images containers sif squashfs apptainer
    singularity miniconda3 anaconda3 miniforge3 miniconda anaconda conda
    math code gsm8k aime dapo sft rlhf grpo ppo dpo rl rm reasoning train eval valid validation test text image audio
    video json parquet jsonl arrow csv preprocessed tokenized shards shard index cached downloads download upload
    install installs software soft tools tool utils pip apt local opt nltk_data torch triton inductor compile iter
    save saves saved load loads last latest best final old new current prod stable nightly debug_data rollout_data
    train_data eval_data save_dir load_dir mcore megatron_ckpt hf_ckpt torch_ckpt actor_ckpt critic_ckpt ref ref_model
    users_data nvme ssd hdd nfs0 nfs1 nfs2 volume volumes pvc pv kubelet containerd docker lib lib64 include system
    mlperf ml ai ds llmdata corpora pile c4 wiki wikipedia openwebtext redpajama dclm fineweb
    """
)
"""Folders that often stand right under a mount, where a user's name also may."""

MODEL_FAMILIES = (
    "qwen", "llama", "glm", "deepseek", "gpt", "mistral", "mixtral", "gemma", "phi-", "kimi", "moonlight",
    "mimo", "minimax", "internlm", "baichuan", "falcon", "olmo", "nemotron", "ernie", "hunyuan", "step-",
    "seed-", "math", "code", "gsm8k", "aime", "dapo", "dataset", "data-", "data_", "ckpt", "model",
)  # fmt: skip
"""Beginnings of names of models and data sets: a folder under a mount that is called so is nobody's."""

EXTENSIONS = _set(
    """
    py pyc pyi ipynb sh bash zsh yaml yml json jsonl toml ini cfg conf txt md rst log logs csv tsv html htm xml
    zip gz tgz tar zst xz bz2 whl egg so dll a o c cc cpp cxx cu cuh h hpp hip rs go java js ts tsx jsx css pt
    pth bin safetensors distcp npy npz pkl pickle parquet arrow idx onnx gguf ckpt index model vocab tokenizer
    lock pid sock out err core metadata common patch diff png jpg svg pdf jinja sqlite db env example sample tmp
    bak orig old service dockerfile sif
    """
)
"""Last parts of file names."""

SUFFIXES = _set("com net org edu gov mil cn internal corp intra intranet lan localdomain")
"""Last labels that make a dotted word a domain name wherever it stands."""

LOOSE_SUFFIXES = _set(
    """
    io ai dev cloud local co us uk de fr jp kr sg tw hk ru ch nl se ca au eu in it info tech xyz app me tv cc
    site online cluster svc home private hpc aws
    """
)
"""Last labels that make one only with a port after it, a digit or hyphen in it, or an "@" before it."""

NO_DOMAINS = _set("self cls model models net module torch nn np tf os sys args cfg config policy actor critic q")
"""First parts of dotted words that are paths of Python, whatever they end with: `self.net`."""

PUBLIC_HOSTS = (
    "github.com", "githubusercontent.com", "github.io", "gitlab.com", "huggingface.co", "hf.co",
    "hf-mirror.com", "modelscope.cn", "wandb.ai", "ray.io", "readthedocs.io", "readthedocs.org", "pytorch.org",
    "nvidia.com", "python.org", "pypi.org", "pythonhosted.org", "anaconda.org", "docker.io", "docker.com",
    "ghcr.io", "quay.io", "nvcr.io", "sglang.ai", "vllm.ai", "arxiv.org", "wikipedia.org", "stackoverflow.com",
    "google.com", "googleapis.com", "openai.com", "anthropic.com", "slack.com", "feishu.cn", "aliyun.com",
    "apache.org", "kernel.org", "ubuntu.com", "debian.org", "gnu.org", "w3.org", "json-schema.org",
    "example.com", "example.org", "microsoft.com", "visualstudio.com", "mozilla.org",
)  # fmt: skip
"""Hosts that everybody knows: naming them tells nothing, and links to them must go on working."""
