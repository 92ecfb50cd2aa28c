"""A mapping of the config whose keys a class reads by a point, and what is read otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, write
from tests.config.test_sure_refusals import DATA, GIVES, HEAD

CFG = "{lr: 0.1, width: 2, optim: {lr: 0.3, betas: [1]}, items: 3}"
START = "    def __init__(self, {head}):\n        super().__init__()\n{lines}\n"


def said_of(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str, given: str) -> str:
    monkeypatch.chdir(folder)
    head = f"{HEAD}    layer = abs\n"
    write(folder, f"import argparse, omegaconf, types\n{head}{GIVES}{body}{DATA}", "nets.py")
    named = f"{{class_path: nets.Net, init_args: {{{given}}}}}"
    try:
        api.load(write(folder, MINIMAL.replace("{class_path: nets.Net}", named)))
    except ConfigError as error:
        return f"{error.message.replace(f'{folder}/', '')} -> {error.hint}"
    return ""


def start(*lines: str, head: str = "cfg") -> str:
    return START.format(head=head, lines="\n".join(f"        {it}" for it in lines))


@pytest.mark.parametrize("head", ["cfg", "cfg: omegaconf.DictConfig", "*, cfg: types.X = None"])
def test_it_is_refused_with_the_line_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    """It failed in the job: 'dict' object has no attribute 'lr'."""
    body = start("self.lr = cfg.lr", "self.layer = torch.nn.Linear(cfg.width, 2)", head=head)
    assert said_of(tmp_path, monkeypatch, body, f"cfg: {CFG}") == (
        "cfg.yaml:3: model.init_args.cfg: a mapping comes as a dict, of which nets.Net reads"
        ' cfg.lr (nets.py:15) -> write cfg["lr"] for cfg.lr, and so for cfg.width'
    )


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        (["self.lr = cfg.optim.lr"], 'cfg["optim"]["lr"] for cfg.optim.lr'),
        (["self.n = cfg.optim.betas.count(1)"], 'cfg["optim"]["betas"] for cfg.optim.betas'),
        (["self.cfg = cfg", "self.lr = self.cfg.lr"], 'self.cfg["lr"] for self.cfg.lr'),
        (["if cfg: pass", "self.lr = 2 * cfg.lr"], 'cfg["lr"] for cfg.lr'),
        (
            [f"self.{it} = cfg.{it}.x" for it in ("lr", "width", "optim")] + ["cfg.lr"],
            'cfg["lr"] for cfg.lr, and so for cfg.width, cfg.optim',
        ),
    ],
)
def test_each_form_of_it_is_told_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], fix: str
) -> None:
    said = said_of(tmp_path, monkeypatch, start(*lines), f"cfg: {CFG}")
    assert said.endswith(f"-> write {fix}")


def test_what_is_kept_is_told_in_the_methods_that_each_training_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = "    def configure_optimizers(self): return torch.optim.SGD([], self.args.lr)\n"
    said = said_of(tmp_path, monkeypatch, f"{start('self.args = a', head='a')}{later}", f"a: {CFG}")
    assert said.endswith('(nets.py:16) -> write self.args["lr"] for self.args.lr')


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        (["self.lr = cfg['lr']"], CFG),
        (["self.lr = cfg.get('lr')", "self.n = cfg.items()"], CFG),
        (["cfg = omegaconf.OmegaConf.create(cfg)", "self.lr = cfg.lr"], CFG),
        (["cfg = argparse.Namespace(**cfg)", "self.lr = cfg.lr"], CFG),
        (["cfg = types.SimpleNamespace(**cfg)", "self.cfg = cfg", "self.lr = self.cfg.lr"], CFG),
        (["self.cfg = types.SimpleNamespace(**cfg)", "self.lr = self.cfg.lr"], CFG),
        (["self.cfg = cfg", "self.cfg = types.X(**cfg)", "self.lr = self.cfg.lr"], CFG),
        (["if isinstance(cfg, dict):", "    cfg = types.X(**cfg)", "self.lr = cfg.lr"], CFG),
        (["if not isinstance(cfg, dict):", "    self.lr = cfg.lr"], CFG),
        (["self.lr = cfg.lr if hasattr(cfg, 'lr') else cfg['lr']"], CFG),
        (["try:", "    self.lr = cfg.lr", "except AttributeError:", "    self.lr = 1"], CFG),
        (["self.lr = cfg.other"], CFG),
        (["self.lr = other.lr"], CFG),
        (["self.of = lambda cfg: cfg.lr"], CFG),
        (["self.lr = cfg.lr"], "{class_path: nets.Other, init_args: {lr: 1}}"),
        (["self.lr = cfg.lr"], "null"),
    ],
)
def test_what_is_no_dict_or_read_otherwise_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], given: str
) -> None:
    body = f"{start(*lines)}class Other:\n    def __init__(self, lr): ...\n"
    body = body.replace("other.lr", "pl.lr")
    assert said_of(tmp_path, monkeypatch, body, f"cfg: {given}") == ""
