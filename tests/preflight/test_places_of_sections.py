"""Wrong keys of preflight.network and preflight.thresholds: told with file and line."""

from __future__ import annotations

from typing import Any

import pytest

from hpc_train.config.origins import Origins
from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import ConfigError
from hpc_train.preflight.run_preflight import check_sections


@pytest.mark.parametrize(
    ("below", "key", "value", "fix"),
    [
        ("network", "interfaces", ["eth0"], "did you mean 'socket_interface'?"),
        ("network", "NCCL_SOCKET_IFNAME", "eth0", "did you mean 'socket_interface'?"),
        ("network", "hca_exclud", [], "did you mean 'hca_exclude'?"),
        ("network", "link_layer", "ib", "write one of InfiniBand, Ethernet"),
        ("thresholds", "min_gbit", 1.0, "did you mean 'min_gbps'?"),
    ],
)
def test_it_is_told_where_it_stands(below: str, key: str, value: Any, fix: str) -> None:
    places = {f"preflight.{below}": "site.yaml:3", f"preflight.{below}.{key}": "site.yaml:4"}
    config = PreflightConfig(**{below: {key: value}})
    with pytest.raises(ConfigError) as caught:
        check_sections(config, Origins(places))
    assert caught.value.message.startswith(f"site.yaml:4: preflight.{below}")
    assert caught.value.hint == fix
    with pytest.raises(ConfigError, match=r"\Apreflight"):
        check_sections(config)
