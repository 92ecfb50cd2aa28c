"""Lightning's MLFlowLogger with a client that outlives an outage of its server."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from typing_extensions import override

from hpc_train.training.private.lightning import MLFlowLogger, rank_zero_only
from hpc_train.training.service_outages import OutageTolerantClient, is_mlflow_outage


class OutageTolerantMlflow(MLFlowLogger):
    """What it logs waits while the server is away; the training goes on."""

    client: OutageTolerantClient | None = None

    def be_tolerant(self, note: Callable[[str], None]) -> None:
        """Have the client wait from here on, also that of `self.logger.experiment`."""
        self.client = OutageTolerantClient(self._mlflow_client, where=self._tracking_uri, note=note)
        self._mlflow_client = self.client

    def go_on_as(self, run_id: str, experiment_id: str) -> None:
        """Take the server's run of an earlier attempt without asking the server for it."""
        mlflow = import_module("mlflow")

        mlflow.set_tracking_uri(self._tracking_uri)
        self._run_id, self._experiment_id = run_id, experiment_id
        self._initialized = True

    @override
    @rank_zero_only
    def finalize(self, status: str = "success") -> None:
        """End the server's run; where it does not answer, say what was not sent."""
        if self.client is None:
            super().finalize(status)
            return
        self.client.last_try()
        try:
            super().finalize(status)
        except Exception as error:
            if not is_mlflow_outage(error):
                raise
            self.client.is_away_at_the_end(error)
