"""What the ranks of a node get: of a choice, or of a verdict."""

from __future__ import annotations


def exported(said, node: str) -> dict[str, str]:
    return {item.name: item.value for item in said.environment} | said.per_node.get(node, {})
