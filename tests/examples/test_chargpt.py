from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hpc_train.errors import ConfigError
from hpc_train.examples.chargpt import CharData, CharGPT

TEXT = "the quick brown fox jumps over the lazy dog. " * 60


def data(tmp_path: Path, text: str = TEXT) -> CharData:
    file = tmp_path / "text.txt"
    file.write_text(text)
    made = CharData(str(file), block_size=16, batch_size=8)
    made.setup("fit")
    return made


def test_windows_follow_one_another_and_share_their_ends(tmp_path: Path) -> None:
    windows = data(tmp_path).train
    assert windows[0].shape == (17,)
    assert bytes(windows[0].tolist()).decode() == TEXT[:17]
    assert windows[0][-1] == windows[1][0]
    assert bytes(windows[1].tolist()).decode() == TEXT[16:33]


def test_it_learns_the_text(tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # several are slower here, and much so on a busy machine
    model = CharGPT(n_layer=1, n_head=2, n_embd=32, block_size=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        for batch in data(tmp_path).train_dataloader():
            loss = model._loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[0] > 5  # ln 256
    assert losses[-1] < 1.5


def test_no_character_sees_what_comes_after_it() -> None:
    model = CharGPT(n_layer=2, n_head=2, n_embd=16, block_size=8)
    tokens = torch.randint(0, 256, (1, 8))
    changed = tokens.clone()
    changed[0, 5] = (changed[0, 5] + 1) % 256
    before, after = model(tokens), model(changed)
    assert torch.allclose(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "no file"), ("short", "has 5 bytes, too few for a block_size of 16")],
)
def test_a_text_that_cannot_be_used_is_named(
    tmp_path: Path, text: str | None, message: str
) -> None:
    file = tmp_path / "text.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=r"data\.init_args\.path: ") as caught:
        CharData(str(file), block_size=16).setup("fit")
    assert message in caught.value.message


def test_heads_that_do_not_share_the_width_are_refused() -> None:
    with pytest.raises(ConfigError, match="n_embd 130 is no multiple of n_head 4") as caught:
        CharGPT(n_embd=130, n_head=4)
    assert caught.value.hint == "write n_embd: 128"
