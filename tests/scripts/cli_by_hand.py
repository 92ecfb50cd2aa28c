"""The same with `run=False`: the script itself says what is done."""

from cli_app import Data, Net
from pytorch_lightning.cli import LightningCLI

cli = LightningCLI(Net, Data, run=False, seed_everything_default=4)
cli.trainer.fit(cli.model, datamodule=cli.datamodule)
(tested,) = cli.trainer.test(ckpt_path="best", datamodule=cli.datamodule)
print("tested", tested)
