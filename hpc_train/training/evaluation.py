"""`python -m hpc_train.training.evaluation`: a rank that tests, validates or predicts."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from typing_extensions import override

from hpc_train.config.fit.lacking_methods import how_to_write
from hpc_train.errors import ConfigError
from hpc_train.plan.evaluations import NEEDED
from hpc_train.plan.plan import Plan
from hpc_train.plan.world import World
from hpc_train.training.environment_record import write_environment
from hpc_train.training.rank import Rank, main

if TYPE_CHECKING:
    from hpc_train.training.devices import Device, LoaderSettings
    from hpc_train.training.private.lightning import pl

_NOUNS = {"test": "test", "validate": "validation", "predict": "prediction"}


class EvaluationRank(Rank):
    """A rank of `hpc-train test`, `validate` or `predict`; begins anew after an interruption."""

    @override
    def work(self, plan: Plan, world: World, device: Device, loader: LoaderSettings) -> None:
        """Evaluate."""
        state = self.make_state(plan, world)
        run = state.rank.run
        trainer, model, data = self.build(plan, world, device, loader)
        from hpc_train.training.loggers import write_final_metrics
        from hpc_train.training.predictions import PredictionFiles
        from hpc_train.training.resume.lightning_adapter import LightningAdapter
        from hpc_train.training.weights import forget_weights, told_in_one_line, weights_path

        _check_methods(plan, model, data)
        if world.rank == 0:
            with suppress(OSError):  # a full disk costs the record, not the evaluation
                write_environment(run.attempt(self.here.attempt))
        adapter = LightningAdapter(state)
        adapter.attach(trainer)
        weights = weights_path(run, plan)
        with told_in_one_line(model, weights, plan):
            if plan.verb == "predict":
                trainer.callbacks.append(PredictionFiles(adapter, run.predictions))  # type: ignore[attr-defined]
                trainer.predict(model, data, return_predictions=False, ckpt_path=str(weights))
            else:
                evaluate = trainer.test if plan.verb == "test" else trainer.validate
                evaluate(model, data, ckpt_path=str(weights))
        if world.rank == 0:
            write_final_metrics(run, trainer)
            forget_weights(run)
        self.early_end = f"the {_NOUNS[plan.verb]} is complete"


def _check_methods(plan: Plan, model: pl.LightningModule, data: pl.LightningDataModule) -> None:
    """What submission could not see in the text of the classes."""
    from hpc_train.training.private.lightning import pl

    of_model, of_data = NEEDED[plan.verb]
    lacking = {}
    for names, item, base in (
        (of_model, model, pl.LightningModule),
        ((of_data,), data, pl.LightningDataModule),
    ):
        own, inherited = type(item), base
        if all(getattr(own, name) is getattr(inherited, name) for name in names):
            lacking[names[0]] = f"{own.__name__} has no {names[0]}"
    if lacking:
        said = f"{', and '.join(lacking.values())}, which {plan.verb} calls"
        raise ConfigError(said, "; ".join(map(how_to_write, lacking)))


if __name__ == "__main__":
    sys.exit(main(EvaluationRank))
