"""One rank of a small training, started by `ranks.Ranks`."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from hpc_train.runs.layout import RunDir
from hpc_train.training.heartbeat import HeartbeatThread
from hpc_train.training.rank_config import RankConfig
from hpc_train.training.rank_failure import leave, record_exit
from hpc_train.training.resume.stop import StopFlag, Stopped


def main(spec: dict[str, Any]) -> None:
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    run_dir = RunDir(Path(spec["run_dir"]))
    stop = StopFlag(run_dir.stop).install()
    import torch
    import torch.distributed as dist

    from hpc_train.training.resume import agreement
    from hpc_train.training.resume.fit_with_resume import fit_with_resume
    from hpc_train.training.resume.resume_state import ResumeState
    from tests.training import training

    torch.set_num_threads(1)
    agreement.REACTION_S = spec["reaction_s"]
    plan = training.make_plan(spec, world_size)
    attempt = run_dir.attempt(spec["attempt"])
    heartbeat = HeartbeatThread(
        attempt, rank=rank, node="local", every_s=plan.watchdog.heartbeat_s, stop=stop
    )
    heartbeat.start()
    first, ending = 0, None
    try:
        if world_size > 1:
            method = f"file://{os.environ['RENDEZVOUS_FILE']}"
            dist.init_process_group("gloo", method, rank=rank, world_size=world_size)
        config = RankConfig.of_plan(
            plan, run_dir, attempt=spec["attempt"], rank=rank, world_size=world_size
        )
        state = ResumeState(config, heartbeat, stop)
        start = state.load()
        first = start.manifest.step if start else 0
        random.seed(plan.training.seed + rank)
        torch.manual_seed(plan.training.seed)
        trainer, model, data = training.build(spec, rank, world_size)
        torch.manual_seed(plan.training.seed + rank)
        fit_with_resume(state, trainer, model=model, datamodule=data)
        if rank == 0 and not spec["sharded"]:
            torch.save(model.state_dict(), run_dir.path / "final.pt")
    except BaseException as error:  # noqa: BLE001 - as in a real rank: all are judged
        ending = error
        print(error, flush=True)
    phase = heartbeat.phase
    failure = record_exit(attempt, ending, heartbeat, first_step=first)
    if ending is not None:
        phase = "end" if isinstance(ending, Stopped) else phase
        print(f"rank {rank} ended with {failure.code} in phase {phase}: {ending!r}", flush=True)
        print(failure.traceback if failure.code != 76 else "", flush=True)
    print(f"rank {rank}: first {first}, last {heartbeat.step}, exit {failure.code}", flush=True)
    leave(failure.code)
