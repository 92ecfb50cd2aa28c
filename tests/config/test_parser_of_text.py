"""Arguments that a script's argparse refuses, however the parser is made: told before the queue."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.scripts.script_arguments import declared_options, refused_arguments
from hpc_train.errors import ConfigError

MAKES = "    p = argparse.ArgumentParser()\n"
TAKES = """\
    p.add_argument("data", type=Path, metavar="DIR")
    p.add_argument("--lr", type=float)
"""
PARSES = "    p.parse_args()\n"
PARENT = f"""\
def options():
    p = argparse.ArgumentParser("VICReg", add_help=False)
{TAKES}    return p
"""
HEAD = "import argparse, sys\nfrom pathlib import Path\nARCHS = ['a', 'b']\n"
START = "if __name__ == '__main__':\n"
PLAIN = f"def main():\n{MAKES}{TAKES}{PARSES}{START}    main()\n"
ACTION = """\
class Pair(argparse.Action):
    def __call__(self, *words): pass
"""
OPTIONS = """\
    p.add_argument('--pair', action=Pair, nargs=2)
    p.add_argument('--amp', action=argparse.BooleanOptionalAction)
"""
TRIED = """\
    try:
        main()
    except KeyboardInterrupt:
        pass
"""
GIVEN = f"""\
def add(p):
{TAKES}def get():
    q = argparse.ArgumentParser()
    add(q)
    q.set_defaults(lr=2)
    return q.parse_args()
"""
GROUP = f"""\
top = argparse.ArgumentParser()
def main():
    p = top.add_argument_group('x')
{TAKES}    top.parse_args()
"""
MAYBE = """\
    if Path('there').exists():
        p.add_argument('--more', required=True)
