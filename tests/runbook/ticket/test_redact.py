"""Redaction hides what is private under stable pseudonyms and leaves everything else as it is."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.ticket.redact import FINDERS, Identity, Key, redact, redact_transcript
from runbook.ticket.scan import scan
from runbook.ticket.span import PSEUDONYM
from runbook.ticket.transcript import Transcript
from tests.runbook.ticket.sample import drawn_finding, drawn_state, open_state, sample, walked_state

WANDB = "0123456789abcdef0123456789abcdef01234567"
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
HF = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"

SECRETS = [
    ("Hugging Face", "using HF_TOKEN=" + HF, HF),
    ("GitHub", "ghp_" + "a1B2" * 9, "ghp_" + "a1B2" * 9),
    ("GitHub fine-grained", "x github_pat_" + "a1B2_" * 8, "github_pat_" + "a1B2_" * 8),
    ("GitLab", "glpat-" + "a1B2c3D4e5F6g7H8i9J0", "glpat-a1B2c3D4e5F6g7H8i9J0"),
    ("AWS id", "id AKIAIOSFODNN7EXAMPLE.", "AKIAIOSFODNN7EXAMPLE"),
    (
        "AWS key",
        'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
    ("Google", "AIza" + "Sy_-1" * 7, "AIza" + "Sy_-1" * 7),
    ("OpenAI", "OPENAI sk-proj-" + "a1B2c3D4" * 6, "sk-proj-" + "a1B2c3D4" * 6),
    ("Slack", "xoxb-123456789012-abcdefABCDEF", "xoxb-123456789012-abcdefABCDEF"),
    ("Slack hook", "https://hooks.slack.com/services/T0/B0/x1y2z3a4b5", "x1y2z3a4b5"),
    ("Feishu hook", "https://open.feishu.cn/open-apis/bot/v2/hook/6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810"),
    ("JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.s5-_x", "eyJzdWIiOiIxMjMifQ"),
    (
        "private key",
        "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1r -----END OPENSSH PRIVATE KEY-----",
        "b3BlbnNzaC1r",
    ),
    ("private key cut", "-----BEGIN RSA PRIVATE KEY----- MIIEpAIBAAKCAQEA", "MIIEpAIBAAKCAQEA"),
    ("login in URL", "postgres://svc:p@ss/w0rd-77@db/x", "w0rd-77"),
    ("token in URL", f"https://oauth2:{HF}@git.corp.lan/r.git", HF),
    ("flag", "python train.py --wandb-key s3cr3t --lr 1e-6", "s3cr3t"),
    ("flag with =", "--wandb-key=s3cr3t", "s3cr3t"),
    ("flag in a list", "['--wandb-key', 's3cr3t', '--lr']", "s3cr3t"),
    ("argument table", f"  wandb_key ....................................... {WANDB}", WANDB),
    ("environment", f"export WANDB_API_KEY={WANDB}", WANDB),
    ("JSON", '{"env_vars": {"WANDB_API_KEY": "s3cr3t!"}}', "s3cr3t!"),
    ("JSON in JSON", '"{\\"api_key\\": \\"s3cr3t!\\"}"', "s3cr3t!"),
    ("YAML", "hf_token: s3cr3t-77", "s3cr3t-77"),
    ("Namespace", "Namespace(wandb_key='s3cr3t', lr=1e-06)", "s3cr3t"),
    ("header", "curl -H 'Authorization: Bearer abc.DEF-123'", "abc.DEF-123"),
    ("basic header", '"authorization": "Basic dXNlcjpwYXNz"', "dXNlcjpwYXNz"),
    ("cookie", "Cookie: session=77aa; theme=dark", "session=77aa"),
    ("netrc", "machine api.wandb.ai login user password s3cr3t77", "s3cr3t77"),
    ("random value of a token", "token=Zx81kQ0pLm77RtY2vB", "Zx81kQ0pLm77RtY2vB"),
    ("cut by an excerpt", "env HF_HOME=/x tok ghp_abcDEF12…", "ghp_abcDEF12"),
    ("cloud", "OSS LTAI5tAbCdEfGhIjKlMnOp", "LTAI5tAbCdEfGhIjKlMnOp"),
]

NAMES = [
    ("home", "/home/alice/run/job.log", "alice"),
    ("Mac", "/Users/erin.k/x", "erin.k"),
    ("mount", "/mnt/nfs-3/bob/ckpt/", "bob"),
    ("users folder", "/data/users/dave/x", "dave"),
    ("nested home", "/gpfs/home/carol", "carol"),
    ("tilde", "cp ~frank/x .", "frank"),
    ("variable", "USER=gina", "gina"),
    ("encoded", "file=%2Fhome%2Fheidi%2Fx", "heidi"),
    ("mail", "ask ivan.petrov+ml@corp.example.net", "ivan"),
    ("numeric mail domain", "judy@163.com", "judy"),
    ("ssh", "ssh karl@gpu-node-17", "karl"),
    ("ssh host", "ssh karl@gpu-node-17", "gpu-node-17"),
    ("URL host", "http://inference.corp:3000/health", "inference.corp"),
    ("short URL host", "tcp://gpu17:29500", "gpu17"),
    ("node name", "node name: trainer-3", "trainer-3"),
    ("variable host", "MASTER_ADDR=gpu17", "gpu17"),
    ("flag host", "--master-addr gpu17 --x", "gpu17"),
    ("full name", "seen on gpu17.hpc.uni.edu today", "gpu17.hpc"),
    ("cloud host", "on ip-10-1-22-3 now", "ip-10-1-22-3"),
    ("NCCL", "gpu17:311:402 [0] NCCL INFO Bootstrap", "gpu17"),
    ("syslog", "Nov 29 18:18:14 gpu17 kernel: NVRM: Xid", "gpu17"),
    ("slurm list", "SLURM_NODELIST=gpu[01-04,7] nodelist=gpu[01-04,7]", "gpu[01"),
    ("IPv4", "(pid=1, ip=10.150.236.219)", "10.150.236.219"),
    ("IPv4 with port", "at 192.168.1.5:6379", "192.168.1.5"),
    ("IPv6", "[fd00:12:34::5]:6379 and fe80::1", "fd00:12:34::5"),
    ("bucket", "s3://team-secret-bucket/x", "team-secret-bucket"),
]

KEPT = [
    "model.layers.10.mlp.experts.3.gate_proj.weight decoder.layers.0.self_attention.linear_qkv.weight",
    "model-00001-of-00191.safetensors config.json train.py generation_config.json common.pt __0_1.distcp",
    "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432 and a1b2c3d",
    "rollout 123e4567-e89b-12d3-a456-426614174000",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "NCCL version 2.10.0.1+cuda12.4 sglang 0.5.15.post1 nvidia-cudnn-cu12==9.10.2.21 libnccl.so.2.27.3 v1.2.3.4",
    "127.0.0.1:8265 0.0.0.0 ::1 localhost http://localhost:3000 255.255.255.0",
    "torch.cuda.nccl megatron.core.optimizer a.utils.io threading.local logger.info(x) self.cloud numpy.ai",
    "passrate/pass@1 0.5 pass@k maj@8 avg@16 package@v0.2.0 git@github.com:org/repo.git",
    "/root/Megatron-LM/megatron/core/x.py /home/root/x /mnt/data/models/Qwen3-4B /mnt/shared/qwen3-4b/ /usr/local/lib",
    '--wandb-key $WANDB_KEY --wandb-key ${WANDB_KEY} WANDB_API_KEY="$WANDB_API_KEY"',
    "api_key: None wandb_key ...... None api_key=EMPTY",
    "eos_token='<|im_end|>' pad_token_id=151643 max_tokens_per_gpu ......... 4096 tokens: 12",
    "https://docs.ray.io/en/latest/x.html https://huggingface.co/Qwen/Qwen3-4B https://github.com/a/b/issues/12",
    "train/grad_norm 3e9 step 12:34:56 18:16:47,334 0x7fa3816f1450 c10::cuda c10d::add at::native std::abs(1)",
    "host memory: out of memory on the host: the process was killed, node: cpu, address: 0x7fa3, server: None",
    "job_id:02000000 actor_id=e20f9c69f1c161346c1caa7001000000 raysubmit_WexbsS7P8MNwyhZQ node_ip_address",
    "cache_key: 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432 weight_key: model.layers.10.mlp.gate.weight",
    "task-1 disk-2 sk-learn risk-free user-agent host-bound mail-order (user) host",
    "2026-11-29T18:18:14+00:00 step 12: {'train/loss': 0.1} train_metric_utils.py:135 - rollout 0",
    "password: required; token: invalid; secret: none",
]


@pytest.mark.parametrize(("what", "text", "private"), SECRETS + NAMES, ids=[case[0] for case in SECRETS + NAMES])
def test_what_is_private_is_hidden(what: str, text: str, private: str) -> None:
    """Each kind of secret or name is gone from the text, and a second look finds nothing."""
    result = redact([text])
    assert private not in result.texts[0], what
    assert PSEUDONYM.search(result.texts[0])
    assert scan(result.texts[0], result.key.words) == []


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_private_stays(text: str) -> None:
    """Numbers, tensor names, hashes, versions, module paths, files, placeholders and public links are untouched."""
    assert redact([text]).texts == (text,)
    assert scan(text, {}) == []


def test_one_value_has_one_pseudonym_everywhere() -> None:
    """A name learnt in one text is hidden in all, as a word and in file names, and only as a word."""
    texts = ["see alice.log and run_alice_2 but not malice", "/home/alice/x", "/home/bob/x", "bob, alice-ckpt"]
    assert redact(texts).texts == (
        "see user-1.log and run_user-1_2 but not malice",
        "/home/user-1/x",
        "/home/user-2/x",
        "user-2, user-1-ckpt",
    )


def test_a_machine_is_one_under_its_short_and_its_full_name() -> None:
    """gpu17 and gpu17.hpc.uni.edu are the same host, in any case of letters; its port and path stay."""
    texts = ["http://gpu-17.hpc.uni.edu:3000/x", "gpu-17:1:2 [0] NCCL INFO", "at GPU-17"]
    assert redact(texts).texts == ("http://host-1:3000/x", "host-1:1:2 [0] NCCL INFO", "at host-1")


def test_a_secret_found_by_its_name_is_hidden_where_it_stands_alone() -> None:
    """The 40 hexadecimal digits of a W&B key look like a commit; once named, they are hidden everywhere."""
    texts = [f"login {WANDB}", f"WANDB_API_KEY={WANDB}", "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"]
    assert redact(texts).texts == ("login secret-1", "WANDB_API_KEY=secret-1", texts[2])


@pytest.mark.parametrize("name", ["model", "train", "evidence", "step", "ubuntu", "summary"])
def test_a_user_called_like_an_ordinary_word_is_hidden_only_in_the_path(name: str) -> None:
    """Words that mean something else nearly everywhere, or stand in every ticket, are not torn out of the text."""
    assert redact([f"/home/{name}/x", f"the {name} of it"]).texts == ("/home/user-1/x", f"the {name} of it")


def test_what_is_known_beforehand_is_hidden() -> None:
    """Login names, the name of this machine and words a person chose are hidden without any context."""
    identity = Identity(("zhangsan",), ("login03.cluster",), ("Project Tiger",))
    texts = ["zhangsan on login03, login03.cluster: project tigers"]
    assert redact(texts, identity).texts == ("user-1 on host-1, host-1: hidden-1_s",)


def test_pseudonyms_already_there_keep_their_numbers() -> None:
    """A new value never gets a number that stands in the text already."""
    assert redact(["user-4 and host-2", "/home/alice"]).texts == ("user-4 and host-2", "/home/user-5")


def test_the_key_gives_the_same_names_again_and_holds_no_secret() -> None:
    """A later export of the session uses the same pseudonyms; what is kept names no secret."""
    first = redact(["/home/alice", "/home/bob", f"WANDB_API_KEY={WANDB}", "10.1.2.3"])
    kept = first.key.to_keep()
    assert kept == {"user": {"alice": "user-1", "bob": "user-2"}, "ip": {"10.1.2.3": "ip-1"}}
    assert redact(["/home/carol", "/home/bob"], key=Key.kept(kept)).texts == ("/home/user-3", "/home/user-2")


def test_a_transcript_is_redacted_as_a_whole_and_says_what_was_hidden() -> None:
    """No private value is left in any field; the report counts kinds, values, lines and parts; numbers stay."""
    raw = sample(walked_state())
    hidden, key = redact_transcript(raw, Identity(("lihua", "wang.fang")))
    flat = msgspec.json.encode(hidden).decode()
    for private in ("lihua", "wang", "gpu-node-17", "10.12.0.7", "9c1d4e7f8a2b", "corp.example"):
        assert private not in flat
    assert [(line.kind, line.values) for line in hidden.redaction] == [
        ("keys and tokens", 1),
        ("e-mail addresses", 1),
        ("IP addresses", 1),
        ("host names", 1),
        ("user names", 2),
    ]
    assert hidden.redaction[0].where == ("Evidence lines", "What was checked")
    assert hidden.redaction[0].count == 1
    assert [place.line for check in hidden.checks for place in check.places] == [
        place.line for check in raw.checks for place in check.places
    ]
    assert key.names["user", "lihua"] == "user-1"
    assert redact_transcript(hidden, Identity(("lihua", "wang.fang")))[0] == msgspec.structs.replace(
        hidden, redaction=()
    )


def test_pictures_and_proposed_edits_are_redacted() -> None:
    """Words of a plot, labels of a picture, a diff and the path of the file it is for are hidden, numbers are kept."""
    hidden, _ = redact_transcript(sample(drawn_state(drawn_finding(lines=4))), Identity(("lihua",)))
    (proof,) = [proof for proof in hidden.problems if proof.probe == "cuda.stack"]
    (plot,), (picture,), (edit,) = proof.plots, proof.grids, proof.edits
    assert plot.title == "Loss on host-1"
    assert plot.curves[0].name == "loss of user-1"
    assert plot.curves[0].points == ((0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 4.0))
    assert plot.marks == ((1.0, "user-1 changed host-1"),)
    assert plot.limits == ((3.0, "limit of /home/user-1/limits.yaml"),)
    assert picture.rows[0] == "host-1"
    assert picture.cells[0] == "=x"
    assert edit.path == "/home/user-1/code/config.json"
    assert edit.lines[2:] == ("+ /home/user-1/dump/0", "+ /home/user-1/dump/1")
    flat = msgspec.json.encode(hidden).decode()
    assert "lihua" not in flat
    assert "gpu-node-17" not in flat


class Longer(Transcript, frozen=True):
    """A transcript of a later version, with a field that redaction has never heard of."""

    extra: tuple[str, ...] = ()


def test_a_field_that_nobody_listed_is_redacted() -> None:
    """Only the named fields stay as they are: a new one is redacted by default and named in the report."""
    raw = sample(open_state())
    longer = Longer(**{name: getattr(raw, name) for name in raw.__struct_fields__}, extra=("/home/zhangsan/x",))
    hidden, _ = redact_transcript(longer, Identity())
    assert isinstance(hidden, Longer)
    assert hidden.extra == ("/home/user-2/x",)
    assert "extra" in [part for line in hidden.redaction for part in line.where]
    assert (hidden.session, hidden.language, hidden.schema) == (raw.session, raw.language, raw.schema)


PIECES = st.sampled_from(
    [text for _, text, _ in SECRETS + NAMES]
    + KEPT
    + [
        "user-1",
        "host-2",
        "ip-3",
        "secret-1",
        "mail-1",
        "/home/",
        "@",
        "://",
        "=",
        ": ",
        "--wandb-key ",
        " ",
        ".",
        "-",
        "…",
    ]
    + ["http://", "alice", "gpu17", "10.0.0.", "1", "token", "%2F", "/", "'", '"', "\\", "[", "]", "node name: "]
)


@given(st.lists(st.lists(PIECES | st.text(max_size=6), max_size=6).map("".join), max_size=4))
@settings(max_examples=300, deadline=None)
def test_redacting_again_changes_nothing_and_a_second_look_finds_nothing(texts: list[str]) -> None:
    """Whatever pieces come together, the result is stable, and the independent scan agrees that nothing is left."""
    once = redact(texts)
    assert redact(once.texts).texts == once.texts
    for text in once.texts:
        assert scan(text, once.key.words) == []


@given(st.lists(st.text(), max_size=3))
@settings(deadline=None)
def test_any_text_is_stable(texts: list[str]) -> None:
    """Any Unicode text can be redacted, and redacting it again changes nothing."""
    once = redact(texts)
    assert redact(once.texts).texts == once.texts


HOSTILE = [
    "a", "a.", "a-", "A1", "@", "a@", "/home/", "/home/a", "://", "http://a:", "http://a.b:1@", "eyJ", "eyJa.", "sk-",
    "hf_", "1.", "1.2.3.4.", "1.2.3.4 ", ":", "::", "f:", "fe80:", "token=", "api_key=", "api_key ", "token..", "_",
    "%2F", "secret: ", "cookie:", "bearer ", "authorization: ", "-----BEGIN PRIVATE KEY-----", "node name: ",
    "host=a-1 ", "-", "[a-1]:80 ", "~a/", "user-1", "login a password ", "a:1:2 [0] NCCL ", "\\", '"', "\u4e2d", "….",
    "token='", '"password": "', 'password="\\"', "sshpass -p ", "docker login -p a ", "ssh a-1 ", "scp a:b ", "-w a,",
    "AKIA" + "A" * 16 + " ", "aA1", "aA1/", "?sig=", "&token=", "LS0tLS1CRUdJTi", "-bcdfghjk-bcdfg", "a.com", ".com",
    "node-", "dgx-a", "ab:", "aa-bb-", "10-10-10-10-", "+1 1 ", "phone 1", "139 1234 5678 ", "A_KEY=", "a%40", "%E5",
    "[a@b ", "Author: a", "auth=('a','", "password is ", "C:\\Users\\a ", "drwxr-xr-x 1 a b 1", "1101011990", "\n",
]  # fmt: skip


def _linear(piece: str, size: int) -> bool:
    """Return whether a line of four times the size takes about four times as long, not sixteen times."""

    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        begin = time.process_time()
        for finder in FINDERS:
            sum(1 for _ in finder(text))
        scan(text, {"zhangsan": "user"})
        return time.process_time() - begin

    seconds(1000)
    return seconds(4 * size) < 10 * seconds(size) + 0.25


@pytest.mark.parametrize("piece", HOSTILE)
def test_finding_and_scanning_take_linear_time(piece: str) -> None:
    """A line made of one hostile piece costs no more than its length in any finder and in the scan."""
    assert _linear(piece, 15_000)


@given(st.lists(st.sampled_from(HOSTILE) | PIECES, min_size=1, max_size=4).map("".join))
@settings(max_examples=12, deadline=None)
def test_any_repeated_text_takes_linear_time(piece: str) -> None:
    """Nor does a line in which several of them follow each other, again and again."""
    assert _linear(piece, 10_000)
