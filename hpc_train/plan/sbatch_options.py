"""Options of sbatch that a config gives as they are: what `slurm.extra` may hold."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from hpc_train.config.gathered import tell_together
from hpc_train.config.meant_words.sbatch_names import KNOWN, OWNED
from hpc_train.config.meant_words.sbatch_values import with_value
from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError

_WORDS = "now|today|tomorrow|midnight|noon|elevenses|fika|teatime|[ap]m|uts"
_MAILS = "NONE|BEGIN|END|FAIL|REQUEUE|ALL|INVALID_DEPEND|STAGE_OUT|TIME_LIMIT(_[589]0)?|ARRAY_TASKS"
_KINDS = "after|afterany|afterburstbuffer|aftercorr|afternotok|afterok|expand"
_AFTER = rf"(({_KINDS})(:\d+([_+](\d+|\*))*)+|singleton)"
_WITHOUT_KIND = re.compile(r"\d[\d:_+*]*\Z")
# An hour, minute, month or day that there is not.
_NO_TIME = (
    r"(?<![\d:])(2[4-9]|[3-9]\d):|:[6-9]\d"
    r"|\d{4}-(00|1[3-9]|[2-9]\d)-\d\d|\d{4}-\d\d-(00|3[2-9]|[4-9]\d)"
)
_BEGIN = rf"(?=.*\w)(?!.*({_NO_TIME}))([-\d:/.+\sT]|{_WORDS}|(second|minute|hour|day|week)s?)+"
# Keys whose form sbatch(1) fixes: a pattern, and how to write them.
FORMS: Mapping[str, tuple[str, str]] = {
    "begin": (_BEGIN, "write it like now+1hour, tomorrow, 16:00, or a date: YYYY-MM-DDT16:00"),
    "dependency": (rf"{_AFTER}([,?]{_AFTER})*", "write it like afterok:12345, or --after RUN"),
    "mail_type": (rf"({_MAILS})(,({_MAILS}))*", "write END,FAIL; others: BEGIN, REQUEUE, ALL"),
    "mail_user": (r"\S+", "write one address"),
    "gpu_type": (r"[\w.-]+", "write the type alone: a100; how many is slurm.gpus_per_node"),
    **dict.fromkeys(
        ("nodelist", "exclude"),
        (r"\S+", "write it without spaces: a,b"),
    ),
    **dict.fromkeys(
        ("partition", "licenses", "qos", "account", "reservation"),
        (r"[^\s\[\]]+", "write it without spaces and brackets: a,b"),
    ),
}
# Of these several are one text.
_LISTS = ("nodelist", "exclude", "partition", "licenses", "reservation")
_ITEM = re.compile(r"\w[\w.:=%@/-]*(?:\[[\w,-]+\])*[\w.-]*")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z", re.ASCII)


def check_form(key: str, value: str, origins: Origins = NOWHERE) -> None:
    """Refuse a value that sbatch(1) cannot read, or reads as something else.

    A dependency without its kind is `afterany` to Slurm, and one of a job that it does not know is
    dropped without a word [seen on 22.05].

    Raises:
        ConfigError: with the form to write.
    """
    form, fix = FORMS[key]
    parts = re.split("[,?]", value.strip()) if key == "dependency" else []
    if bare := next((part for part in parts if _WITHOUT_KIND.match(part)), ""):
        what = "without its kind" if parts == [bare] else f"and {bare} is without its kind"
        kinds = f"write afterok:{bare} (after it ended well) or afterany:{bare}"
        raise origins.error(f"slurm.{key}", f"is {value}, {what}", kinds)
    if not re.fullmatch(form, value.strip(), re.IGNORECASE):
        full = f"slurm.{key}"
        joined = _joined(value) if key in _LISTS else ""
        if joined:
            sign = "=" if origins.is_typed(full) else ": "
            fix = f"write {full}{sign}{shlex.quote(joined) if sign == '=' else joined}"
        raise origins.error(full, f"is {value!r}", fix)


def _joined(value: str) -> str:
    """`a,b` of `a b`, `a, b`, `a and b` and `[a, b]`; empty where an item is no name."""
    listed = re.fullmatch(r"\[([^\[\]]*)\]", value.strip())
    bare = re.sub(r"\[[^\]]*\]", lambda it: "".join(it[0].split()), listed[1] if listed else value)
    words = [it.strip("'\"") for it in re.split(r"[\s,;&]+(?![^\[]*\])", bare)]
    names = [it for it in words if it not in ("", "and")]
    is_sure = all(_ITEM.fullmatch(it) and not it.isdigit() for it in names)  # `node 2` may be node2
    return ",".join(names) if is_sure else ""


def extra_options(
    extra: Mapping[str, object], origins: Origins = NOWHERE
) -> list[tuple[str, str | None]]:
    """The options of `slurm.extra`: `{nice: 100, contiguous: true}`; false leaves one out.

    Raises:
        ConfigError: for a name that cannot be one, that hpc-train sets itself, or that is one
            letter away from an option of sbatch; and for a value that is a list or a mapping.
    """
    options: list[tuple[str, str | None]] = []
    refused: list[ConfigError] = []
    for key, value in extra.items():
        try:
            name = _option_name(key, value, origins)
        except ConfigError as error:
            refused.append(error)
            continue
        if value is True or value is None:
            options.append((name, None))
        elif value is not False:
            options.append((name, str(value)))
    tell_together(refused)
    return options


def _option_name(key: str, value: object, origins: Origins) -> str:
    full = f"slurm.extra.{key}"
    name = key.lstrip("-").replace("_", "-")
    if _NAME.match(name) is None:
        raise origins.error(
            full,
            "cannot be the name of an option of sbatch",
            "write the long name without dashes in front: {nice: 100}",
        )
    if name in OWNED:
        said = "submits no job held" if name == "hold" else f"sets --{name} itself"
        hint = with_value(OWNED[name], value, typed=origins.is_typed(full))
        raise origins.error(full, f": hpc-train {said}", hint)
    if name not in KNOWN:
        meant = did_you_mean(name, KNOWN)
        if meant:
            raise origins.error(full, f": sbatch has no --{name}", meant)
    if isinstance(value, (list, dict)):
        raise origins.error(
            full,
            f"is a {type(value).__name__}, and sbatch takes one value",
            "write the value as sbatch takes it, as one text",
        )
    return name
