"""The one place through which hpc-train imports Lightning, from whichever of its two packages.

Public names stand here beside private ones; only the modules of `private` use the latter.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hpc_train.training.private.versions import lightning_package

PACKAGE = lightning_package()

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning_fabric.utilities.exceptions import MisconfigurationException
    from pytorch_lightning.accelerators import CUDAAccelerator
    from pytorch_lightning.callbacks import Checkpoint
    from pytorch_lightning.loggers import Logger, MLFlowLogger, TensorBoardLogger
    from pytorch_lightning.loops.fit_loop import _FitLoop
    from pytorch_lightning.loops.training_epoch_loop import _TrainingEpochLoop
    from pytorch_lightning.plugins.io import TorchCheckpointIO
    from pytorch_lightning.strategies import Strategy, StrategyRegistry
    from pytorch_lightning.trainer.connectors.data_connector import _DataLoaderSource
    from pytorch_lightning.trainer.connectors.logger_connector.result import (
        _Metadata,
        _ResultMetric,
        _Sync,
    )
    from pytorch_lightning.trainer.states import TrainerFn
    from pytorch_lightning.utilities import CombinedLoader, rank_zero_only
else:
    pl = import_module(PACKAGE)
    ClusterEnvironment = pl.plugins.ClusterEnvironment
    MisconfigurationException = pl.utilities.exceptions.MisconfigurationException
    CUDAAccelerator = pl.accelerators.CUDAAccelerator
    Checkpoint = pl.callbacks.Checkpoint
    Logger, TensorBoardLogger = pl.loggers.Logger, pl.loggers.TensorBoardLogger
    MLFlowLogger = pl.loggers.MLFlowLogger
    _FitLoop = pl.loops.fit_loop._FitLoop
    _TrainingEpochLoop = pl.loops.training_epoch_loop._TrainingEpochLoop
    TorchCheckpointIO = pl.plugins.TorchCheckpointIO
    Strategy, StrategyRegistry = pl.strategies.Strategy, pl.strategies.StrategyRegistry
    _DataLoaderSource = pl.trainer.connectors.data_connector._DataLoaderSource
    _result = pl.trainer.connectors.logger_connector.result
    _Metadata, _ResultMetric, _Sync = _result._Metadata, _result._ResultMetric, _result._Sync
    TrainerFn = pl.trainer.states.TrainerFn
    CombinedLoader, rank_zero_only = pl.utilities.CombinedLoader, pl.utilities.rank_zero_only

__all__ = [
    "PACKAGE",
    "CUDAAccelerator",
    "Checkpoint",
    "ClusterEnvironment",
    "CombinedLoader",
    "Logger",
    "MLFlowLogger",
    "MisconfigurationException",
    "Strategy",
    "StrategyRegistry",
    "TensorBoardLogger",
    "TorchCheckpointIO",
    "TrainerFn",
    "_DataLoaderSource",
    "_FitLoop",
    "_Metadata",
    "_ResultMetric",
    "_Sync",
    "_TrainingEpochLoop",
    "pl",
    "rank_zero_only",
]
