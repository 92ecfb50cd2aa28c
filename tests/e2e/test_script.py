"""`hpc-train submit train.py -- ...`, as its user types it, on this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from tests.e2e.conftest import Shell

MODERN = Path(__file__).parents[1] / "scripts" / "modern.py"
ON_CPUS = ("script.accelerator=cpu", "preflight=off")
NASTY = ("it's", "a b", "$(touch owned)", "${HOME}", "new\nline", "pä", "")


def test_a_script_is_cancelled_and_brought_back_and_ends_with_the_weights_of_a_quiet_run(
    here: Shell,
) -> None:
    shutil.copy(MODERN, here.folder / "train.py")
    words = ("--nodes", 2, "--gpus", 1, "train.py", *ON_CPUS)
    run = here.submit("--cluster", "local", *words, "--", 200, 0.03, *NASTY)
    here.wait_until(run["run"], lambda status: status["step"] > 20)
    here.hpc("cancel", run["run"])
    stopped = here.ended(run["run"])
    saved = stopped["attempts"][0]["saved_step"]
    assert (stopped["state"], stopped["attempts"][0]["steps_lost"]) == ("cancelled", 0)
    here.hpc("resume", run["run"])
    here.hpc("run", *words, "--name", "quiet", "--", 200, 0)
    resumed = here.ended(run["run"])
    assert resumed["state"] == "completed"
    assert resumed["attempts"][1]["first_step"] == saved > 20
    log = here.hpc("logs", run["run"], "--attempt", 0).stdout
    assert f"arguments {['200', '0.03', *NASTY]} in __main__ {here.folder}/train.py" in log
    assert "the script's Trainer left its place open; it gets 2 nodes x 1 on cpu" in log
    assert not (here.folder / "owned").exists()
    often, quiet = (torch.load(here.folder / f"final-{slow}.pt") for slow in ("0.03", "0"))
    assert all(torch.equal(often[name], quiet[name]) for name in quiet)


def test_a_script_in_the_foreground_ends_well_and_one_that_is_wrong_says_where(
    here: Shell,
) -> None:
    shutil.copy(MODERN, here.folder / "train.py")
    done = here.hpc("run", "train.py", *ON_CPUS, "--", 2, 0)
    assert "all ranks finished" in done.stdout + done.stderr
    assert (here.folder / "final-0.pt").is_file()
    assert here.status("train")["metrics"]["loss"] >= 0
    here.hpc("run", "train.py", *ON_CPUS, "--name", "wrong", "--", "two", 0, code=10)
    assert here.status("wrong")["outcome"] == "user_error"
    assert "train.py:" in here.status("wrong")["reason"]
