"""How a strategy of either of Lightning's packages starts its ranks; imports none of them."""

from __future__ import annotations

from typing import Any


def launch_method(strategy: Any) -> str:
    """How a strategy would start processes, as `DDPStrategy(start_method=...)`."""
    return str(getattr(strategy, "_start_method", ""))
