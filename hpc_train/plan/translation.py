"""What a foreign command becomes: a config, the line that submits it, and why. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

_SHAPE = {"slurm.nodes": "--nodes", "slurm.gpus_per_node": "--gpus"}


@dataclass
class Translation:
    """Filled in by the readers of Trainer arguments and of command lines."""

    config: dict[str, Any] = field(default_factory=dict)  # by dotted key
    script: list[str] = field(default_factory=list)  # the file and its arguments
    devices: str = ""  # GPUs by number, for one machine
    said: list[tuple[str, str]] = field(default_factory=list)  # (word, what became of it)
    refused: list[tuple[str, str]] = field(default_factory=list)  # (word, why, and what to do)
    numbers: dict[str, int] = field(default_factory=dict)  # nodes, ranks, all_ranks, gpus ...

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

    def number(self, word: str, name: str, text: str) -> None:
        """The word counts something; what is counted twice has to agree."""
        if not text.isdigit() or not int(text):
            self.say(word, "is not known here: write --nodes and --gpus yourself")
            return
        if self.numbers.setdefault(name, int(text)) != int(text):
            self.refuse(word, f"contradicts {self.numbers[name]}, said before; leave one out")

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
        if nodes > 1 and self.devices:
            self.say(f"devices {self.devices}", "on several nodes Slurm chooses the GPUs")
            self.devices = ""

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
        """The command; a script by itself where the config holds nothing but the shape."""
        words = ["hpc-train", "run" if self.devices else "submit"]
        for key, flag in _SHAPE.items():
            if key in self.config:
                words += [flag, str(self.config[key])]
        words += ["--devices", self.devices] if self.devices else []
        if self.script and not self.config.keys() - _SHAPE.keys():
            words.append(self.script[0])
            words += ["--", *self.script[1:]] if self.script[1:] else []
        else:
            words.append("config.yaml")
        return shlex.join(words)
