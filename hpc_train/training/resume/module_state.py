"""What one rank knows of a module beyond the weights that rank 0 saves for all."""

from __future__ import annotations

from typing import Any

import torch

# Buffers above this (masks, tables) are taken for constants, which every start makes anew.
_BUFFER_MAX_BYTES = 16 << 20


def capture_module(module: torch.nn.Module) -> dict[str, Any]:
    """This rank's own buffers, and which parameters are frozen at the moment."""
    buffers = {
        name: buffer.detach().clone()
        for name, buffer in module.named_buffers()
        if buffer.numel() * buffer.element_size() <= _BUFFER_MAX_BYTES
    }
    frozen = [name for name, item in module.named_parameters() if not item.requires_grad]
    return {"buffers": buffers, "frozen": frozen}


def restore_module(module: torch.nn.Module, saved: dict[str, Any], *, same_world: bool) -> None:
    """Put back what `capture_module` gave, here or on a rank that was not there (`same_world`)."""
    if same_world:
        for name, buffer in module.named_buffers():
            if name in saved["buffers"] and saved["buffers"][name].shape == buffer.shape:
                with torch.no_grad():
                    buffer.copy_(saved["buffers"][name])
    if "frozen" in saved:  # by callbacks, say, which are not asked again in an epoch's middle
        for name, item in module.named_parameters():
            if item.requires_grad == (name in saved["frozen"]):
                item.requires_grad_(name not in saved["frozen"])
