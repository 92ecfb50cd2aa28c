"""A command or a Trainer call from a tutorial, read word by word into a `Translation`. Pure."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping

from hpc_train.config.keys import FIELDS
from hpc_train.config.meant_words.near_files import SCRIPTS
from hpc_train.config.secrets import looks_secret
from hpc_train.config.words import did_you_mean
from hpc_train.errors import UsageError
from hpc_train.plan.launcher_options import (
    ACCELERATE,
    DEEPSPEED,
    PYTHON,
    TORCHRUN,
    VARIABLES,
    OptionRule,
)
from hpc_train.plan.translate_folders import Folders
from hpc_train.plan.translate_mpi import STARTERS, without_mpi
from hpc_train.plan.translate_shell import ONE_A_TASK, TASK_ID, ShellLines, settled_argument
from hpc_train.plan.translate_slurm import read_slurm_options
from hpc_train.plan.translate_trainer import read_trainer, trainer_call
from hpc_train.plan.translate_wrappers import (
    before_the_shells,
    container,
    python_of_venv,
    runner,
    without_streams,
)
from hpc_train.plan.translation import Translation

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)
_SCRIPT = re.compile(r"(?:\A|[\s/])([\w-]+)\.py\b")
_SEPARATORS = frozenset((";", "&&"))
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?\Z")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_LIST = re.compile(r"(?<![\w$])[A-Za-z_]\w*=\([^()$`;&|]*\)")
_COMPUTED = re.compile(r"\$\((?:\([^()`]*\)|[^()`]*)\)")
_COMMENT = re.compile(r"(?<=\s)#.*")
_MODULES = ("torch.distributed.launch", "torch.distributed.run")
_OPENED = re.compile(r"^(?:do|then|else)\s+(?=\S)")  # of a block in one line
_SHORT = {"m": "module", "r": "redirects", "t": "tee"}  # torchrun's


def translate(
    text: str,
    trainer_arguments: Collection[str],
    *,
    keep_nccl: bool = False,
    here: str = "",
    home: str = "",
) -> Translation:
    """Read a command line, several, a batch script, or the arguments of a Trainer.

    Args:
        text: As it stands in the tutorial.
        trainer_arguments: Names of those that the installed Trainer takes.
        keep_nccl: Keep NCCL's variables that the preflight would choose.
        here: The folder that it is submitted from, if that is known, for a `cd` to a whole path.
        home: The user's, in the same way.

    Raises:
        UsageError: there is nothing in it, or its quotes do not close.
    """
    made = Translation(here=here, folders=Folders(here, home))
    if first := _SCRIPT.search(text):
        made.stem = first[1]
    if call := trainer_call(text):
        read_trainer(call, made, trainer_arguments)
    else:
        lines = list(_lines(text))
        if not lines:
            raise UsageError("there is no command", 'hpc-train translate "torchrun ... train.py"')
        shell, reader = ShellLines(made), _CommandReader(made, keep_nccl)
        for late in _late_directives(text):
            made.say(late, "sbatch ignores it, below the first command of the script; taken here")
        for line in lines:
            filled = shell.filled_in(_OPENED.sub("", line))
            for words in [] if shell.take(filled) else _commands(filled):
                reader.command(words)
        shell.settle()
    made.settle_gpus()
    made.settle_shape()
    made.settle_array()
    made.settle_loops()
    made.settle_others()
    return made


def _lines(text: str) -> Iterator[str]:
    """Those that say something; a line of `#SBATCH` is one of sbatch."""
    text = _LIST.sub(lambda it: " ".join(_COMMENT.sub("", it[0]).split()), text)
    for whole in text.replace("\\\n", " ").splitlines():
        line = whole.strip()
        directive = line.removeprefix("#SBATCH")
        if directive != line:
            yield f"sbatch {directive}"
        elif line and not line.startswith("#"):
            yield from (part.strip() for part in _parts(line) if part.strip())


def _parts(line: str) -> list[str]:
    """The commands of a line, without its comment; all of it where that is not sure."""
    if within := re.fullmatch(r"\(\s*(cd\s[^()]*)\)", line):
        line = within[1]
    plain = line
    for whole in (_LIST, _COMPUTED):
        plain = whole.sub(lambda it: "_" * len(it[0]), plain)
    masked = _QUOTED.sub(lambda it: "_" * len(it[0]), plain)
    if any(mark in masked for mark in "'\"") or any(mark in plain for mark in "(`"):
        return [line]
    end = found.start() if (found := re.search(r"\s#", masked)) else len(line)
    cuts = [(0, 0), *(it.span() for it in re.finditer(r"&&|;", masked[:end])), (end, end)]
    return [line[one[1] : other[0]] for one, other in itertools.pairwise(cuts)]


def _late_directives(text: str) -> list[str]:
    """Lines of `#SBATCH` that sbatch no longer reads: sbatch(1), DESCRIPTION."""
    lines = [line.strip() for line in text.splitlines()]
    first = next((at for at, line in enumerate(lines) if line and line[0] != "#"), len(lines))
    return [line for line in lines[first:] if line.startswith("#SBATCH")]


def _commands(line: str) -> list[list[str]]:
    """The words of each command."""
    commands: list[list[str]] = [[]]
    lexer = shlex.shlex(without_streams(line), posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise UsageError(f"the quotes do not close: {error}", "quote the whole once") from None
    comment = words.index("#") if "#" in words else len(words)
    for word in words[:comment]:
        if word in _SEPARATORS:
            commands.append([])
        else:
            commands[-1].append(word)
    return [words for words in commands if words]


def _why_not(program: str) -> str:
    """Why a command that is not known starts no training here."""
    if program.endswith(SCRIPTS):
        return f"its lines are not read: hpc-train translate {shlex.quote(program)}"
    if program.startswith("Trainer("):
        return "its bracket is not closed, or the quotes are missing"
    if program == "horovodrun":
        return "hpc-train starts the ranks, without Horovod: use torch.distributed"
    return "starts no training that is known: put it into env.setup"


class _CommandReader:
    """Takes words from the front of a command until its script is reached."""

    def __init__(self, made: Translation, keep_nccl: bool) -> None:
        self.made = made
        self.keep_nccl = keep_nccl
        self.programs: Mapping[str, Callable[[list[str]], None]] = {
            "torchrun": lambda words: self._launcher(words, TORCHRUN),
            "accelerate": lambda words: self._launcher(words[1:], ACCELERATE),
            "deepspeed": lambda words: self._launcher(words, DEEPSPEED),
            "srun": self._slurm,
            **dict.fromkeys(("salloc", "sbatch"), self._batch),
            **dict.fromkeys(("export", "env", "nohup", "time", "exec"), self.command),
            "conda": self._conda_run,
            **dict.fromkeys(("bash", "sh"), self._shell),
        }

    def command(self, words: list[str]) -> None:
        """Variables in front, then a program."""
        words = before_the_shells(words, self.made)
        while words and (found := _ASSIGNMENT.match(words[0])):
            self._variable(*found.groups())
            words = words[1:]
        if not words:
            return
        program, rest = words[0].rpartition("/")[2], words[1:]
        within = runner(program, rest, self.made) or container(program, rest, self.made)
        if within:
            self.command(within)
        elif program in STARTERS:
            self.command(without_mpi(program, rest, self.made, self._variable))
        elif reader := self.programs.get(program):
            reader(rest)
        elif _PYTHON.match(program):
            python_of_venv(words[0], self.made)
            self._python(rest)
        elif program.endswith(".py"):
            self._script(words)
        else:
            name = words[0] if words[0].endswith(SCRIPTS) else program
            self.made.refuse(name, _why_not(name))

    def _variable(self, name: str, value: str) -> None:
        rule = VARIABLES.get(name, OptionRule("variable", name))
        if rule.does == "drop" and self.keep_nccl and name.startswith(("NCCL_", "GLOO_")):
            rule = OptionRule("variable", name)
        if looks_secret(name):
            listed = [*self.made.config.get("env.passthrough", []), name]
            self.made.config["env.passthrough"] = listed
            self.made.say(name, "env.passthrough: set it in the shell that submits")
            return
        if TASK_ID in value and rule.does == "variable":
            self.made.refuse(f"{name}={value}", ONE_A_TASK)
            return
        self._apply(f"{name}={value}", rule, value)

    def _launcher(self, words: list[str], table: Mapping[str, OptionRule]) -> None:
        self._script(self._options(words, table))

    def _options(self, words: list[str], table: Mapping[str, OptionRule]) -> list[str]:
        """Apply the options in front, and return what follows them."""
        while words and words[0].startswith("-") and words[0] != "--":
            typed, has_value, value = words[0].partition("=")
            name = typed.lstrip("-").replace("_", "-")
            rule = table.get(name) or table.get(_SHORT.get(name, ""))
            words = words[1:]
            if rule is None:
                hint = did_you_mean(name, table, prefix="--")
                self.made.refuse(typed, f"is no option that is known. {hint}".strip())
                if words and not has_value and not words[0].startswith("-"):
                    words = words if words[0].endswith(".py") else words[1:]
                continue
            if not (rule.is_switch or has_value):
                value, words = (words[0], words[1:]) if words else ("", [])
            self._apply(f"{typed} {value}".strip(), rule, value)
        return words[words[:1] == ["--"] :]

    def _apply(self, word: str, rule: OptionRule, value: str) -> None:
        made = self.made
        if rule.does == "refuse":
            made.refuse(word, rule.why)
        elif rule.does == "drop":
            made.say(word, f"left out: {rule.why}")
        elif rule.does == "variable":
            made.key(word, f"env.variables.{rule.to}", value)
        elif rule.does == "number" and rule.to == "devices":
            made.devices = value.replace(" ", "")
            made.say(word, "--devices on one machine; on Slurm the job's own are numbered from 0")
        elif rule.does == "number" and "$" in value:
            made.say(
                word, "left out: the shape is that of the #SBATCH lines, or --nodes and --gpus"
            )
        elif rule.does == "number":
            made.number(word, rule.to, value.rpartition(":")[2])  # --nnodes=1:4 is elastic
        elif rule.is_switch:
            made.key(word, rule.to, rule.why)
        else:
            made.key(word, rule.to, int(value) if value.isdigit() else value, rule.why)

    def _python(self, words: list[str]) -> None:
        if "-m" in words[:2]:
            at = words.index("-m")
            module, rest = (words[at + 1 : at + 2] or [""])[0], words[at + 2 :]
            words = words[:at]
            if module in _MODULES:
                self._launcher(rest, TORCHRUN)
            elif module.startswith("accelerate"):
                self._launcher(rest, ACCELERATE)
            else:
                self.made.refuse(f"-m {module}", TORCHRUN["module"].why)
            self._options(words, PYTHON)
        else:
            self._script(self._options(words, PYTHON))

    def _slurm(self, words: list[str]) -> None:
        rest = read_slurm_options(words, self.made)
        if rest and rest[0].endswith(SCRIPTS):
            self.made.refuse(rest[0], _why_not(rest[0]))
        elif rest:
            self.command(rest)

    def _batch(self, words: list[str]) -> None:
        self.made.is_batch = True
        outside = self.made.folders.now
        self._slurm(words)
        if command := self.made.wrapped:
            self.made.wrapped = ""
            self._shell(["-c", command])
            self.made.folders.now = outside

    def _conda_run(self, words: list[str]) -> None:
        """`conda run -n NAME COMMAND`."""
        options = {"-n", "--name", "-p", "--prefix"}
        if words[:1] != ["run"] or not options & set(words[1:]):
            self.made.refuse("conda", "starts no training that is known: put it into env.setup")
            return
        words = [word for word in words[1:] if word not in ("--no-capture-output", "--live-stream")]
        self.made.key(" ".join(words[:2]), "env.conda", "".join(words[1:2]))
        self.command(words[2:])

    def _shell(self, words: list[str]) -> None:
        """`bash -c "COMMAND"`, and one by its file."""
        options = [word for word in words if word.startswith("-")]
        if not options or not options[0].endswith("c"):
            file = (words or ["bash"])[0]
            why = _why_not(file) if words else _why_not("bash")
            self.made.refuse(file, why)
            return
        shell, outside = ShellLines(self.made), self.made.folders.now
        for line in _lines(" ".join(words[words.index(options[0]) + 1 :][:1])):
            for command in [] if shell.take(line) else _commands(line):
                self.command(command)
        self.made.folders.now = outside

    def _script(self, words: list[str]) -> None:
        """What is left is a script and its own arguments, which stay as they are."""
        if not words:
            self.made.refuse("the script", "is not named: give the whole command")
            return
        if self.made.script:
            self.made.others.append(words)
            return
        for at, typed in enumerate(words):
            words[at] = word = self.made.folders.filled_in(typed)
            if word != typed:
                self.made.say(typed, f"{word}, as seen from where the job starts")
        swept = self.made.loops.swept(self.made.array.swept(words))
        for typed, word in zip(words, swept, strict=True):
            if word != typed:
                self.made.say(typed, f"{word}, which the sweep gives its value")
        words = [swept[0], *(settled_argument(word, self.made) for word in swept[1:])]
        self.made.start(words)
        if "script" not in FIELDS:
            why = "its LightningModule and data stand in config.yaml: hpc-train init shows one"
            self.made.say(words[0], why)
