"""The one place through which hpc-train imports Lightning, from whichever of its two packages.

Public names stand here beside private ones; only the modules of `private` use the latter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpc_train.training.private.versions import lightning_package

PACKAGE = lightning_package()

if TYPE_CHECKING or PACKAGE == "pytorch_lightning":
    import pytorch_lightning as pl
    from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning_fabric.utilities.exceptions import MisconfigurationException
    from pytorch_lightning.accelerators import CUDAAccelerator
    from pytorch_lightning.callbacks import Checkpoint
    from pytorch_lightning.loggers import Logger, TensorBoardLogger
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
    import lightning.pytorch as pl
    from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning.fabric.utilities.exceptions import MisconfigurationException
    from lightning.pytorch.accelerators import CUDAAccelerator
    from lightning.pytorch.callbacks import Checkpoint
    from lightning.pytorch.loggers import Logger, TensorBoardLogger
    from lightning.pytorch.loops.fit_loop import _FitLoop
    from lightning.pytorch.loops.training_epoch_loop import _TrainingEpochLoop
    from lightning.pytorch.plugins.io import TorchCheckpointIO
    from lightning.pytorch.strategies import Strategy, StrategyRegistry
    from lightning.pytorch.trainer.connectors.data_connector import _DataLoaderSource
    from lightning.pytorch.trainer.connectors.logger_connector.result import (
        _Metadata,
        _ResultMetric,
        _Sync,
    )
    from lightning.pytorch.trainer.states import TrainerFn
    from lightning.pytorch.utilities import CombinedLoader, rank_zero_only

__all__ = [
    "PACKAGE",
    "CUDAAccelerator",
    "Checkpoint",
    "ClusterEnvironment",
    "CombinedLoader",
    "Logger",
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
