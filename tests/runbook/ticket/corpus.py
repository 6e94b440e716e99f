"""Private things of many kinds, true to their format and made up at test time, in the lines where they occur.

Nothing here is a key of anybody: every value comes from a seeded generator, so that a scanner of this repository finds
none and a failure can be repeated.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable
from typing import NamedTuple

LOWER = string.ascii_lowercase
MIXED = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


class Plant(NamedTuple):
    """A line with something private in it. private: the pieces that must be gone, each of them."""

    name: str
    line: str
    private: tuple[str, ...]


class Maker:
    """Makes up values of a format; the same seed gives the same values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, letters: str, length: int) -> str:
        """Return random letters, a lower-case one, an upper-case one and a digit of them first where there are any."""
        first = [group for group in (LOWER, string.ascii_uppercase, string.digits) if set(group) <= set(letters)]
        head = "".join(self.random.choice(group) for group in first)[:length]
        return head + "".join(self.random.choice(letters) for _ in range(length - len(head)))

    def hex(self, length: int) -> str:
        """Return hexadecimal digits."""
        return "".join(self.random.choice(HEX) for _ in range(length))

    def uuid(self) -> str:
        """Return a UUID."""
        return "-".join(self.hex(length) for length in (8, 4, 4, 4, 12))

    def b64(self, length: int) -> str:
        """Return Base64 text of random bytes."""
        return base64.b64encode(self.random.randbytes(length)).decode()

    def upper(self, length: int) -> str:
        """Return upper-case letters and digits."""
        return self.of(string.ascii_uppercase + string.digits, length)


def tokens(make: Maker) -> list[Plant]:
    """Return secrets that their own shape gives away, with nothing before them that names them."""
    mixed, digits = make.of, string.digits
    shapes = {
        "hugging face": "hf_" + mixed(string.ascii_letters, 34),
        "github": "ghp_" + mixed(MIXED, 36),
        "github app": "ghs_" + mixed(MIXED, 36),
        "github fine-grained": "github_pat_" + mixed(MIXED, 22) + "_" + mixed(MIXED, 59),
        "gitlab": "glpat-" + mixed(MIXED, 20),
        "aws id": "AKIA" + make.upper(16),
        "aws session id": "ASIA" + make.upper(16),
        "google": "AIza" + mixed(MIXED + "_-", 35),
        "google oauth": "ya29." + mixed(MIXED + "_-", 60),
        "openai": "sk-proj-" + mixed(MIXED, 48),
        "openai old": "sk-" + mixed(MIXED, 48),
        "anthropic": "sk-ant-api03-" + mixed(MIXED + "_-", 90),
        "deepseek, moonshot": "sk-" + make.hex(32),
        "openrouter": "sk-or-v1-" + make.hex(64),
        "groq": "gsk_" + mixed(MIXED, 52),
        "xai": "xai-" + mixed(MIXED, 80),
        "perplexity": "pplx-" + mixed(MIXED, 48),
        "replicate": "r8_" + mixed(MIXED, 37),
        "nvidia": "nvapi-" + mixed(MIXED + "_-", 64),
        "modelscope": "ms-" + make.uuid(),
        "zhipu": make.hex(32) + "." + mixed(MIXED, 16),
        "databricks": "dapi" + make.hex(32),
        "slack": f"xoxb-{mixed(digits, 12)}-{mixed(digits, 12)}-{mixed(MIXED, 24)}",
        "aliyun": "LTAI5t" + mixed(MIXED, 18),
        "tencent": "AKID" + mixed(MIXED, 32),
        "volcengine": "AKLT" + mixed(MIXED, 43),
        "baidu": "ALTAK-" + mixed(MIXED, 21),
        "wandb v1": "wandb_v1_" + mixed(MIXED, 60),
        "npm": "npm_" + mixed(MIXED, 36),
        "pypi": "pypi-AgEIcHlwaS5vcmc" + mixed(MIXED, 60),
        "docker": "dckr_pat_" + mixed(MIXED, 27),
        "jwt": ".".join(
            base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
            for part in ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{make.hex(8)}"}}', make.hex(30))
        ),
        "kube certificate": base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" + make.b64(60).encode()).decode(),
        "bare base64 of 30 bytes": mixed(MIXED, 40),
        "dingtalk sign": "SEC" + make.hex(64),
    }
    return [Plant(name, f"E0312 worker said {value} and went on", (value,)) for name, value in shapes.items()]


