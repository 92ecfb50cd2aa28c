"""What stands in `loggers`: one of our words for a logger, or a class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.gathered import tell_together
from hpc_train.config.meant_words.logger_forms import LOGGER_WORDS, OWN_LOGGERS
from hpc_train.config.origins import Origins
from hpc_train.config.specs import CLASS_PATH, is_object, meant_by
from hpc_train.config.words import did_you_mean


def check_loggers(loggers: Sequence[Any], origins: Origins) -> None:
    """Refuse what is neither.

    Raises:
        ConfigError: with what to write.
    """
    known = f"write {', '.join(LOGGER_WORDS)}, or {{class_path: ..., init_args: ...}}"
    tell_together(
        origins.error(
            f"loggers.{index}",
            f"is {it!r}",
            _as_logger(it) or did_you_mean(str(it), LOGGER_WORDS) or known,
        )
        for index, it in enumerate(loggers)
        if it not in OWN_LOGGERS and not is_object(it)
    )


def _as_logger(logger: object) -> str:
    """What to write for a mapping that names a logger in other words; empty for any other."""
    from hpc_train.config.whole_forms import flow, logger_of_word, loggers_for
    from hpc_train.config.yaml_slips.dashes import torn_dashes  # on the way to an error

    if not isinstance(logger, Mapping):
        return torn_dashes(logger)
    named = any(meant_by(name, value) == CLASS_PATH for name, value in logger.items())
    named = named or any(logger_of_word(str(name)) for name in logger)
    meant = ", ".join(map(flow, loggers_for(logger))) if named else ""
    return f"write {meant}" if meant and "my_package." not in meant else ""
