"""A small GPT that learns to continue a text file of the user's, character by character."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from hpc_train.errors import ConfigError

_VOCABULARY = 256  # bytes: the same for every text, so the model's shape needs no look at the data


class _Block(nn.Module):
    """Attention to what came before, then a perceptron, each beside a residual path."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.norm_1 = nn.LayerNorm(n_embd)
        self.norm_2 = nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.out = nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (batch, time, n_embd) to the same shape."""
        batch, time, width = hidden.shape
        heads = self.qkv(self.norm_1(hidden)).view(batch, time, 3, self.n_head, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.out(attended.transpose(1, 2).reshape(batch, time, width))
        return hidden + self.mlp(self.norm_2(hidden))  # type: ignore[no-any-return]


class CharGPT(pl.LightningModule):
    """A decoder-only transformer over bytes.

    Args:
        n_layer: Blocks.
        n_head: Attention heads; n_embd must be a multiple of it.
        n_embd: Width of the residual path.
        block_size: Longest context in bytes; at least the data's.
        lr: Learning rate of AdamW.
    """

    def __init__(
        self,
        n_layer: int = 4,
        n_head: int = 4,
        n_embd: int = 128,
        block_size: int = 128,
        lr: float = 1e-3,
    ) -> None:
        super().__init__()
        if n_embd % n_head:
            raise ConfigError(
                f"model.init_args: n_embd {n_embd} is no multiple of n_head {n_head}",
                f"write n_embd: {n_head * max(1, round(n_embd / n_head))}",
            )
        self.save_hyperparameters()
        self.lr = lr
        self.tokens = nn.Embedding(_VOCABULARY, n_embd)
        self.positions = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[_Block(n_embd, n_head) for _ in range(n_layer)])
        self.norm = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, _VOCABULARY, bias=False)

    @override
    def forward(self, tokens: Tensor) -> Tensor:
        """Map bytes (batch, time) to logits of the next byte (batch, time, 256)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.blocks(self.tokens(tokens) + self.positions(places))
        return self.head(self.norm(hidden))  # type: ignore[no-any-return]

    def _loss(self, batch: Tensor) -> Tensor:
        logits = self(batch[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    @override
    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        """Mean cross entropy, in nats a byte, of windows (batch, block_size + 1)."""
        loss = self._loss(batch)
        self.log("loss", loss, prog_bar=True)
        return loss

    @override
    def validation_step(self, batch: Tensor, batch_idx: int) -> None:
        """The same on text that is not trained on."""
        self.log("val_loss", self._loss(batch), sync_dist=True, prog_bar=True)

    @override
    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW at a constant rate."""
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


class _Windows(Dataset[Tensor]):
    """Windows of block_size + 1 bytes that follow one another, each sharing its ends."""

    def __init__(self, text: Tensor, block_size: int) -> None:
        self.text = text
        self.block_size = block_size

    def __len__(self) -> int:
        return (len(self.text) - 1) // self.block_size

    def __getitem__(self, index: int) -> Tensor:
        start = index * self.block_size
        return self.text[start : start + self.block_size + 1].long()


class CharData(pl.LightningDataModule):
    """A text file; its last tenth is kept for validation.

    Args:
        path: The file, absolute or relative to the folder of the config.
        block_size: Context in bytes.
        num_workers: Data workers a rank.
        batch_size: Windows a rank takes at once; hpc-train gives the plan's micro batch.
    """

    def __init__(
        self, path: str, block_size: int = 128, num_workers: int = 0, batch_size: int = 16
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.block_size = block_size
        self.num_workers = num_workers
        self.batch_size = batch_size

    @override
    def setup(self, stage: str) -> None:
        """Read the file.

        Raises:
            ConfigError: it is not there, or too short for one window to train and one to validate.
        """
        if not self.path.is_file():
            raise ConfigError(
                f"data.init_args.path: no file {self.path.absolute()}",
                "name any text file: hpc-train submit CONFIG data.init_args.path=/path/to/text",
            )
        text = torch.frombuffer(bytearray(self.path.read_bytes()), dtype=torch.uint8)
        cut = len(text) * 9 // 10
        self.train = _Windows(text[:cut], self.block_size)
        self.validation = _Windows(text[cut:], self.block_size)
        if not len(self.validation):
            raise ConfigError(
                f"data.init_args.path: {self.path} has {len(text)} bytes, too few for a "
                f"block_size of {self.block_size}",
                f"name a text of {10 * self.block_size + 20} bytes or more",
            )

    @override
    def train_dataloader(self) -> DataLoader[Any]:
        """Shuffled windows (batch, block_size + 1)."""
        return DataLoader(
            self.train, batch_size=self.batch_size, shuffle=True, num_workers=self.num_workers
        )

    @override
    def val_dataloader(self) -> DataLoader[Any]:
        """In order."""
        return DataLoader(self.validation, batch_size=self.batch_size, num_workers=self.num_workers)
