"""OmegaConf's mark for a required key, for those who need the schema and not OmegaConf."""

from __future__ import annotations

from typing import Any

REQUIRED: Any = "???"
