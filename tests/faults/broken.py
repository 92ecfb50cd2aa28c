"""A user's module that cannot be imported."""

from __future__ import annotations

import pytorch_lightning as pl

raise RuntimeError("this module was never meant to be imported")


class Model(pl.LightningModule):
    """Never reached."""
