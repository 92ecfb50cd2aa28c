"""`hpc-train submit train.py -- ...`, as its user types it, on this machine."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch

from hpc_train.runs.layout import RunDir
from hpc_train.runs.ranks import read_exits
from tests.e2e.conftest import Shell

SCRIPTS = Path(__file__).parents[1] / "scripts"
MODERN = SCRIPTS / "modern.py"
HUGGING_FACE = Path(sys.prefix, "hugging-face")  # see tests/hugging_face.txt
ON_CPUS = ("script.accelerator=cpu", "preflight=off")
NASTY = ("it's", "a b", "$(touch owned)", "${HOME}", "new\nline", "pä", "")


def test_a_script_is_cancelled_and_brought_back_and_ends_with_the_weights_of_a_quiet_run(
    here: Shell,
) -> None:
    shutil.copy(MODERN, here.folder / "train.py")
    words = ("--nodes", 2, "--gpus", 1, "train.py", *ON_CPUS)
    run = here.submit("--cluster", "local", *words, "--", 200, 0.1, *NASTY)
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
    assert f"arguments {['200', '0.1', *NASTY]} in __main__ {here.folder}/train.py" in log
    assert "the script's Trainer left its place open; it gets 2 nodes x 1 on cpu" in log
    assert not (here.folder / "owned").exists()
    often, quiet = (torch.load(here.folder / f"final-{slow}.pt") for slow in ("0.1", "0"))
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


def test_where_torch_writes_what_it_recorded_is_the_attempts_folder_unless_the_user_says_another(
    here: Shell,
) -> None:
    shutil.copy(SCRIPTS.parent / "diagnose" / "recorded.py", here.folder / "train.py")
    here.environment["FOLDER"] = str(here.folder)
    words = ("--gpus", 3, "train.py", *ON_CPUS, "requeue.budget=0")
    here.hpc("run", *words, "--", "absent", code=10)
    attempt = RunDir(Path(here.status("train")["run_dir"])).attempt(0)
    assert [Path(f"{attempt.flight_recorder}{rank}").is_file() for rank in range(3)] == [True] * 3
    found = json.loads(here.hpc("diagnose", "train", "--json", code=3).stdout)["findings"]
    late = {item["rank"] for item in found if item["name"] == "collective_timeout"}
    assert late == {2}
    (here.folder / "store").unlink()
    here.environment["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] = str(here.folder / "own-")
    here.hpc("run", "--name", "own", *words, "--", "well", code=10)
    assert "KeyError: 'TORCH_FR_DUMP_TEMP_FILE'" in here.status("own")["reason"]


OWN = "script.launcher=none"
RESUME = "script.resume.when=out/ckpt.pt"


def test_a_script_that_starts_its_ranks_is_killed_and_cancelled_and_goes_on_from_its_checkpoint(
    here: Shell,
) -> None:
    shutil.copy(SCRIPTS / "spawned.py", here.folder / "train.py")
    own = ("--fail", 3, "--how", "SIGKILL", "--steps", 400, "--slow", "0.05")
    words = ("--nodes", 2, "--gpus", 2, "train.py", *ON_CPUS, OWN, RESUME)
    run = here.submit("--cluster", "local", *words, "--", *own)
    here.wait_until(run["run"], lambda status: len(status["attempts"]) == 2 and status["step"] > 5)
    here.hpc("cancel", run["run"])
    killed, stopped = here.ended(run["run"])["attempts"]
    assert (killed["outcome"], killed["rank"]) == ("node_failure", 3)
    assert "rank 3 was killed by SIGKILL first" in killed["reason"]
    assert (stopped["outcome"], stopped["steps_lost"]) == ("cancelled", 0)
    folder = RunDir(Path(run["run_dir"])).attempt(1)
    ended = {(item.kind, item.step) for item in read_exits(folder)}
    assert ended == {("saved", stopped["saved_step"])}, "all four at one step, in its own handler"
    assert "the script starts its ranks\nrank 2 of 4 starts at" in folder.rank_log(2).read_text()
    here.hpc("resume", run["run"])
    last = here.ended(run["run"])
    assert (last["state"], last["step"]) == ("completed", 400)
    assert last["attempts"][2]["first_step"] == stopped["saved_step"] > 5
    log = here.hpc("logs", run["run"]).stdout
    assert f"rank 0 of 4 starts at {stopped['saved_step']}" in log
    assert "all ranks have ended" in log


def test_a_rank_that_a_script_has_started_and_that_stands_still_is_named_and_tried_again(
    here: Shell,
) -> None:
    shutil.copy(SCRIPTS / "spawned.py", here.folder)
    words = ("run", "--nodes", 1, "--gpus", 3, "spawned.py", *ON_CPUS, OWN)
    own = ("--per-node", 2, "--fail", 1, "--how", "SIGSTOP")
    said = here.hpc(*words, "watchdog.step_timeout_s=20", "--", *own)
    first, second = here.status("spawned")["attempts"]
    assert (first["outcome"], first["rank"], second["outcome"]) == ("hang", 1, "completed")
    assert "late: rank 1 on " in first["reason"]
    assert "the script's own ranks: 2, of 3 that were asked for" in said.stdout + said.stderr


@pytest.mark.skipif(
    not HUGGING_FACE.is_dir(), reason=f"make test installs accelerate into {HUGGING_FACE}"
)
def test_accelerates_launcher_within_a_script_is_stopped_and_goes_on_exactly(here: Shell) -> None:
    for name in ("launched", "hugging_face"):
        shutil.copy(SCRIPTS / f"{name}.py", here.folder)
    here.environment["PYTHONPATH"] = str(HUGGING_FACE)
    words = ("run", "--gpus", 2, "launched.py", *ON_CPUS, OWN)
    here.hpc(*words, "--name", "quiet", "--", "--out", "quiet")
    here.environment["HPC_TRAIN_FAULTS"] = "stop@step=7:rank=1:attempt=0"
    here.hpc(*words, "--name", "often", "--", "--out", "often", "--slow", 0.1)
    first, second = here.status("often")["attempts"]
    assert (first["outcome"], first["steps_lost"]) == ("preempted", 0)
    assert first["saved_step"] == second["first_step"] >= 7
    often, quiet = (torch.load(here.folder / name / "final.pt") for name in ("often", "quiet"))
    assert (often["step"], quiet["step"]) == (36, 36)
    assert all(torch.equal(often["model"][name], quiet["model"][name]) for name in quiet["model"])


def test_a_script_without_a_launcher_is_one_rank_a_node_or_tells_which_of_its_ranks_failed(
    here: Shell,
) -> None:
    for name in ("spawned", "plain_ddp"):
        shutil.copy(SCRIPTS / f"{name}.py", here.folder)
    here.hpc("run", "spawned.py", "--gpus", 2, *ON_CPUS, OWN, "--", "--fail", 1, code=10)
    assert here.status("spawned")["outcome"] == "user_error"
    reason = here.status("spawned")["attempts"][0]["reason"]
    assert "rank 1 on " in reason
    assert "failed at step 3: ZeroDivisionError: division by zero" in reason
    assert "spawned.py:" in reason
    here.hpc("run", "--nodes", 2, "--gpus", 1, "plain_ddp.py", *ON_CPUS, OWN)
    done = here.status("plain_ddp")
    assert (done["state"], done["step"]) == ("completed", 12)
    folder = RunDir(Path(done["run_dir"])).attempt(0)
    assert {item.rank for item in read_exits(folder)} == {0, 1}