"""
# What public projects write; each takes DIR and --lr.
FORMS = {
    "plain": f"{START}{MAKES}{TAKES}{PARSES}",
    "parents": f"{PARENT}{START}{MAKES}{PARSES}".replace("r()", "r('x', parents=[options()])"),
    "returned": f"{PARENT}{START}    args = options()\n    args = args.parse_args()\n",
    "chained": f"{PARENT}{START}    print(vars(options().parse_args()))\n",
    "given": f"{GIVEN}{START}    print(get())\n",
    "group": f"{GROUP}main()\n",
    "none": PLAIN.replace("main():", "main(argv=None):", 1).replace("args()", "args(argv)"),
    "sliced": PLAIN.replace("args()", "args(args=sys.argv[1:])"),
    "tried": PLAIN.replace("    main()\n", TRIED),
    "ended": PLAIN.replace("    main()\n", "    sys.exit(main())\n"),
    "maybe": PLAIN.replace(PARSES, MAYBE + PARSES),
    "action": ACTION + PLAIN.replace(PARSES, OPTIONS + PARSES),
    "late": PLAIN.replace(PARSES, f"{PARSES}    p.add_argument('--foo')\n"),
    "inner": PLAIN.replace("main():", "main():\n    from argparse import ArgumentParser").replace(
        "argparse.A", "A"
    ),
}


def ends_badly(text: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(sys, "argv", ["train.py", *words])
    try:
        exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return end.code == 2
    return False


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x"], ""),
        (["x", "--lr", "0.1"], ""),
        (["x", "--foo", "3"], "unrecognized arguments: --foo 3"),
        (["--lr", "0.1"], "the following arguments are required: DIR"),
        ([], "the following arguments are required: DIR"),
        (["x", "--lr", "high"], "argument --lr: invalid float value: 'high'"),
    ],
)
def test_it_says_what_the_script_would(
    monkeypatch: pytest.MonkeyPatch, form: str, words: list[str], said: str
) -> None:
    text = HEAD + FORMS[form]
    told = refused_arguments(ast.parse(text), words)[0]
    assert told == said
    assert ends_badly(text, words, monkeypatch) is bool(said)


@pytest.mark.parametrize(
    ("choices", "is_told"),
    [
        ("ARCHS", True),
        ("sorted(ARCHS)", True),
        ("list(ARCHS)", True),
        ("['a', 'b']", True),
        ("{'a': print, 'b': len}", True),
        ("{'a': print, 'b': len}.keys()", True),
        ("[it for it in ARCHS]", False),
        ("dir()", False),
        ("OTHERS", False),  # it is added to
        ("NUMBERS", False),
    ],
)
def test_choices_are_those_of_a_constant(
    monkeypatch: pytest.MonkeyPatch, choices: str, is_told: bool
) -> None:
    more = "OTHERS = ['a']\nOTHERS.append('c')\nNUMBERS = range(3)\nc = d = 1\n"
    text = (
        f"{HEAD}{more}p = argparse.ArgumentParser()\n"
        f"p.add_argument('--arch', choices={choices})\np.parse_args()\n"
    )
    said = refused_arguments(ast.parse(text), ["--arch", "z"])[0]
    assert ("invalid choice: 'z'" in said) is is_told
    assert not is_told or ends_badly(text, ["--arch", "z"], monkeypatch)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p.parse_args()", "Trainer.add_argparse_args(p)\n    p.parse_args()"),
        ("p.parse_args()", "p = Trainer.add_argparse_args(p.add_argument_group('x'))"),
        ("p.parse_args()", "for it in range(3): p.add_argument(f'--{it}')\n    p.parse_args()"),
        ("p.parse_args()", "p.parse_known_args()"),
        ("p.parse_args()", "p.parse_args([])"),
        ("p.parse_args()", "p.parse_args(['x'])"),
        ("p.parse_args()", "if x: p.parse_args()"),
        ("p.parse_args()", "x and p.parse_args()"),
        ("p.parse_args()", "if x: return\n    p.parse_args()"),
        ("p.parse_args()", "if x: sys.exit(0)\n    p.parse_args()"),
        ("p.parse_args()", "sys.argv.append('x')\n    p.parse_args()"),
        ("p.parse_args()", "sys.argv = ['x']\n    p.parse_args()"),
        ("p.parse_args()", "argv = sys.argv\n    p.parse_args()"),
        ("p.parse_args()", "p._actions.clear()\n    p.parse_args()"),
        ("p.parse_args()", "self.p = p\n    p.parse_args()"),
        ("p.parse_args()", "all_of = [p]\n    p.parse_args()"),
        ("p.parse_args()", "p.add_argument('--n', nargs=N)\n    p.parse_args()"),
        ("p.parse_args()", "p.add_argument(*NAMES)\n    p.parse_args()"),
        ("p.parse_args()", "p.add_argument('--n', **KINDS)\n    p.parse_args()"),
        ("p.parse_args()", "s = p.add_subparsers()\n    p.parse_args()"),
        ("p.parse_args()", "def more(): p.add_argument('--n')\n    more()\n    p.parse_args()"),
        ("p.parse_args()", "try: p.parse_args()\n    except SystemExit: pass"),
        ("p.parse_args()", "try: p.parse_args()\n    except: pass"),
        ("ArgumentParser()", "ArgumentParser(fromfile_prefix_chars='@')"),
        ("ArgumentParser()", "ArgumentParser(parents=[other()])"),
        ("argparse.ArgumentParser()", "jsonargparse.ArgumentParser()"),
        ("argparse.ArgumentParser()", "Own()"),
        ("import argparse, sys", "import jsonargparse as argparse, sys"),
        ("    main()\n", "    run(main)\n"),
        ("def main", "@app.command\ndef main"),
    ],
)
def test_a_parser_that_may_take_more_refuses_nothing(old: str, new: str) -> None:
    text = (HEAD + PLAIN).replace(old, new)
    assert text != HEAD + PLAIN
    assert refused_arguments(ast.parse(HEAD + PLAIN), ["--foo"])[0]
    assert refused_arguments(ast.parse(text), ["--foo"]) == ("", "")


def test_a_parser_that_a_function_nobody_calls_changes_is_left_alone() -> None:
    text = f"{HEAD}p = argparse.ArgumentParser()\nMORE\np.parse_args()\n"
    more = "class Net:\n    def add(self): p.add_argument('--foo')\nNet().add()"
    assert refused_arguments(ast.parse(text.replace("MORE", "")), ["--foo"])[0]
    assert not refused_arguments(ast.parse(text.replace("MORE", more)), ["--foo"])[0]


def test_an_option_that_may_be_there_is_one_of_those_meant() -> None:
    text = HEAD + FORMS["maybe"]
    assert declared_options(ast.parse(text)) == ["--lr", "--more"]
    assert refused_arguments(ast.parse(text), ["x", "--more", "1"]) == ("", "")


def test_an_empty_word_is_told_as_well() -> None:
    text = f"{HEAD}p = argparse.ArgumentParser()\np.parse_args()\n"
    assert refused_arguments(ast.parse(text), ["", " "])[0] == "unrecognized arguments:   "


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "4", "DIR"], "--nodes is hpc-train's: write it in front of --"),
        (["DIR", "--learn", "3"], "train.py refuses: unrecognized arguments: --learn 3"),
        ([], "the following arguments are required: DIR -> add behind --: DIR"),
    ],
)
def test_a_submission_is_refused_with_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(HEAD + FORMS["parents"])
    with pytest.raises(ConfigError) as error:
        api.load("train.py", arguments=words)
    assert said in f"{error.value.message} -> {error.value.hint}"
