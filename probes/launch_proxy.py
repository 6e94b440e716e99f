"""Whether a script hands proxy variables to the job without an exception for the cluster's own addresses.

slime's processes, the router and the engines talk HTTP to each other under the nodes' addresses. `requests` and the
router obey http_proxy; slime's own client does so up to v0.2.3 (later it sets trust_env=False, utils/http_utils.py).
slime's scripts unset the variables, or pass no_proxy in the runtime env. The router's health probe does not honour
no_proxy reliably (slime, tests/test_glm52_6layer_deterministic_e2e.py), so an exception helps and proves nothing.
A proxy that passes everything on does no harm: this is a warning, and the log proves the rest (engine.in_log).
"""

from __future__ import annotations

from probes.readers.environment import exported, passed
from probes.readers.launch_model import Setting, cite_place
from probes.settings import no_command, read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
"""What Python's HTTP clients obey for http:// addresses; https_proxy does not touch them."""
EXCEPTIONS = ("no_proxy", "NO_PROXY")
_LOCAL = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", ""})  # noqa: S104 - names that reach no other node


@probe(
    "launch.proxy",
    needs="launch",
    answers=("not-set", "excepted", "caught"),
    en="Do proxy variables of the script catch the cluster's own HTTP?",
    zh="脚本里的代理变量会拦截集群内部的 HTTP 吗？",
)
def proxy(evidence: Evidence, report: Progress) -> Finding:
    """Look at the environment of every job."""
    del report
    settings = read_settings(evidence)
    if not settings.jobs:
        return no_command()
    for launch, job in settings.jobs:
        proxies = [one for name in PROXIES if (one := passed(job, name) or exported(launch, job, name)) is not None]
        proxies = [one for one in proxies if one.value != "" and one.sure and not one.default]
        excepted = [one for name in EXCEPTIONS if (one := passed(job, name) or exported(launch, job, name)) is not None]
        if not proxies:
            continue
        citations = tuple(cite_place(one.place) for one in (*proxies, *excepted))
        if any(_covers(one) for one in excepted):
            return found(
                Verdict.OK,
                "excepted",
                f"{proxies[0].name} is set, and {excepted[0].name} excepts more than this machine; that every node is "
                "among them is not checked.",
                f"设置了 {proxies[0].name}，{excepted[0].name} 排除了本机以外的地址；没有检查是否包含所有节点。",
                citations=citations,
            )
        return found(
            Verdict.WARNING,
            "caught",
            f"{proxies[0].name} reaches the job, and no_proxy excepts no address of the cluster: requests between "
            "slime, router and engines go to the proxy.",
            f"{proxies[0].name} 会传给任务，而 no_proxy 没有排除集群地址："
            "slime、router 与 engine 之间的请求会发给代理。",
            citations=citations,
        )
    return found(
        Verdict.OK,
        "not-set",
        "The script sets no HTTP proxy (the nodes' own environment may).",
        "脚本没有设置 HTTP 代理（节点自身的环境可能有）。",
    )


def _covers(one: Setting) -> bool:
    """Return whether an exception names anything beyond the local machine; an unknown part may."""
    return any(part.strip() not in _LOCAL for part in one.shown.split(","))
