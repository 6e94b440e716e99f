"""Walking bash scripts: every expected value was worked out by hand from the bash manual."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.bash_script import read_script
from probes.readers.bash_values import known, show
from probes.readers.bash_walk import Script


def walk(text: str, path: str = "/s/run.sh") -> Script:
    """Walk a script given as text."""
    return read_script(path, text.encode())


def last(text: str) -> list[str | None]:
    """Return the words of the last command, unknown ones as None."""
    return [known(word) for word in walk(text).commands[-1].words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=(\n --x 1\n # --no\n #--no2\n --y 2\n)\necho ${A[@]}", ["echo", "--x", "1", "--y", "2"]),
        ('A=(--x "a b")\necho "${A[@]}"', ["echo", "--x", "a b"]),
        ('A=(--x "a b")\necho ${A[@]}', ["echo", "--x", "a", "b"]),
        ('A=()\nA+=(--x)\nA+=(--y 2)\necho z"${A[@]}"', ["echo", "z--x", "--y", "2"]),
        ('echo "${EMPTY[@]}" $UNSET_ARRAY_X end'.replace("$UNSET_ARRAY_X ", ""), ["echo", "end"]),
        ("A=(1 2 3)\nA[1]=b\necho ${A[0]} ${A[1]} ${A[-1]} ${#A[@]}", ["echo", "1", "b", "3", "3"]),
        ("X=5\necho ${X:-1} ${Y:-2} ${X:+3}", ["echo", "5", "2", "3"]),
        ("X=\necho a ${X:-b} ${X-c} d", ["echo", "a", "b", "d"]),
        (
            "F=/a/b.tar.gz\necho ${F##*/} ${F%.gz} ${F%/*} ${F/b/c}",
            ["echo", "b.tar.gz", "/a/b.tar", "/a", "/a/c.tar.gz"],
        ),
        ("X=ab\necho ${X^^} ${X:1} ${#X}", ["echo", "AB", "b", "2"]),
        ("echo $((2 * 3 + 1)) $(seq 16 8 32)", ["echo", "7", "16", "24", "32"]),
        ("E='--x 1'\necho $E \"$E\"", ["echo", "--x", "1", "--x 1"]),
        ("echo a\\ b 'c $D' \"e\\\"f\" $'g\\th'", ["echo", "a b", "c $D", 'e"f', "g\th"]),
        ("echo --x \\\n  1 \\\n  --y", ["echo", "--x", "1", "--y"]),
        ("for i in a b; do A+=($i); done\necho ${A[@]}", ["echo", "a", "b"]),
        ("for ((i=0; i<3; i++)); do A+=($i); done\necho ${A[*]}", ["echo", "0", "1", "2"]),
        ("N=2\nif [ $N -gt 1 ]; then X=yes; else X=no; fi\necho $X", ["echo", "yes"]),
        ('M=a\nif [[ "$M" == "b" ]]; then X=1; elif [[ $M = a ]]; then X=2; fi\necho $X', ["echo", "2"]),
        ('M=a\n[ "$M" = b ] && A=(1)\n[ "$M" = b ] || A+=(2)\necho ${A[@]}', ["echo", "2"]),
        ("f() { A+=($1 $2); }\nf --x 1\necho ${A[@]}", ["echo", "--x", "1"]),
        ('J=$(cat <<EOF\n{"a": "$((1+1))"}\nEOF\n)\necho "$J"', ["echo", '{"a": "2"}']),
        ("J=$(cat <<'EOF'\n$X\nEOF\n)\necho \"$J\"", ["echo", "$X"]),
        ("arr=(0 1 1)\nprintf -v F '[%s]' \"$(IFS=', '; echo \"${arr[*]}\")\"\necho $F", ["echo", "[0,1,1]"]),
        ("echo $(dirname /a/b/c) $(basename /a/b.sh)", ["echo", "/a/b", "b.sh"]),
        ("unset A\nA=x\nunset A\necho ${A:-gone}", ["echo", "gone"]),
    ],
)
def test_expansions_follow_the_manual(text: str, expected: list[str]) -> None:
    """Arrays, defaults, patterns, quoting, loops, conditions, functions and here-documents expand as in bash."""
    assert last(text) == expected


@pytest.mark.parametrize(
    "text", ["echo $HOME", "echo $(nvidia-smi -L)", "echo $1", "echo ${X@Q}", "read X\necho $X", "echo $(date)"]
)
def test_what_only_a_run_can_tell_is_unknown(text: str) -> None:
    """The environment, arguments, input and the output of commands are never guessed; the reason is kept."""
    word = walk(text).commands[-1].words[-1]
    assert known(word) is None
    assert word[0].reason
    assert show(word)


def test_the_script_folder_idiom_is_understood() -> None:
    """`$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)` is the script's own folder."""
    text = 'D="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"\necho ${D}/../models'
    assert last(text) == ["echo", "/s/../models"]


