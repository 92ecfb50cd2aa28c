"""What `status` and who waits for a run say of a bad end, beside the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpc_train.cli.common import shell_word
from hpc_train.plan.states import RunState
from hpc_train.runs.history_text import shortened
from hpc_train.runs.layout import RunDir
from hpc_train.runs.status import RunStatus

_WIDTH = 200
_BAD = (RunState.FAILED, RunState.TIMED_OUT, RunState.LOST)


def diagnosis_lines(status: RunStatus, indent: str = "") -> Iterator[str]:
    """The next command, and the sentence that it gives where no log has to be read for it."""
    if status.state not in _BAD:
        return
    from hpc_train.diagnose.read_run import sentence_of

    try:
        sentence = sentence_of(RunDir(Path(status.run_dir)), status)
    except OSError:  # a part of the run that is not ours to read; diagnose says which
        sentence = ""
    if sentence:
        yield shortened(f"{indent}cause      {sentence}", _WIDTH)
    yield f"{indent}why        hpc-train diagnose {shell_word(status.run)}"
