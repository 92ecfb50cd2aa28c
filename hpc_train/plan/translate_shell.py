"""Lines of a batch script that make the shell ready for the training. Pure."""

from __future__ import annotations

import re
import shlex

from hpc_train.config.secrets import looks_secret
from hpc_train.plan.launcher_options import VARIABLES
from hpc_train.plan.translate_folders import LEFT_OUT
from hpc_train.plan.translation import Translation

_ASSIGNED = re.compile(r"(export\s+)?([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)
_WHOLE = re.compile(r"(\"?)\$?\(.*\)\1\Z|`.*`\Z", re.DOTALL)  # $(...), an array
_USED = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
ARGUMENT = re.compile(r"\$\{?[\d@*]")  # of the batch script
_OF_THE_SHELL = ("eval", "ulimit", "umask", "unset", "shopt", "spack", "alias", "micromamba")
_ONLY_TELL = (
    *("echo", "printf", "date", "hostname", "pwd", "printenv", "which", "nvidia-smi", "free"),
    *("scontrol", "squeue", "sinfo", "sleep", "wait", "exit", "set", "trap", "true", "lscpu"),
)
_OF_ANY_PLACE = ("ulimit", "umask", "export OMP_", "export NCCL_", "export HF_", "export WANDB_")
_NOT_EXPORTED = "left out: it is not exported, so the training does not see it"
_BLOCKS = ("if", "then", "else", "elif", "fi", "for", "while", "do", "done", "case", "esac")


class ShellLines:
    """Takes the lines that source, load, activate or assign; the order of them is kept.

    `env.setup` comes behind modules, conda and venv, so that what follows a line of it stands
    there as well.
    """

    def __init__(self, made: Translation) -> None:
        self.made = made
        self._values: dict[str, str] = {}  # plain ones of the script's own variables
        self._computed: dict[str, str] = {}  # name -> its line; taken where a later line needs it
        self._all_into_setup = False

    def filled_in(self, line: str) -> str:
        """The line with the values that the script gave its variables before."""
        if "'" in line:
            return line
        return _USED.sub(lambda m: self._values.get(m[1] or m[2], m[0]), line)

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
        elif program in _OF_THE_SHELL:
            self._setup(line)
        elif program in _BLOCKS:
            self.made.refuse(line, "is the shell's: write what it does into env.setup")
        elif program in _ONLY_TELL:
            self.made.say(line, "left out: the training does not need it")
        elif program in ("cd", "pushd", "popd"):
            self.made.folders.take(line)
            self.made.say(line, LEFT_OUT)
        else:
            return False
        return True

    def _setup(self, line: str) -> None:
        if ARGUMENT.search(line):
            self.made.refuse(line, "an argument of the batch script: write its value")
            return
        for one, other in _USED.findall(line):
            if needed := self._computed.pop(one or other, ""):
                self.made.said.remove((needed, _NOT_EXPORTED))
                self._setup(needed)
        if not line.startswith(_OF_ANY_PLACE):
            self._all_into_setup = True
        self.made.config.setdefault("env.setup", []).append(line)
        self.made.say(line, "a line of env.setup")

    def _assigned(self, line: str, is_exported: bool, name: str, value: str) -> bool:
        rule = VARIABLES.get(name)
        is_plain = "$" not in value and "`" not in value and not value.startswith("(")
        if is_plain and not looks_secret(name):
            self._values[name] = " ".join(shlex.split(value))
        if (is_plain and is_exported) or looks_secret(name):
            return False
        if not is_exported:
            if not is_plain:
                self._computed[name] = line
            self.made.say(line, _NOT_EXPORTED)
        elif rule and rule.does == "drop":
            self.made.say(line, f"left out: {rule.why}")
        else:
            self._setup(line)
        return True

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
