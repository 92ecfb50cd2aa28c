"""What a foreign command becomes: a config, the line that submits it, and why. Pure."""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass, field
from typing import Any

from hpc_train.plan.translate_array import TaskArray
from hpc_train.plan.translate_folders import LEFT_OUT, Folders, typed_folder
from hpc_train.plan.translate_loops import ShellLoops
from hpc_train.plan.translate_places import typed

_SHAPE = {"slurm.nodes": "--nodes", "slurm.gpus_per_node": "--gpus"}
_LAUNCHER = "script.launcher"  # which is typed beside a script


@dataclass
class Translation:
    """Filled in by the readers of Trainer arguments and of command lines."""

    config: dict[str, Any] = field(default_factory=dict)  # by dotted key
    script: list[str] = field(default_factory=list)  # the file and its arguments
    devices: str = ""  # GPUs by number, for one machine
    said: list[tuple[str, str]] = field(default_factory=list)  # (word, what became of it)
    refused: list[tuple[str, str]] = field(default_factory=list)  # (word, why, and what to do)
    numbers: dict[str, int] = field(default_factory=dict)  # nodes, ranks, all_ranks, gpus ...
    here: str = ""  # the folder that it is translated in, if that is known
    folders: Folders = field(default_factory=Folders)
    starts_in: str = ""  # where the script is started, as `Folders.now`
    sourced: dict[str, str | None] = field(default_factory=dict)  # file -> where it was sourced
    array: TaskArray = field(default_factory=TaskArray)
    loops: ShellLoops = field(default_factory=ShellLoops)
    cpus_of_task: tuple[str, int] | None = None  # the word and the number of --cpus-per-task
    is_batch: bool = False  # its whole request is there, as #SBATCH lines or options of sbatch
    asks_gpus: bool = False  # some option of Slurm's does
    wrapped: str = ""  # the command of --wrap, until it is read
    others: list[list[str]] = field(default_factory=list)  # scripts behind the first
    stem: str = "run"  # of the first script that the text names
    # The script's own variables that hold a path which the shell that submits can tell.
    places: dict[str, str] = field(default_factory=dict)
    # Names of the script's own variables whose values the shell alone can tell -> their lines.
    computed: dict[str, str] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """The name of the run, as far as it is known."""
        return str(self.config.get("name", self.stem))

    def say(self, word: str, what: str) -> None:
        """Tell what became of a word."""
        self.said.append((word, what))

    def refuse(self, word: str, why: str) -> None:
        """There is no equivalent."""
        self.refused.append((word, why))

    def key(self, word: str, key: str, value: Any, why: str = "") -> None:
        """The word is this key."""
        if self.config.get(key, value) != value:
            self.refuse(word, f"contradicts {key}: {self.config[key]}, said before; leave one out")
            return
        self.config[key] = value
        self.say(word, f"{key}: {value}" + (f" ({why})" if why else ""))

    def say_instead(self, word: str, before: str, what: str) -> None:
        """Tell something else of a word, where that was told of it."""
        self.said = [(word, what) if it == (word, before) else it for it in self.said]

    def number(self, word: str, name: str, text: str) -> None:
        """The word counts something; what is counted twice has to agree."""
        if not text.isdigit() or not int(text):
            self.say(word, "is not known here: write --nodes and --gpus yourself")
            return
        if self.numbers.setdefault(name, int(text)) != int(text):
            self.refuse(word, f"contradicts {self.numbers[name]}, said before; leave one out")

    def cpus(self, word: str, count: int) -> None:
        """CPUs of a task, which may have several ranks; see `settle_shape`."""
        if self.cpus_of_task is None:
            self.cpus_of_task = (word, count)
        elif self.cpus_of_task[1] != count:
            self.refuse(word, f"contradicts {self.cpus_of_task[0]}, said before; leave one out")

    def start(self, words: list[str]) -> None:
        """The script, where the lines before it have gone to.

        What they sourced by a relative path is named as seen from there: the job starts there.
        """
        self.script, self.starts_in = words, self.folders.now or ""
        if said := self.folders.said():
            self.said = [it for it in self.said if it != (self.folders.line, LEFT_OUT)]
            self.say(self.folders.line, said)
        for file, folder in self.sourced.items():
            seen = self.folders.seen_from(file, folder)
            venv = file.removesuffix("/bin/activate")
            if seen == file:
                continue
            if self.config.get("env.venv") == venv:
                self.config["env.venv"] = seen.removesuffix("/bin/activate")
            setup = self.config.get("env.setup", [])
            for at, line in enumerate(setup):
                if [word.strip("\"'") for word in line.split()[1:2]] == [file]:
                    setup[at] = line.replace(file, seen, 1)
            self.say(file, f"{seen}, as seen from where the job starts")
        if setup := self.config.get("env.setup"):
            self.config["env.setup"] = [self.folders.with_submitted(line) for line in setup]

    def settle_array(self) -> None:
        """Say what became of a job array."""
        if why := self.array.why_not():
            self.refuse(self.array.word, why)
        elif self.array.word:
            self.say(self.array.word, " ".join(self.array.options))
            self.devices = ""  # of one machine; a sweep's jobs have those that Slurm gives

    def settle_loops(self) -> None:
        """Say what became of the shell's loops."""
        for line, why in self.loops.left():
            self.refuse(line, why)
        for line, what in self.loops.became():
            self.say(line, what)
        if self.loops.options:
            self.devices = ""

    def settle_others(self) -> None:
        """Say of each script behind the first how it is submitted, with the same config."""
        for words in self.others:
            again = "the same script" if words[0] == self.script[0] else "a second script"
            taken = f"is {again}, and {self.script[0]} is taken: a run is one of them"
            after = "; with --after RUN it begins once the first one's run is complete"
            own = f"this one is {shlex.join(self._line_of(words))}"
            self.refuse(shlex.join(words), f"{taken}; {own}{after}")

    def _line_of(self, script: list[str]) -> list[str]:
        """The words that submit another script than the first; those behind -- are its own."""
        words = ["hpc-train", "submit", *self.shape_options()]
        arguments = ["--", *script[1:]] if script[1:] else []
        if not self.config.keys() - _SHAPE.keys():
            return [*words, script[0], *arguments]
        words += [self._config_from_there(), f"script.path={script[0]}"]
        if "name" in self.config:  # which the first one's run has
            words.append(f"name={posixpath.splitext(posixpath.basename(script[0]))[0]}")
        is_bare = not arguments and len(self.script) > 1  # else it would get the first one's
        return [*words, *(["script.args=[]"] if is_bare else []), *arguments]

    def settle_shape(self) -> None:
        """Nodes and GPUs a node, from what was counted: the ranks before what was asked for."""
        count = self.numbers
        nodes = count.get("nodes", 0)
        a_node = count.get("ranks") or count.get("gpus") or 0
        for name in ("all_ranks", "all_gpus", "tasks"):
            total = count.get(name, 0)
            if a_node or not total:
                continue
            if total % (nodes or 1):
                why = "each node has as many ranks: choose numbers that divide"
                self.refuse(f"{total} on {nodes} nodes", why)
            a_node = total // (nodes or 1)
        a_node = a_node or count.get("tasks_per_node", 0)
        if not a_node and self.devices:
            a_node = len(self.devices.split(","))
        if nodes:
            self.config["slurm.nodes"] = nodes
        if a_node:
            self.config["slurm.gpus_per_node"] = a_node
        self._settle_cpus(a_node, nodes or 1)
        if nodes > 1 and self.devices:
            self.say(f"devices {self.devices}", "on several nodes Slurm chooses the GPUs")
            self.devices = ""

    def settle_gpus(self) -> None:
        """Say that the request has no GPU, where it is all there or counts tasks.

        The GPUs of a tutorial's plain `srun python train.py` are those of a job that is not shown.
        """
        counted = self.numbers.keys() & {"tasks", "tasks_per_node"}
        is_told = self.asks_gpus or self.devices or "trainer.accelerator" in self.config
        if is_told or not self.script or not (self.is_batch or counted):
            return
        ours = "no option asks for one, and hpc-train asks for one a rank"
        self.say("GPUs", f"{ours}; for ranks on CPUs add script.accelerator=cpu to the command")

    def _settle_cpus(self, a_node: int, nodes: int) -> None:
        """CPUs of a task are those of several ranks where one task starts them, as torchrun does.

        Without --ntasks and --ntasks-per-node a node has one task: sbatch(1).
        """
        if self.cpus_of_task is None:
            return
        word, cpus = self.cpus_of_task
        count = self.numbers
        tasks = count.get("tasks_per_node") or count.get("tasks", 0) // nodes or 1
        each = max(1, cpus * tasks // a_node) if a_node > tasks else cpus
        why = f"of {cpus} for {a_node // tasks} ranks" if each != cpus else ""
        self.key(word, "slurm.cpus_per_gpu", each, why)

    def nested(self) -> dict[str, Any]:
        """The config as sections."""
        sections: dict[str, Any] = {}
        flat = dict(self.config)
        if self.script:
            if accelerator := flat.pop("trainer.accelerator", ""):  # the Trainer is the script's
                flat["script.accelerator"] = accelerator
            flat |= {"script.path": self.script[0], "script.args": self.script[1:]}
        for key, value in flat.items():
            *outer, name = key.split(".")
            place = sections
            for part in outer:
                place = place.setdefault(part, {})
            place[name] = value
        return sections

    def submit_line(self) -> str:
        """The command; a script by itself where the config holds nothing but the shape.

        Where the script is started in another folder, the command goes there first.
        """
        words = ["hpc-train", "run" if self.devices else "submit"]
        words += self.shape_options()
        words += ["--devices", self.devices] if self.devices else []
        if self.script and not self.config.keys() - {*_SHAPE, _LAUNCHER}:
            launcher = self.config.get(_LAUNCHER)
            words += [self.script[0], *([f"{_LAUNCHER}={launcher}"] if launcher else [])]
            words += [*self.array.options, *self.loops.options]
            words += ["--", *self.script[1:]] if self.script[1:] else []
        else:
            words += [self._config_from_there(), *self.array.options, *self.loops.options]
        line = typed(words)
        return f"cd {typed_folder(self.starts_in)} && {line}" if self.starts_in else line

    def shape_options(self) -> list[str]:
        """The command's options for the nodes and the GPUs a node."""
        shape = [(flag, self.config.get(key)) for key, flag in _SHAPE.items()]
        return [word for flag, value in shape if value for word in (flag, str(value))]

    def _config_from_there(self) -> str:
        """The config, which is written here, as the folder names it where the script starts."""
        if not self.starts_in:
            return "config.yaml"
        here = self.here or "/submitted"
        if posixpath.isabs(self.starts_in) or self.starts_in[:1] == "~":
            return posixpath.join(here, "config.yaml")
        there = posixpath.normpath(posixpath.join(here, self.starts_in))
        return posixpath.join(posixpath.relpath(here, there), "config.yaml")