def keys(make: Maker) -> list[Plant]:
    """Return PEM blocks, SSH keys, web hooks, signed addresses, logins in addresses, headers, cookies."""
    body, one_line, public = make.b64(48), make.b64(64), "AAAAC3NzaC1lZDI1NTE5AAAAI" + make.of(MIXED, 43)
    login = make.of(MIXED, 14)
    basic = base64.b64encode(f"svc:{make.of(MIXED, 15)}".encode()).decode()
    token = make.of(MIXED, 24)
    aws, ali, signature, hook = make.of(MIXED + "/+", 40), make.of(MIXED, 30), make.b64(20), make.uuid()
    amz, cookie, session = make.hex(64), make.of(MIXED, 26), make.of(MIXED, 32)
    return [
        Plant("pem", f"-----BEGIN RSA PRIVATE KEY----- {body} -----END RSA PRIVATE KEY-----", (body,)),
        Plant(
            "pem in one line",
            f'"private_key": "-----BEGIN PRIVATE KEY-----\\n{one_line}\\n-----END PRIVATE KEY-----\\n", "x": 1',
            (one_line,),
        ),
        Plant("certificate", f"-----BEGIN CERTIFICATE----- {body} -----END CERTIFICATE-----", (body,)),
        Plant("ssh public", f"ssh-ed25519 {public} wei.li@gpu-login-02", (public, "wei.li", "gpu-login-02")),
        Plant("ssh rsa", f"authorized: ssh-rsa AAAAB3NzaC1yc2E{one_line}", (one_line,)),
        Plant("aws pair", f"creds AKIA{make.upper(16)} {aws}", (aws,)),
        Plant("aws pair in a list", f"['AKIA{make.upper(16)}', '{aws}']", (aws,)),
        Plant("aliyun pair", f"ossutil config -i LTAI5t{make.of(MIXED, 18)} -k {ali}", (ali,)),
        Plant("volcengine pair", f"ak=AKLT{make.of(MIXED, 43)}, sk={make.b64(30)}", ("AKLT",)),
        Plant("slack hook", f"https://hooks.slack.com/services/T0{make.upper(8)}/B0{make.upper(8)}/{token}", (token,)),
        Plant("feishu hook", f"post https://open.feishu.cn/open-apis/bot/v2/hook/{hook} failed", (hook,)),
        Plant("dingtalk hook", f"https://oapi.dingtalk.com/robot/send?access_token={amz}", (amz,)),
        Plant("wecom hook", f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={hook}", (hook,)),
        Plant("discord hook", f"https://discord.com/api/webhooks/1234567890/{session}", (session,)),
        Plant(
            "s3 signed",
            f"GET https://team-b.s3.amazonaws.com/x.pt?X-Amz-Expires=600&X-Amz-Signature={amz}&x=1",
            (amz, "team-b"),
        ),
        Plant(
            "oss signed",
            f"https://b-1.oss-cn-beijing.aliyuncs.com/x?OSSAccessKeyId=LTAI5t{make.of(MIXED, 18)}"
            f"&Signature={signature.replace('+', '%2B').replace('/', '%2F').replace('=', '%3D')}",
            (signature[:8].replace("+", "%2B").replace("/", "%2F"), "b-1.oss", "LTAI5t"),
        ),
        Plant("azure sas", f"https://acc1.blob.core.windows.net/c?sv=2022&sig={make.hex(40)}%3D", ("sig=%", "acc1")),
        Plant("login in url", f"postgres://svc:{login}@db-7.corp/x", (login, "db-7")),
        Plant("clone with token", f"git clone https://{token}@github.com/a/b.git", (token,)),
        Plant("clone with login", f"git clone https://x-access-token:{token}@github.com/a/b.git", (token,)),
        Plant("bearer", f"AUTHORIZATION: BEARER {session}", (session,)),
        Plant("bearer in json", f'{{"authorization": "bearer {session}"}}', (session,)),
        Plant("bearer in repr", f"headers={{'Authorization': 'Bearer {session}'}}", (session,)),
        Plant("basic", f"authorization: Basic {basic}", (basic,)),
        Plant("basic alone", f"sent {basic} upstream", (basic,)),
        Plant("base64 of a token", f"data: {base64.b64encode(b'hf_' + token.encode()).decode()}", ("aGZf",)),
        Plant("cookie", f"Set-Cookie: sessionid={cookie}; Path=/", (cookie,)),
        Plant("cookie flag", f"curl -b 'JSESSIONID={cookie}' http://x-1/", (cookie,)),
        Plant("cookies in repr", f"cookies={{'csrftoken': '{cookie}'}}", (cookie,)),
        Plant("api header", f"X-Api-Key: {session}", (session,)),
        Plant("kube token", f"kubectl --token={session} get pods", (session,)),
        Plant("kube config", f"client-key-data: {make.b64(50)}", ("client-key-data: L",)),
    ]


def passwords(make: Maker) -> list[Plant]:
    """Return secrets that only what stands before them gives away."""
    key, word, short = make.hex(40), make.of(LOWER + string.digits, 10), "Tr0ub4dor"
    shapes = {
        "wandb said": f"my wandb key {key} please",
        "wandb login": f"wandb login {key}",
        "wandb relogin": f"wandb login --relogin {key}",
        "wandb call": f'wandb.login(key="{key}")',
        "wandb table": f"  wandb_key ....................................... {key}",
        "wandb flag": f"--wandb-key {key} --lr 1e-6",
        "wandb flag in json": f'["--wandb-key", "{key}", "--lr"]',
        "wandb in yaml": f"wandb_key: {key}",
        "wandb environment": f"export WANDB_API_KEY='{key}'",
        "docker": f"docker login -u ci -p {word} registry.example.com",
        "docker long": f"docker login --username ci --password {word} r.example.com",
        "sshpass": f"sshpass -p {word} ssh gpu-node-17 nvidia-smi",
        "sshpass joined": f"sshpass -p'{word}' scp x y",
        "curl": f"curl -s -u ci:{word} https://example.com/x",
        "curl long": f"curl --user 'ci:{word}' https://example.com/x",
        "mysql": f"mysql -uroot -p{word} -h db",
        "pg": f"PGPASSWORD={word} psql -c 'select 1'",
        "redis": f"redis-cli -h cache -a {word} ping",
        "redis variable": f"REDISCLI_AUTH={word} redis-cli",
        "ray": f"ray start --head --redis-password='{word}'",
        "hf login": f"huggingface-cli login --token {word}",
        "hf auth": f"hf auth login --token={word}",
        "export token": f"export MY_SERVICE_TOKEN={word}",
        "export secret": f'export DEPLOY_SECRET="{word}"',
        "export key": f"export ZHIPU_KEY={make.of(MIXED, 22)[:0]}{word}",
        "token is": f"the token is {make.of(MIXED, 20)[:0]}{key}",
        "password is": f"the password is {word}, ask me",
        "password colon": f"password: {word}",
        "password digits": "password: 83736251",
        "Password": f"Password={word}",
        "password zh": f"密码：{word}",
        "toml": f'password = "{word}"',
        "json": f'{{"db_password": "{word}", "n": 3}}',
        "json in json": f'"{{\\"db_password\\": \\"{word}\\"}}"',
        "repr": f"Namespace(password='{word}', lr=1e-06)",
        "query": f"https://example.com/x?user=a&password={word}&y=1",
        "encoded": f"https://example.com/x?next=%3Fpassword%3D{word}%26y%3D1",
        "aws configure": f"aws configure set aws_secret_access_key {word}",
        "minio": f"mc alias set m https://example.com minioadm {word}",
        "netrc": f"machine api.wandb.ai login user password {word}",
        "http auth": f"requests.get(url, auth=('ci', '{word}'))",
        "kubectl secret": f"kubectl create secret generic db --from-literal=password={word}",
        "openssl": f"openssl rsa -passin pass:{word}",
        "tencent sk": f"SecretKey={word}",
        "volc sk": f'"SecretAccessKey": "{word}"',
        "aliyun secret": f"access_key_secret: {word}",
        "short": f"passwd={short}",
    }
    private = {"password digits": "83736251", "short": short}
    shapes |= {
        "name and value": f'{{"name":"WANDB_API_KEY","value":"{key}"}}',
        "environ": f"os.environ['WANDB_API_KEY'] = '{key}'",
        "environ of a password": f"os.environ['DB_PASSWORD'] = '{word}'",
        "list of arguments": f"Namespace(wandb_key=['{key}'])",
        "default of a field": f'"api_key": {{"default":"{key}"}}',
        "list of passwords": f'{{"password":["{word}"]}}',
        "bytes": f"password=b'{word}'",
        "tagged": f"password: !!str {word}",
        "arrow": f"password => {word}",
        "subscription": f"Ocp-Apim-Subscription-Key: {key}",
        "dict of cookies": f"'cookies': {{'sessionid':'{key}'}}",
    }
    return [Plant(name, line, (private.get(name) or (key if key in line else word),)) for name, line in shapes.items()]


def people(make: Maker) -> list[Plant]:
    """Return user names, mail addresses, phone numbers and numbers of identity cards."""
    name = "q" + make.of(LOWER, 6)[1:] + "zx"
    identity = identity_number(make)
    lines = {
        "home": f"/home/{name}/run/job.log",
        "home at the end": f"cd /home/{name}",
        "mac": f"/Users/{name}/x",
        "nfs home": f"/nfs/home/{name}/ckpt",
        "home of a number": f"/home1/{name}/ckpt",
        "data": f"/data/{name}/ckpt/iter_1",
        "data of a number": f"/data2/{name}/ckpt",
        "mnt": f"/mnt/nfs-3/{name}/ckpt/",
        "users on a mount": f"/mnt/lustre/a/users/{name}/x",
        "u": f"/u/{name}/x",
        "work": f"/work/{name}/x",
        "tilde": f"cp ~{name}/x .",
        "tilde at the end": f"cd ~{name}",
        "windows": f"C:\\Users\\{name}\\x",
        "windows in json": f'"C:\\\\Users\\\\{name}\\\\x"',
        "windows slash": f"C:/Users/{name}/x",
        "encoded": f"file=%2Fhome%2F{name}%2Fx",
        "url": f"file:///home/{name}/x",
        "variable": f"USER={name}",
        "user=": f"user={name} uid=1003",
        "id": f"uid=1003({name}) gid=100(users)",
        "slurm job": f"   UserId={name}(1003) GroupId=users(100) MCS_label=N/A",
        "slurm owner": f"JobOwner={name}",
        "slurm variable": f"SLURM_JOB_USER={name}",
        "owner": f"job owner: {name}",
        "submitted": f"submitted by {name} at 10:00",
        "username": f"'username': '{name}'",
        "json user": f'"user": "{name}"',
        "ssh": f"ssh {name}@gpu-node-17 hostname",
        "ssh flag": f"ssh -l {name} gpu-node-17",
        "prompt": f"{name}@tiger:~$ ls",
        "root prompt": "[root@tigerbox ~]# ls",
        "sudo": f"sudo -u {name} ls",
        "chown": f"chown -R {name}:staff /x",
        "git": f"Author: {name.title()} Li <{name}@example.org>",
        "ls": f"-rw-r--r-- 1 {name} staff 1834 Nov 29 18:18 job.log",
        "ps": f"{name}   19388 99.0  0.1 123456 7890 ?  Rl  18:18  0:01 python train.py",
        "mail": f"ask {name}.petrov+ml@corp.example.net",
        "mail at the end": f"<{name}@163.com>",
        "mail encoded": f"mailto:{name}%40example.net",
        "image": f"registry.example.com/{name}/x, built by user {name}",
    }
    private = {"root prompt": "tigerbox"}
    more = [
        Plant("chinese name", "open /home/张伟/run failed", ("张伟",)),
        Plant("accent", "C:\\Users\\José\\x and /Users/José", ("José",)),
        Plant("encoded name", "/home/%E5%BC%A0%E4%BC%9F/run", ("%E5%BC%A0", "%BC%9F")),
        Plant("escaped name", '"/home/\\u5f20\\u4f1f/run"', ("u5f20", "u4f1f")),
        Plant("name of two words", "C:\\Users\\John Smith\\x", ("John", "Smith")),
        Plant("chinese mobile", "call 13912345678 at once", ("13912345678",)),
        Plant("chinese mobile, spaced", "139 1234 5678", ("1234 5678",)),
        Plant("chinese mobile, hyphens", "tel 139-1234-5678", ("1234-5678",)),
        Plant("chinese mobile, country", "+86 13912345678", ("13912345678",)),
        Plant("chinese words", "手机：13912345678，微信同号", ("13912345678",)),
        Plant("us phone", "on call: +1 415-555-0123", ("555-0123",)),
        Plant("us phone, brackets", "phone (415) 555-0123", ("555-0123",)),
        Plant("german phone", "Tel.: +49 30 901820 12", ("901820",)),
        Plant("identity card", f"id {identity}", (identity,)),
    ]
    return [Plant(what, line, (private.get(what, name),)) for what, line in lines.items()] + more


def identity_number(make: Maker) -> str:
    """Return a number as on a Chinese identity card, with a right check digit (GB 11643)."""
    digits = "110101" + "19900307" + "".join(make.random.choice(string.digits) for _ in range(3))
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return digits + "10X98765432"[sum(int(d) * w for d, w in zip(digits, weights, strict=True)) % 11]


def machines(make: Maker) -> list[Plant]:
    """Return host names, addresses of networks and of hardware, names of pods."""
    number = f"{make.random.randrange(10, 99)}"
    lines: dict[str, tuple[str, str]] = {
        "node017": (f"job on node0{number} hangs", f"node0{number}"),
        "node in a name": (f"/run/exp-node0{number}/job_node0{number}.log", f"node0{number}"),
        "gpu-node": (f"gpu-node-{number}: Xid 79", f"gpu-node-{number}"),
        "dgx": (f"see dgx-a100-{number} now", f"dgx-a100-{number}"),
        "ssh": ("ssh worker-3 nvidia-smi", "worker-3"),
        "ssh flags": ("ssh -o StrictHostKeyChecking=no -p 2222 worker-3", "worker-3"),
        "scp": ("scp x.log tigerbox:/tmp/", "tigerbox"),
        "rsync": ("rsync -a wei@tigerbox:/data/x .", "tigerbox"),
        "host=": ("connect(host=worker-3, port=80)", "worker-3"),
        "ray ip": ("(SGLangEngine pid=952, ip=worker-3) ready", "worker-3"),
        "nccl": ("tigerbox:311:402 [0] NCCL INFO Bootstrap", "tigerbox"),
        "syslog": ("Nov 29 18:18:14 tigerbox kernel: NVRM: Xid", "tigerbox"),
        "elastic": ("  host      : tigerbox-7.hpc", "tigerbox-7"),
        "srun": ("srun: error: tigerbox7: task 3: Killed", "tigerbox7"),
        "slurmstepd": ("slurmstepd: error: *** JOB 12 ON tigerbox7 CANCELLED AT", "tigerbox7"),
        "mpi": ("[tigerbox7:12345] *** Process received signal ***", "tigerbox7"),
        "mpirun": ("mpirun -H tigerbox7:8,tigerbox8:8 python x", "tigerbox8"),
        "node list": ("SLURM_NODELIST=tiger[01-04,7] x", "tiger[01"),
        "nodelist flag": ("srun --nodelist=tiger01,tiger02 hostname", "tiger02"),
        "w flag": ("srun -w tiger01 hostname", "tiger01"),
        "ray address": ("ray start --address=tigerbox:6379", "tigerbox"),
        "RAY_ADDRESS": ("RAY_ADDRESS=tigerbox:6379", "tigerbox"),
        "dist init": ("--dist-init-addr tigerbox:20000", "tigerbox"),
        "master": ("MASTER_ADDR=tigerbox", "tigerbox"),
        "client socket": ("The client socket has failed to connect to [tigerbox7]:29500", "tigerbox7"),
        "tuple": ("failed to connect to ('tigerbox7', 29500)", "tigerbox7"),
        "resolve": ("curl: (6) Could not resolve host: tigerbox", "tigerbox"),
        "etc hosts": ("10.3.4.5 tigerbox tigerbox7.hpc", "tigerbox"),
        "url": ("http://tigerbox:3000/health", "tigerbox"),
        "domain": ("on tigerbox.hpc.example.edu", "tigerbox"),
        "service": ("minio.storage.svc.cluster.local:9000", "minio.storage"),
        "pod of a set": ("pod-abc-0.svc.cluster.local", "pod-abc-0"),
        "pod": ("kubectl logs pod/tiger-7d9f8b6c54-x2x4z -c main", "tiger-7d9f8b6c54-x2x4z"),
        "pod name": ("POD_NAME=tiger-worker-0", "tiger-worker-0"),
        "pod of a deployment": ("evicted tiger-train-7d9f8b6c54-x2x4z", "tiger-train-7d9f8b6c54-x2x4z"),
        "cloud": ("on ip-10-1-22-3 now", "ip-10-1-22-3"),
        "internal": ("gitlab.tiger.internal/x", "gitlab.tiger"),
        "IPv4": ("(pid=1, ip=10.150.236.219)", "10.150.236.219"),
        "IPv4 with port": ("192.168.1.5:6379", "192.168.1.5"),
        "IPv4 public": ("from 203.119.45.7 port 22", "203.119.45.7"),
        "IPv4 net": ("172.16.3.0/24", "172.16.3"),
        "IPv4 in a name": ("log_10.150.236.219_0.txt", "10.150.236.219"),
        "IPv4 with hyphens": ("worker-10-150-236-219.log", "10-150-236-219"),
        "IPv4 mapped": ("::ffff:10.1.2.3", "10.1.2.3"),
        "IPv4 of NCCL": ("NET/Socket : Using [0]eth0:10.9.8.7<0>", "10.9.8.7"),
        "IPv4 after version": ("sglang version 0.5.2 at 10.9.8.7:30000", "10.9.8.7"),
        "IPv6": ("[fd00:12:34::5]:6379", "fd00:12:34::5"),
        "IPv6 before a colon": ("fe80::1ff:fe23: timed out", "1ff:fe23"),
        "IPv6 link": ("fe80::1ff:fe23:4567:890a%eth0", "1ff:fe23"),
        "IPv6 full": ("2001:0db8:0000:0000:0000:ff00:0042:8329", "ff00:0042"),
        "IPv6 upper": ("2001:DB8:0:0:8:800:200C:417A", "200C:417A"),
        "IPv6 after a colon": ("inet6 addr:2001:db8::8a2e:370:7334/64", "8a2e:370"),
        "IPv6 nat": ("64:ff9b::808:808", "64:ff9b::808"),
        "MAC": ("ether 52:54:00:ab:cd:ef txqueuelen", "52:54:00:ab"),
        "MAC with hyphens": ("52-54-00-AB-CD-EF", "52-54-00-AB"),
        "guid": ("Node GUID 0c42:a103:0012:3456", "a103:0012"),
        "bucket": ("s3://team-secret-bucket/x", "team-secret-bucket"),
    }
    return [Plant(what, line, (private,)) for what, (line, private) in lines.items()]


KINDS: dict[str, Callable[[Maker], list[Plant]]] = {
    "tokens": tokens,
    "keys": keys,
    "passwords": passwords,
    "people": people,
    "machines": machines,
}


def everything(seed: int = 1) -> list[Plant]:
    """Return all plants, their names made unique by their kind."""
    make = Maker(seed)
    return [plant._replace(name=f"{kind}: {plant.name}") for kind, planted in KINDS.items() for plant in planted(make)]
