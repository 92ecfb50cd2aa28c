"""Arguments of a script that surely mean another run, or nothing: `/path/to/imagenet`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.schema import Config
from hpc_train.config.scripts.script_arguments import false_texts

# What READMEs write for a place that each reader has elsewhere.
_PLACEHOLDER = re.compile(r"(?:\.{0,2}/)?(?:path/to|your/path)(?:/|\Z)|/PATH/TO(?:/|\Z)")
_RANK = re.compile(r"(?:\A| )--(?:node[-_])?rank[= ]\d+(?= |\Z)")
# By which torch's `init_process_group` is told its address (torch's manual, torch.distributed).
_ADDRESS = re.compile(
    r"(?:\A| )(?:(?P<option>--[\w-]+)[= ])?(?P<url>tcp://(?P<host>[^\s:/]+|\[\S+\]):\d+)"
)
_THIS_NODE = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")
_WORLD_SIZE = re.compile(r"(?:\A| )--world[-_]size[= ]\d+(?= |\Z)")
# Of a Hydra application's Trainer, as lightning-hydra-template has it.
_SHAPE = re.compile(r"\+{0,2}trainer\.(?P<key>devices|num_nodes)=\[?(?P<number>\d+)\]?\Z")


def notes_on_arguments(config: Config, workdir: Path) -> Iterator[str]:
    """A line for each placeholder that is not there, and for a Trainer of another shape."""
    words = [str(it) for it in config.script.args or ()]
    for word, value in placeholders(words):
        if not (workdir / value).exists():
            yield f"script.args: {word} is a placeholder, and is not there: write your own path"
    tree = script_tree(workdir / (config.script.path or ""))
    for line, option, typed in false_texts(tree, words) if tree is not None else ():
        said = f"{typed} gives True: type=bool makes True of every text that is not empty"
        no = f"--no-{option.lstrip('-')}"
        write = f"write action=argparse.BooleanOptionalAction for it there, and type {no}"
        yield f"script.args: {said} ({config.script.path}:{line}): {write}; or type {option}="
    slurm = config.slurm
    is_alone = config.script.launcher == "none" and slurm.nodes == 1  # its process starts others
    if not is_alone and slurm.nodes * slurm.gpus_per_node > 1 and (of_one := rank_of_one(words)):
        yield f"script.args: {of_one[0]} {of_one[1]}"
    if slurm.nodes > 1 and (address := address_of_one(words)):
        yield f"script.args: {address[0]} {address[1]}"
    has = {"devices": slurm.gpus_per_node, "num_nodes": slurm.nodes}
    flags = {"devices": "--gpus", "num_nodes": "--nodes"}
    for word in words:
        found = _SHAPE.match(word)
        if found and "[" not in word and int(found["number"]) not in (0, has[found["key"]]):
            flag = f"{flags[found['key']]} {found['number']}"
            many = "" if has[found["key"]] == 1 else "s"
            each = f"rank{many} a node" if found["key"] == "devices" else f"node{many}"
            yield (
                f"script.args: {word} asks its Trainer for {found['number']}, and this run has"
                f" {has[found['key']]} {each}: submit it with {flag}, or leave {word} out"
            )


def rank_of_one(words: Sequence[str]) -> tuple[str, str] | None:
    """`--rank 0` beside `--world-size 2`, and what is said of it; a rank alone may be LoRA's."""
    line = " ".join(words)
    rank, size = _RANK.search(line), _WORLD_SIZE.search(line)
    if rank is None or size is None:
        return None
    leave = f"leave it and {size[0].strip()} out"
    if address := _ADDRESS.search(line):
        leave += f" and write {_by_environment(address)}, with which"
    else:
        leave += " where"
    said = f"{leave} the script reads RANK and WORLD_SIZE, which are set for each"
    return rank[0].strip(), f"is of one, and all ranks get it: {said}"


def address_of_one(words: Sequence[str]) -> tuple[str, str] | None:
    """`--dist-url tcp://localhost:10001`, and what is said of it on several nodes."""
    address = _ADDRESS.search(" ".join(words))
    if address is None or address["host"] not in _THIS_NODE:
        return None
    write = f"write {_by_environment(address)}, with which MASTER_ADDR and MASTER_PORT are read"
    return address[0].strip(), f"is each node itself, and they would not meet: {write}"


def _by_environment(address: re.Match[str]) -> str:
    return f"{address['option']} env://" if address["option"] else f"env:// for {address['url']}"


def placeholders(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each word that has one, and the path in it: `--data=/path/to/imagenet`."""
    for word in words:
        value = word.rpartition("=")[2] if word.startswith("-") or "=" in word else word
        if _PLACEHOLDER.match(value):
            yield word, value
