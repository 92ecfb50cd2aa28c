"""The columns of `hpc-train list`, where they can be read without any import."""

from __future__ import annotations

__all__ = ["LIST_HEADER"]

LIST_HEADER = ("NAME", "RUN", "STATE", "JOB", "ATTEMPTS", "STEP", "SUBMITTED", "WHY")
