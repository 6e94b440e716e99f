"""Templates are rendered as transformers renders them, and a hostile one harms nothing."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.readers import chat_template
from probes.readers.chat_template import Call, Rendering, render

LOOP = (
    "{% for n in 'abcd' %}{% if n == 'b' %}{% continue %}{% endif %}"
    "{% if n == 'd' %}{% break %}{% endif %}{{ n }}{% endfor %}"
)
HELLO = [{"role": "user", "content": "hé <b>"}]


def once(template: str, **variables: object) -> Rendering:
    """Render one conversation of one turn."""
    (rendering,) = render(template, {"bos_token": "<s>"}, [Call(HELLO, True, tuple(variables.items()))])
    return rendering


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ bos_token }}{{ messages[0].content }}", "<s>hé <b>"),
        ("{% if add_generation_prompt %}A{% endif %}{% if tools %}T{% endif %}{{ documents is none }}", "ATrue"),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{{ {'k': 'é<&'} | tojson }}", '{"k": "é<&"}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{{ 'é' | tojson(ensure_ascii=True) }}", '"\\u00e9"'),
        (LOOP, "ac"),
        ("a{% generation %}{{ messages[0].role }}{% endgeneration %}b", "auserb"),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "1"),
        ("{{ enable_thinking is defined and enable_thinking is false }}", "False"),
    ],
)
def test_what_transformers_gives_is_there(template: str, expected: str) -> None:
    """Variables, trimmed blocks, tojson without HTML escapes, loop controls, the generation tag."""
    assert once(template) == Rendering(expected)


def test_the_date_is_today_s() -> None:
    """`strftime_now` formats the present."""
    assert once("{{ strftime_now('%Y') }}").text == str(dt.datetime.now().astimezone().year)


def test_variables_of_a_call_reach_the_template() -> None:
    """`enable_thinking` and tools as they were given."""
    assert once("{{ enable_thinking }}{{ tools | length }}", enable_thinking=False, tools=[1, 2]).text == "False2"


def test_each_call_is_answered_in_order() -> None:
    """One that is refused does not end the others."""
    template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].role }}"
    )
    calls = [Call([{"role": role, "content": ""}]) for role in ("user", "system", "tool")]
    assert render(template, {}, calls) == [Rendering("user"), Rendering("no system", "refused"), Rendering("tool")]


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.system('touch /tmp/x') }}",
        "{{ messages.append(1) }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__code__ }}",
        "{{ ('%s' | format)['__class__'] }}{{ ''['__class__'].__base__ }}",
        "{{ (messages | attr('__class__')).__base__ }}",
        "{{ self._TemplateReference__context.environment }}",
        "{{ '{0.__class__.__init__}'.format(messages) }}",
    ],
)
def test_a_walk_out_of_the_sandbox_gives_nothing(template: str) -> None:
    """Attributes that lead to classes, functions and globals are refused or undefined; nothing of them is printed."""
    rendering = once(template)
    assert rendering.fault in ("unsafe", "broken") or "class" not in rendering.text
    assert not Path("/tmp/x").exists()


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{{ 'a' * 10**10 }}", "memory"),
        ("{{ 'a' * messages | length * 10**10 }}", "memory"),
        ("{{ '%9999999999d' % 1 }}", "memory"),
        ("{{ 'x'.center(10**10) }}", "memory"),
        (
            "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
            "memory",
        ),
        ("{% for i in range(99999) %}{{ 'a' * 99 }}{% endfor %}", "too-large"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "broken"),
        ("{{" + "(" * 500 + "1" + ")" * 500 + "}}", "broken"),
        ("{% include '/etc/passwd' %}", "broken"),
        ("{% import 'os' as os %}", "broken"),
        ("{% for", "broken"),
        ("{{ nothing.at.all }}", "broken"),
    ],
)
def test_bombs_and_broken_templates_are_named(template: str, fault: str) -> None:
    """Memory, output and recursion have bounds; what does not compile or asks for files is broken."""
    assert once(template).fault == fault


def test_an_endless_loop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processor time has a bound; calls before it are answered."""
    monkeypatch.setattr(chat_template, "WALL_SECONDS", 4.0)
    loop = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    template = "{% if add_generation_prompt %}" + loop + "{% endif %}x"
    assert render(template, {}, [Call(HELLO), Call(HELLO, True), Call(HELLO)]) == [
        Rendering("x"),
        Rendering("", "time"),
        Rendering("", "time"),
    ]


def test_a_module_in_the_working_folder_is_not_taken_for_jinja2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's folder may hold a jinja2.py."""
    (tmp_path / "jinja2.py").write_text("raise SystemExit(1)")
    (tmp_path / "json.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert once("ok") == Rendering("ok")


def test_messages_that_are_not_plain_data_are_refused() -> None:
    """A tensor in a conversation, say."""
    (rendering,) = render("x", {}, [Call([{"role": "user", "content": object()}])])
    assert rendering.fault == "refused"


@settings(max_examples=20, deadline=None)
@given(template=st.text(alphabet="{}%#ab'|.()[] \n<>￿\x00é", max_size=40))
def test_any_text_is_rendered_or_named(template: str) -> None:
    """No template raises here, and a fault is one of those that are declared."""
    faults = {"", "refused", "broken", "unsafe", "too-large", "memory", "time"}
    assert once(template).fault in faults