def test_a_sourced_file_is_walked_and_cited_where_it_is(tmp_path: Path) -> None:
    """Words of a sourced array point into the sourced file."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "toy.sh").write_text("L=${LAYERS:-4}\nMODEL_ARGS=(\n  --num-layers $L\n)\n")
    run = tmp_path / "run.sh"
    run.write_text('D="$(dirname "${BASH_SOURCE[0]}")"\nsource "${D}/models/toy.sh"\necho ${MODEL_ARGS[@]}\n')
    script = read_script(str(run), run.read_bytes())
    flag, value = script.commands[-1].words[1:]
    assert (known(flag), known(value)) == ("--num-layers", "4")
    assert script.sources[flag[0].path].place(flag[0].offset).line == 3
    assert flag[0].path.endswith("toy.sh")
    assert value[0].default
    assert not script.gaps


def test_a_missing_sourced_file_is_a_gap() -> None:
    """What cannot be read is said, and the walk goes on."""
    script = walk("source /nowhere/models/x.sh\necho on")
    assert [gap[0] for gap in script.gaps] == ["/nowhere/models/x.sh"]
    assert [known(word) for word in script.commands[-1].words] == ["echo", "on"]


def test_a_sourced_cycle_ends(tmp_path: Path) -> None:
    """A file that sources itself is walked once."""
    run = tmp_path / "run.sh"
    run.write_text(f"source {run}\necho on\n")
    assert len(read_script(str(run), run.read_bytes()).commands) == 1


def test_an_unknown_condition_leaves_both_branches_unsure() -> None:
    """Neither branch is taken for granted, and a variable with two values has none."""
    script = walk('A=(--x)\nif [ -n "$FLAG" ]; then A+=(--y); B=1; else B=2; fi\necho ${A[@]} $B')
    words = script.commands[-1].words
    assert [show(word) for word in words] == ["echo", "--x", "--y", "${B}"]
    assert [all(part.sure for part in word) for word in words] == [True, True, False, True]
    assert known(words[-1]) is None


def test_a_default_of_the_environment_decides_no_condition() -> None:
    """`${X:-1}` may be another value when the script runs, so a test over it is unknown."""
    script = walk("X=${X:-1}\nif [ $X -eq 1 ]; then echo one; else echo other; fi")
    assert [command.sure for command in script.commands] == [False, False]


def test_commands_in_loops_of_unknown_length_are_marked() -> None:
    """A loop over the output of a command may run any number of times."""
    script = walk('for W in $(cat hosts); do ssh $W "ray start"; done')
    assert script.commands[0].loop
    assert not script.commands[0].sure


def test_exports_are_told_from_plain_variables() -> None:
    """Only exported names count; a later assignment changes an exported value."""
    script = walk("export A=1 B\nC=3\nB=2\nexport -n D\ndeclare -x E=5")
    assert {name: show(value) for name, value in script.exports.items()} == {"A": "1", "B": "2", "E": "5"}


def test_windows_line_ends_keep_offsets() -> None:
    """A carriage return is a blank: the words are clean and the offset is that of the original bytes."""
    data = b"A=(\r\n  --x 1\r\n)\r\necho ${A[@]}\r\n"
    script = read_script("/s/run.sh", data)
    words = script.commands[-1].words
    assert [known(word) for word in words] == ["echo", "--x", "1"]
    assert data[words[1][0].offset :].startswith(b"--x")


def test_a_comment_inside_a_continuation_ends_it() -> None:
    """As in bash, what follows such a comment is a command of its own."""
    script = walk("python train.py \\\n  --a 1 \\\n  # --b\n  --c 2\n")
    assert [[known(word) for word in command.words] for command in script.commands] == [
        ["python", "train.py", "--a", "1"],
        ["--c", "2"],
    ]


def test_endless_and_deep_scripts_come_to_an_end() -> None:
    """A loop that never ends and nesting beyond the limit stop at the budget, with a gap."""
    assert walk("for ((i=0; i<1; i+=0)); do for ((j=0; j<1; j+=0)); do A+=(1); done; done\necho on").gaps
    assert walk("(" * 3000 + "echo" + ")" * 3000).gaps


_PIECES = [
    "A=(",
    ")",
    "${A[@]}",
    "${X:-",
    "}",
    '"',
    "'",
    "`",
    "$((",
    "))",
    "if ",
    "then ",
    "fi\n",
    "source ",
    "<<EOF\n",
    "EOF\n",
    "\\\n",
]
_PIECES += [
    "for i in ",
    "do ",
    "done\n",
    "--x ",
    "\x00",
    "\x1b[2J",
    "\u202e",
    "case ",
    "esac ",
    "A[",
    "]=",
    "printf -v ",
    "eval ",
]


@given(
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.sampled_from(_PIECES), max_size=40).map(lambda parts: "".join(parts).encode()),
    )
)
def test_no_text_raises(data: bytes) -> None:
    """Whatever the bytes, the walk ends with commands and gaps, and every offset lies in its file."""
    script = read_script("/s/run.sh", data)
    for command in script.commands:
        for word in command.words:
            for part in word:
                assert 0 <= part.offset <= len(data)


def test_a_line_of_a_megabyte_is_read() -> None:
    """One huge word costs no more than its length."""
    assert len(last("echo " + "x" * (1 << 20))[1] or "") == 1 << 20


SUBMIT = "ray job submit -- python3 train.py --load $A\n"
GROWING = {
    "doubling": "A=xxxxxxxx\n" + 'A="$A$A"\n' * 32,
    "appending": "A=xx\n" + "A+=$A\n" * 40,
    "many references": "A=xxxxxxxx\n" + 'A="$A$A"\n' * 14 + 'A="' + "$A" * 9000 + '"\n',
    "echo": "A=xxxxxxxx\n" + "A=$(echo $A $A)\n" * 32,
    "here-document": "A=xx\n" + "A=$(cat <<EOF\n$A$A\nEOF\n)\n" * 32,
    "replacement": "B=x\n" + 'B="$B$B"\n' * 12 + 'A="${B//x/$B}"\n',
    "printf": "B=xxxxxxxx\n" + 'B="$B$B"\n' * 14 + 'printf -v A "' + "%s" * 99 + '"' + ' "$B"' * 99 + "\n",
    "power": "A=9\n" + "A=$((A*A))\n" * 40,
    "sequence": "A=$(seq 1 999999999)\n",
    "array in a string": "B=(x y)\n" + 'B=("${B[@]}" "${B[@]}")\n' * 32 + 'A="${B[*]}"\n',
}


@pytest.mark.parametrize("text", GROWING.values(), ids=list(GROWING))
def test_a_value_that_grows_without_bound_becomes_unknown(text: str) -> None:
    """A few lines that ask for gigabytes end at once, with the flag's value unknown and the job still read."""
    script = read_script("/s/run.sh", (text + SUBMIT).encode())
    command = script.commands[-1]
    assert [known(word) for word in command.words[:3]] == ["ray", "job", "submit"]
    assert known(command.words[-1]) is None


