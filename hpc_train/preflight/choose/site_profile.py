"""What a site knows about its own network (configs/clusters/*.yaml), as data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from hpc_train.config.words import near_words
from hpc_train.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Words that users have for them: those of NCCL's and gloo's variables, and plain ones.
_MEANT = {
    **dict.fromkeys(
        (
            *("interface", "interfaces", "iface", "ifname", "socket_ifname", "nic", "nics"),
            *("nccl_socket_ifname", "gloo_socket_ifname"),
        ),
        "socket_interface",
    ),
    **dict.fromkeys(("exclude", "hca_excluded", "exclude_hca", "exclude_hcas"), "hca_exclude"),
    **dict.fromkeys(("env", "variables"), "environment"),
    **dict.fromkeys(("gdr", "net_gdr_level", "nccl_net_gdr_level"), "gdr_level"),
}
_GDR_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")


@dataclass(frozen=True, kw_only=True)
class SiteProfile:
    """A site's answers, where /sys alone cannot tell. All optional."""

    name: str = ""  # the cluster's
    socket_interface: str | None = None  # interface for bootstrap and gloo, where nodes have it
    hca_exclude: tuple[str, ...] = ()  # names of HCAs that are not for training (storage), exact
    link_layer: str | None = None  # `InfiniBand` or `Ethernet`, where nodes have both
    # HCA k of every node hangs on switch k; None derives it from the subnets
    rail_optimized: bool | None = None
    gdr_level: str | None = None  # NCCL_NET_GDR_LEVEL: `LOC`, `PIX`, `PXB`, `PHB` or `SYS`
    # Further variables for every rank, below the user's own in rank
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], where: str = "network") -> SiteProfile:
        """Return the profile in a mapping read from YAML.

        Raises:
            ConfigError: An unknown key, or a value that cannot be meant; the message names it.
        """
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            hint = _MEANT.get(unknown[0].lower()) or next(iter(near_words(unknown[0], known)), "")
            raise _refusal(
                f"{where}.{unknown[0]}",
                f"{where}: unknown key {unknown[0]!r}",
                f"did you mean {hint!r}?" if hint else f"known keys: {', '.join(sorted(known))}",
            )
        values = {key: value for key, value in data.items() if value is not None}
        _one_of(values, "link_layer", ("InfiniBand", "Ethernet"), where)
        _one_of(values, "gdr_level", _GDR_LEVELS, where)
        values["hca_exclude"] = tuple(str(name) for name in values.get("hca_exclude", ()))
        environment = values.get("environment", {})
        values["environment"] = {str(name): str(value) for name, value in environment.items()}
        return cls(**values)


def _one_of(values: dict[str, Any], key: str, allowed: tuple[str, ...], where: str) -> None:
    if key in values and values[key] not in allowed:
        full = f"{where}.{key}"
        raise _refusal(full, f"{full}: {values[key]!r}", f"write one of {', '.join(allowed)}")


def _refusal(key: str, message: str, hint: str) -> ConfigError:
    error = ConfigError(message, hint)
    error.keys = (key,)
    return error
