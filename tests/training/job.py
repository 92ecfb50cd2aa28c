"""One rank of a small training, started by `ranks.Ranks`."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from hpc_train.runs.layout import RunDir
from hpc_train.training.resume.stop import StopFlag


def main(spec: dict[str, Any]) -> None:
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    run_dir = RunDir(Path(spec["run_dir"]))
    stop = StopFlag(run_dir.stop).install()
    import torch
    import torch.distributed as dist

    from hpc_train.training.resume import agreement
    from hpc_train.training.resume.fit_with_resume import FitWithResume, leave
    from tests.training import training

    torch.set_num_threads(1)
    agreement.REACTION_S = spec["reaction_s"]
    plan = training.make_plan(spec, world_size)
    resumer = FitWithResume(
        plan=plan,
        run_dir=run_dir,
        attempt=spec["attempt"],
        rank=rank,
        world_size=world_size,
        node="local",
        stop=stop,
    )
    resumer.begin()
    chosen = None
    try:
        if world_size > 1:
            method = f"file://{os.environ['RENDEZVOUS_FILE']}"
            dist.init_process_group("gloo", method, rank=rank, world_size=world_size)
        chosen = resumer.choose()
        random.seed(plan.training.seed + rank)
        torch.manual_seed(plan.training.seed)
        trainer, model, data = training.build(spec, resumer, rank, world_size)
        torch.manual_seed(plan.training.seed + rank)
        resumer.fit(trainer, model, data)
        code = resumer.finish()
        if rank == 0 and not spec["sharded"]:
            torch.save(model.state_dict(), run_dir.path / "final.pt")
    except BaseException as error:  # noqa: BLE001 - as in a real rank: all are judged
        code = resumer.fail(error)
        print(f"rank {rank} ended with {code} in phase {resumer.phase}: {error!r}", flush=True)
        if code not in (75, 76):
            import traceback

            traceback.print_exc()
    first = chosen.step if chosen else 0
    print(f"rank {rank}: first {first}, last {resumer.step}, exit {code}", flush=True)
    leave(code)