ENDLESS = {
    "arrays": "A=(x y)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 12 + "B=(" + '"${A[@]}" ' * 9000 + ")\n",
    "assignments under a condition": 'if [ "$X" ]; then\n' + "A=(y)\n" * 9000 + "fi\n",
    "words": 'A="x "\n' + 'A="$A$A"\n' * 18 + "echo $A\n" * 9000,
    "prefixes": "A=aaaaaaaa\n" + 'A="$A$A"\n' * 9 + "B=${A##*a*a*a*b}\n" * 900,
    "subshells": "".join(f"V{n}=1\n" for n in range(5000)) + "B=$(echo x)\n" * 5000,
    "functions": "f0() { :; }\n" + "".join(f"f{n + 1}() {{ f{n}; f{n}; }}\n" for n in range(30)) + "f30\n",
    "loops": "for i in 1 2 3 4 5 6 7 8 9; do " * 8 + 'A="$A$i"; ' + "done; " * 8 + "\n",
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=list(ENDLESS))
def test_endless_work_ends_in_a_gap(text: str) -> None:
    """What costs more than any launch script is given up, and the script says so."""
    script = read_script("/s/run.sh", text.encode())
    assert "too long or too deep" in script.gaps[-1][1]


@pytest.mark.parametrize(
    "text",
    [
        "if ! run --x; then exit 1; fi",
        "if run --x | tee log; then :; fi",
        "until run --x; do sleep 1; done",
        "while ! run --x; do sleep 1; done",
        "if cd /a && run --x; then :; fi",
    ],
)
def test_commands_of_conditions_run(text: str) -> None:
    """What stands between `if` or `until` and its body is run, and for certain the first time."""
    runs = [one for one in walk(text).commands if known(one.words[0]) == "run"]
    assert [([known(word) for word in one.words], one.sure) for one in runs] == [(["run", "--x"], True)]


def test_a_comment_in_backticks_ends_at_its_backtick() -> None:
    """Comments between the lines of a command, as `# so`, hide nothing that follows."""
    assert last("run --a 1 \\\n  `# why` \\\n  --b 2 `# too` \\\n  --c\n") == ["run", "--a", "1", "--b", "2", "--c"]


def test_a_windows_continuation_goes_on() -> None:
    """A backslash before a Windows line end continues the command, as it does before any other."""
    assert last("run --a \\\r\n  --b\r\n") == ["run", "--a", "--b"]


@pytest.mark.parametrize(
    ("left", "sure"),
    [
        ("test -d /a", False),
        ("grep -q x /a", False),
        ("lspci | grep -q NVLink", False),
        ("command -v ray > /dev/null", False),
        ("cd /a", True),
        ("mkdir -p /a", True),
    ],
)
def test_what_follows_a_question_may_not_run(left: str, sure: bool) -> None:
    """Behind `&&`, what depends on the answer of a command is not sure; behind a step it is."""
    assert [one.sure for one in walk(f"{left} && run --x").commands if known(one.words[0]) == "run"] == [sure]
