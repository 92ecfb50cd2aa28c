"""What to do about a collective that did not end, by what the log shows of the ranks.

Sources of the lines before it: accelerate's accelerator.py and fsdp_utils.py, transformers'
trainer.py, datasets' builder.py and arrow_dataset.py.
"""

from __future__ import annotations

import re

_SAVES = re.compile(
    r"(?i)\bsaving (?:[\w.]{1,40} ){0,3}(?:model|optimizer|checkpoint|state|weights)\b"
)
_PREPARES = re.compile(
    r"Generating \w{1,60} split: |\bexamples/s\b"
    r"|\b(?:Map|Filter|Tokenizing|Running tokenizer|Grouping texts)\b[^:]{0,80}: {1,3}\d{1,3}%"
)
_RECORDER = "the dumps of torch's flight recorder (TORCH_NCCL_TRACE_BUFFER_SIZE=2000) given to"
_APART = (
    "what do the programs of these ranks do differently there? A branch that not all take, saving"
    " or validation on some ranks alone, batches that end earlier on one rank; py-spy dump of a"
    " rank of each kind{}, shows where"
)
_HUNG = "did a rank not come? Its own log, or py-spy dump{}"
_CAME_NOT = "why did they not come? Their own logs, or py-spy dump{}"
_WIRE = (
    ". Do all wait in it? Then perhaps data does not move: all_reduce_perf on these GPUs, with"
    " NCCL_P2P_DISABLE=1 and without"
)
_OF_SAVING = (
    "the log tells of saving just before: with FSDP or ZeRO all ranks must take part in it, so that"
    " no is_main_process or `rank == 0` may stand around it. Else: "
)
_OF_DATA = (
    "the log tells of data that was still being prepared: a rank that does so keeps the others"
    " waiting. Prepare it in a job of its own, or before init_process_group, or set a timeout there"
    " that is longer than that takes. Else: "
)


def fix_of(before: str, *, is_apart: bool, late: str = "", has_recorder: bool = True) -> str:
    """Return what to do.

    A longer timeout is advised only where the log shows what was slow: as a rule a rank has ended
    or hangs, and the others would only wait longer.

    Args:
        before: What stands in the log just before the first such line.
        is_apart: Whether ranks wait in different collectives.
        late: The ranks that never came, where the log proves it.
        has_recorder: Whether the lines are of a torch that may have the flight recorder: those of
            2.1 and later tell the number of elements.
    """
    recorder = f", or {_RECORDER} diagnose" if has_recorder else ""
    apart, hung, came_not = (text.format(recorder) for text in (_APART, _HUNG, _CAME_NOT))
    if is_apart:
        return (_OF_SAVING if _SAVES.search(before) else "") + apart
    if _SAVES.search(before):
        return _OF_SAVING + hung
    if _PREPARES.search(before):
        return _OF_DATA + hung
    return came_not if late else hung + _WIRE
