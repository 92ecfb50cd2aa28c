"""Lines of a batch script that make the shell ready for the training. Pure."""

from __future__ import annotations

import re
import shlex

from hpc_train.config.secrets import looks_secret
from hpc_train.plan.launcher_options import VARIABLES
from hpc_train.plan.translate_array import BY_HAND, TASK, list_of
from hpc_train.plan.translate_folders import LEFT_OUT
from hpc_train.plan.translate_places import JOB, in_config, is_place, without_job
from hpc_train.plan.translation import Translation

_ASSIGNED = re.compile(
    r"(export\s+)?(?:(?:declare|typeset)\s+-a\s+|readonly\s+)?([A-Za-z_]\w*)=(.*)\Z", re.DOTALL
)
_ARITHMETIC = re.compile(r"\$\{\w+\[[^\]{}]+(?:\{\w+\}[^\]{}]*)?\]\}|\$\(\([^()]+\)\)")
_WHOLE = re.compile(r"(\"?)\$?\(.*\)\1\Z|`.*`\Z", re.DOTALL)  # $(...), an array
_USED = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?[-=][^{}]*)?\})")
_ELEMENT = re.compile(r"\$\{(\w+)\[")
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?[-=]([^{}$`]+)\}")
_OF_ARGUMENT = re.compile(r"\$\{([1-9]\d*):?-([\w./@%+=:,-]+)\}")
# Names that a job finds set, whatever its script says.
_SET_OUTSIDE = re.compile(r"(SLURM|CUDA|NCCL|SCRATCH|WORK|TMP)|(HOME|USER|LOGNAME|PWD|HOSTNAME)\Z")
ARGUMENT = re.compile(r"\$\{?[\d@*]")  # of the batch script
_OF_THE_SHELL = ("eval", "ulimit", "umask", "unset", "shopt", "spack", "alias", "micromamba")
_ONLY_TELL = (
    *("echo", "printf", "date", "hostname", "pwd", "printenv", "which", "nvidia-smi", "free"),
    *("scontrol", "squeue", "sinfo", "sleep", "wait", "exit", "set", "trap", "true", "lscpu"),
)
# What makes files ready for the training, and may be done on each node as on the first.
_MAKES_READY = ("mkdir", "cp", "rsync", "tar", "unzip", "ln", "touch", "chmod")
_BEHIND = (
    "stands behind the training, where a run has nothing: type it once the run is complete, or"
    " `sbatch --dependency=afterok:JOB` does"
)
_OF_ANY_PLACE = (
    *_MAKES_READY,
    "ulimit",
    "umask",
    "export OMP_",
    "export NCCL_",
    "export HF_",
    "export WANDB_",
)
_NOT_EXPORTED = "left out: it is not exported, so the training does not see it"
_NOT_COMPUTED = "left out: no shell computes an argument of the script"
_OF_A_JOB = "a run has several jobs, each with another number, and one folder for all"
_IN_PLACE = "left out: its value stands where it is used"
_OF_A_TASK = (
    "left out: the runs of a sweep share their environment; its value stands where it is used"
)
TASK_ID = "SLURM_ARRAY_TASK_ID"
ONE_A_TASK = (
    "the runs of a sweep share their environment, and number their tasks from 0: give the value as"
    " an argument of the script, {KEY} with --sweep KEY=VALUES"
)
_ITS_DEFAULT = "its default, as nothing above sets it"
_IF_SAVED = re.compile(r"if .*-[fes]\s+\"?([\w./*-]*(?:ckpt|checkpoint|\.pth?\b)[\w./*-]*)")
_PARTS = ("then", "else", "fi", "do", "done", "esac")
_BLOCKS = ("if", "then", "else", "elif", "fi", "for", "while", "do", "done", "case", "esac")


class ShellLines:
    """Takes the lines that source, load, activate or assign; the order of them is kept.

    `env.setup` comes behind modules, conda and venv, so that what follows a line of it stands
    there as well.
    """

    def __init__(self, made: Translation) -> None:
        self.made = made
        self._values: dict[str, str] = {}  # plain ones of the script's own variables
        self._used: set[str] = set()  # names of such
        self._told: dict[str, list[str]] = {}  # name -> its lines
        self._all_into_setup = False

    def filled_in(self, line: str) -> str:
        """The line with the values that the script gave its variables before."""
        if "'" in line:
            return line
        if line.split()[0] not in _ONLY_TELL:
            line = _OF_ARGUMENT.sub(self._of_argument, line)
            self._used |= {it[1] or it[2] for it in _USED.finditer(line)}
            self._used |= set(_ELEMENT.findall(line))
        # Without its blanks it is one word also where quotes are none.
        return _ARITHMETIC.sub(lambda it: "".join(it[0].split()), _USED.sub(self._value, line))

    def settle(self) -> None:
        """Say of a variable whose value was written where it is used that it was."""
        array = self.made.array
        for name in self._used & self._told.keys():
            for line in self._told[name]:
                of_a_task = name in array.lists or TASK_ID in line
                is_lost = of_a_task and not (array.options or self.made.loops.options)
                self.made.say_instead(line, _NOT_EXPORTED, _NOT_COMPUTED if is_lost else _IN_PLACE)
                if (line, ONE_A_TASK) in self.made.refused:
                    self.made.refused.remove((line, ONE_A_TASK))
                    self.made.say(line, _OF_A_TASK)

    def _value(self, used: re.Match[str]) -> str:
        value = self._values.get(used[1] or used[2])
        has_default = ":" in used[0]
        return used[0] if value is None or (has_default and not value) else value

    def _of_argument(self, used: re.Match[str]) -> str:
        """What `${2:-4}` is in a batch script that is given nothing."""
        told = (used[0], f"{used[2]}: its default, as an argument of the batch script")
        if told not in self.made.said:
            self.made.say(*told)
        return used[2]

    def take(self, line: str) -> bool:
        """Whether it was one; False leaves it to the reader of commands."""
        words = line.split()
        program, rest = words[0], words[1:]
        found = _ASSIGNED.match(line)
        if found and _is_one_value(found[3]):
            return self._assigned(line, bool(found[1]), found[2], found[3])
        if program in ("source", ".") and rest:
            self._source(line, rest)
        elif program in ("conda", "mamba") and rest[:1] in (["activate"], ["deactivate"]):
            self._conda(line, program, rest)
        elif program in ("module", "ml") and rest:
            self._module(line, rest if program == "module" else ["load", *rest])
        elif program in _OF_THE_SHELL or self._makes_ready(program):
            self._setup(line)
        elif program == ":" and (default := self._defaults("".join(rest))):
            self.made.say(line, default)
        elif program in _BLOCKS:
            self._block(line)
        elif program in _ONLY_TELL:
            self.made.say(line, "left out: the training does not need it")
        elif program in ("cd", "pushd", "popd"):
            self.made.folders.take(line)
            self.made.say(line, LEFT_OUT)
        else:
            return False
        return True

    def _block(self, line: str) -> None:
        """A loop, of trainings as a rule, or a condition, of a checkpoint for one."""
        if self.made.loops.take(line, self.made.array.lists):
            return
        if line in _PARTS:
            self.made.say(line, "left out: of the line above, which is told")
        elif found := _IF_SAVED.search(line):
            form = f'{{when: {found[1]}, args: [OPTION, "{{newest}}"]}}'
            given = f"script.resume: {form} gives a script its arguments where that is there"
            self.made.refuse(
                line, f"is the shell's: {given}; Lightning's Trainer goes on by itself"
            )
        else:
            self.made.refuse(line, "is the shell's: write what it does into env.setup")

    def _makes_ready(self, program: str) -> bool:
        """Whether it makes files ready where the job starts, or comes behind the training."""
        is_here = bool(self.made.script) or self.made.folders.now == ""
        return program in _MAKES_READY and is_here

    def _setup(self, line: str) -> None:
        if self.made.script and line.split()[0] in _MAKES_READY:
            self.made.refuse(line, _BEHIND)
            return
        if ARGUMENT.search(line):
            self.made.refuse(line, "an argument of the batch script: write its value")
            return
        if TASK_ID in line:
            self.made.refuse(line, ONE_A_TASK)
            return
        for one, other in _USED.findall(line):
            if needed := self.made.computed.pop(one or other, ""):
                self.made.said.remove((needed, _NOT_EXPORTED))
                self._setup(needed)
        if not line.startswith(_OF_ANY_PLACE):
            self._all_into_setup = True
        self.made.config.setdefault("env.setup", []).append(line)
        self.made.say(line, "a line of env.setup")

    def _assigned(self, line: str, is_exported: bool, name: str, value: str) -> bool:
        if JOB.search(value) and not is_exported:
            value = without_job(value, self.made.called)
            self.made.say(line, f"{name}={value}: {_OF_A_JOB}")
            line = f"{name}={value}"
        rule = VARIABLES.get(name)
        bare = TASK.sub("", value)
        self.made.places.pop(name, None)
        if is_place(value.strip('"')):
            self.made.places[name] = value.strip('"')
        is_plain = not re.search(r"[$`]", bare) and not value.startswith("(")
        is_secret = looks_secret(name)
        self._values.pop(name, None)
        self.made.computed.pop(name, None)
        if is_plain and not is_secret:
            self._values[name] = " ".join(shlex.split(value))
        if (listed := list_of(value)) is not None:
            self.made.array.lists[name] = listed
        if (is_plain and is_exported and bare == value) or is_secret:
            return False
        default = self._defaults(value, name)
        if not is_exported:
            is_known = is_plain or listed is not None or default
            if is_known:
                self._told.setdefault(name, []).append(line)
            else:
                self.made.computed[name] = line
            self.made.say(line, default or _NOT_EXPORTED)
        elif rule and rule.does == "drop":
            self.made.say(line, f"left out: {rule.why}")
        elif is_plain:
            self._told.setdefault(name, []).append(line)
            self.made.refuse(line, ONE_A_TASK)
        else:
            self._setup(line)
        return True

    def _defaults(self, value: str, name: str = "") -> str:
        """Take `${NAME:-5}` for 5, and say so; empty where it is nothing of the kind."""
        found = _DEFAULT.fullmatch(value.strip().strip('"'))
        if not found or not default_of(found, self.made):
            return ""
        name = name or found[1]
        self._values[name] = default_of(found, self.made)
        return f"{name} is {self._values[name]}: {_ITS_DEFAULT}"

    def _source(self, line: str, rest: list[str]) -> None:
        file = rest[0].strip("\"'").replace("${HOME}", "~").replace("$HOME", "~")
        if "/" in file or file.endswith((".sh", ".bash")):
            self.made.sourced.setdefault(file, self.made.folders.now)
        if file == "activate" and len(rest) == 2:  # as conda was activated before 4.6
            self._conda(line, "conda", rest)
        elif (
            file.endswith("/bin/activate")
            and len(rest) == 1
            and "$" not in file
            and not self._all_into_setup
        ):
            self.made.key(line, "env.venv", file.removesuffix("/bin/activate"))
        else:
            self._setup(line)

    def _conda(self, line: str, program: str, rest: list[str]) -> None:
        if rest[0] == "deactivate":
            self.made.say(line, "left out: a job begins without an environment")
        elif program != "conda" or len(rest) != 2 or "$" in rest[1] or self._all_into_setup:
            self._setup(line)
        else:
            self.made.key(line, "env.conda", rest[1].strip("\"'"))

    def _module(self, line: str, rest: list[str]) -> None:
        if rest[0] in ("use", "swap", "switch", "unload"):
            self._setup(line)
        elif rest[0] not in ("load", "add"):
            self.made.say(line, "left out: env.modules loads what it names")
        elif self._all_into_setup or "$" in line:
            self._setup(line)
        else:
            named = [*self.made.config.get("env.modules", []), *rest[1:]]
            self.made.config["env.modules"] = named
            self.made.say("module load", f"env.modules: [{', '.join(rest[1:])}]")


def _is_one_value(text: str) -> bool:
    """Whether nothing stands behind it that would be run with it."""
    if _WHOLE.match(text.strip()):
        return True
    try:
        return len(shlex.split(text)) <= 1 and not re.search(r"[;&|]", text)
    except ValueError:
        return False


def default_of(found: re.Match[str], made: Translation) -> str:
    """What `${NAME:-5}` is where no line sets NAME; empty where the job's environment may."""
    is_unsure = _SET_OUTSIDE.match(found[1]) or found[1] in made.computed
    return "" if is_unsure or looks_secret(found[1]) else found[2].strip("\"'")


def settled_argument(word: str, made: Translation) -> str:
    """An argument of the script with its defaults; what no shell fills in there is told."""
    filled = _DEFAULT.sub(lambda it: default_of(it, made) or it[0], word)
    if filled != word:
        made.say(word, f"{filled}: {_ITS_DEFAULT}")
    of_any_job = without_job(filled, made.called)
    placed = in_config(of_any_job, made.places)
    if placed != filled:
        made.say(filled, f"{placed}{f': {_OF_A_JOB}' if of_any_job != filled else ''}")
        for name in {it[1] or it[2] for it in _USED.finditer(filled)} & made.computed.keys():
            made.say_instead(made.computed[name], _NOT_EXPORTED, _IN_PLACE)
        if "$" not in placed or "oc.env:" in placed:
            return placed
        filled = placed
    if ARGUMENT.search(filled):
        made.refuse(filled, "an argument of the batch script: write its value")
    elif "$" in filled:
        names = {it[1] or it[2] for it in _USED.finditer(filled)}
        lines = [made.computed[name] for name in sorted(names & made.computed.keys())]
        for line in lines:
            made.say_instead(line, _NOT_EXPORTED, _NOT_COMPUTED)
        of_a_task = any(TASK_ID in it for it in (filled, *lines))
        by_hand = BY_HAND if of_a_task else "write the value that it stands for"
        made.say(filled, f"no shell fills it in: {by_hand}")
    return filled
