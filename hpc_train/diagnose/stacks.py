"""Who waits for whom, by the stacks that the ranks of a hang have left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from hpc_train.diagnose.rules import Evidence
from hpc_train.runs.layout import AttemptDir

_MAX_BYTES = 1 << 20
_MAX_RANKS = 4096
_FILE = re.compile(r"rank-(\d{1,6})\.txt\Z")
_THREAD = re.compile(r"^(?:Current thread|Thread) ")
# faulthandler's words (Python/traceback.c), the innermost frame first.
_FRAME = re.compile(r'^ {1,4}File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$')
# Where a rank stands that waits for the others: a collective, or backward, in which DDP's are.
_WAITS = re.compile(
    r"/torch/distributed/|/torch/autograd/graph\.py|/torch/cuda/|/hpc_train/training/resume/agreement"
)
# Inside of a batch of Lightning's training: its forward and backward pass.
_IN_BATCH = re.compile(r"/loops/optimization/(?:automatic|manual)\.py\Z")
# Behind the last batch of an epoch: Lightning's hooks of its end and of the fit's, and our question
# to all ranks before a validation that follows a step.
_PAST_EPOCH = re.compile(
    r"/(?:fit_loop|private/lightning_loops)\.py (?:on_advance_end|on_run_end)\Z"
)
_BEFORE_VALIDATION = re.compile(r"/resume/step_controller\.py evaluation_begins\Z")
_IN_FIT = re.compile(r"/private/lightning_loops\.py on_advance_end\Z")
_OURS, _EXAMPLES = "/hpc_train/", "/hpc_train/examples/"
_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python3", "<frozen", _OURS)

_WAITING = ", waiting for the others"
APART = "the ranks wait for each other at different lines"
TOGETHER = (
    "what all ranks have to call together (self.log with sync_dist=True, all_gather, a barrier,"
    " trainer.save_checkpoint)"
    " must not stand under an `if` that is true on some ranks alone"
)


class Stage(Enum):
    """How far a rank was in Lightning's loop over an epoch, where its frames tell."""

    UNTOLD = "untold"
    BATCH = "batch"  # in forward or backward
    VALIDATION = "validation"  # asks the others before a validation
    PAST = "past"  # behind the epoch's last batch


@dataclass(frozen=True)
class Stack:
    """Where the main thread of a rank was.

    Attributes:
        waits: Whether it was in a collective, or in what waits for one.
        stage: How far it was in the epoch.
        place: The innermost frame of the user's own, else the innermost, with its line in the file.
    """

    rank: int
    waits: bool
    place: Evidence
    stage: Stage = Stage.UNTOLD


def read_stacks(attempt: AttemptDir) -> list[Stack]:
    """The stacks of all ranks that left some, by rank; unreadable ones are passed over."""
    found = []
    try:
        files = sorted(attempt.stacks.glob("rank-*.txt"))[:_MAX_RANKS]
    except OSError:
        files = []
    for path in files:
        name = _FILE.search(path.name)
        try:
            with path.open("rb") as stream:
                text = stream.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        stack = name and _stack(int(name[1]), str(path), text.splitlines())
        if stack:
            found.append(stack)
    if len(found) == 1:  # nobody to wait for
        return [replace(found[0], place=_alone(found[0].place))]
    return sorted(found, key=lambda stack: stack.rank)


def _alone(place: Evidence) -> Evidence:
    return replace(place, text=place.text.replace(_WAITING, ""))


def _stack(rank: int, file: str, lines: Sequence[str]) -> Stack | None:
    """Of the thread that is told last, which is the main one."""
    begins = [number for number, line in enumerate(lines) if _THREAD.match(line)]
    frames = [
        (number, found)
        for number, line in enumerate(lines[begins[-1] :], begins[-1] + 1)
        if (found := _FRAME.match(line))
    ] if begins else []  # fmt: skip
    if not frames:
        return None
    users = [it for it in frames if not is_installed(it[1]["file"])]
    number, frame = (users or frames)[0]
    text = f"rank {rank} was in {frame['name']} ({frame['file']}:{frame['line']})"
    waits = any(_WAITS.search(found["file"]) for _, found in frames[:6])
    text += _WAITING if waits else ""
    stage = _stage([f"{found['file']} {found['name']}" for _, found in frames])
    return Stack(rank, waits, Evidence(file=file, line=number, text=text), stage)


def _stage(frames: Sequence[str]) -> Stage:
    """By frames as `FILE FUNCTION`."""
    if any(_BEFORE_VALIDATION.search(frame) for frame in frames):
        is_in_fit = any(_IN_FIT.search(frame) for frame in frames)  # else the sanity check
        return Stage.VALIDATION if is_in_fit else Stage.UNTOLD
    if any(_IN_BATCH.search(frame.rpartition(" ")[0]) for frame in frames):
        return Stage.BATCH
    # Of our own loops the step's end has the same name; its frames are of the epoch loop.
    is_past = any(_PAST_EPOCH.search(frame) for frame in frames)
    in_epoch = any("/training_epoch_loop.py " in frame for frame in frames)
    return Stage.PAST if is_past and not in_epoch else Stage.UNTOLD


def is_installed(file: str) -> bool:
    """Whether a frame's file is of Python, of a package or of hpc-train, and not the user's own."""
    return any(part in file for part in _INSTALLED)


def is_ours(file: str) -> bool:
    """Whether a frame's file is hpc-train's; its examples are models like a user's."""
    return _OURS in file and _EXAMPLES not in file


def late_by_stacks(stacks: Sequence[Stack]) -> list[Stack]:
    """Those that do not wait, where others do; none where nobody stands out."""
    late = [stack for stack in stacks if not stack.waits]
    return late if 0 < len(late) < len(stacks) else []


def apart_by_stacks(stacks: Sequence[Stack]) -> list[Stack]:
    """One rank of each place, the place of the fewest first, where all wait, and not at one."""
    if not all(stack.waits for stack in stacks):
        return []
    places: dict[str, list[Stack]] = {}
    for stack in stacks:
        places.setdefault(stack.place.text.partition(" was in ")[2], []).append(stack)
    found = sorted(places.values(), key=len)
    return [ranks[0] for ranks in found] if len(found) > 1 else []


def places_apart(stacks: Sequence[Stack]) -> tuple[str, ...]:
    """Which rank waits where, for the history of a run; none where all wait at one place."""
    texts = (stack.place.text.removesuffix(_WAITING) for stack in apart_by_stacks(stacks)[:3])
    return tuple(re.sub(r"\(\S*/(?:site|dist)-packages/", "(", text) for text in texts)


def is_own_place(place: str) -> bool:
    """Whether one of `places_apart` is in the user's own code."""
    file = place.rpartition("(")[2]
    return file.startswith("/") and not is_installed(file)


def line_of_place(place: str) -> str:
    """`net.py:23` of one of `places_apart`: the same in the next attempt, on whichever rank."""
    return place.rpartition("(")[2].rpartition("/")[2].rstrip(")")
