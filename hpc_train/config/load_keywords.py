"""Keywords of `hpc_train.load` that it does not take, told with what to write for each."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.config.call_arguments import SAID_OF_SUBMIT, class_as_text
from hpc_train.config.flags import FLAGS
from hpc_train.config.meant_words.gpu_counts import gpus_of_gres
from hpc_train.config.meant_words.other_words import SAID_OF_KEYS, SWITCHES
from hpc_train.config.meant_words.unknown_key import key_of_word
from hpc_train.config.python_values import as_call, as_texts
from hpc_train.config.words import class_of_object, did_you_mean, shown
from hpc_train.errors import ConfigError

# What belongs to another function of the Python interface.
_SAID_OF_ARGUMENTS = {
    "cluster": "write hpc_train.submit(loaded, cluster='local')",
    "after": "write hpc_train.submit(loaded, after=run)",
    "array": "write hpc_train.load(PATH, sweep=['seed=1,2']), and submit_sweep(loaded)",
    "gres": "write gpus=N, GPUs a node, and 'slurm.gpu_type=TYPE' where the type counts",
    "devices": "write gpus=N, GPUs a node",
}
_TWO = {"seed": 3, "trainer.max_epochs": 5}  # as an example
_SLIP = 0.85  # of a name of a flag, and above
_OF_LOAD = ("arguments", "sweep")


def no_option(name: str, flags: Mapping[str, object], *, script: bool) -> ConfigError:
    """The refusal of a keyword of the Python interface: keys of the config are texts."""
    value, refused = flags[name], f"{name} is no argument of load"
    if dotted := class_of_object(value):
        return ConfigError(f"{name} is {shown(value)}, and no text", class_as_text(name, dotted))
    if isinstance(value, (list, tuple, dict)) and name in ("overrides", "override", "args", "keys"):
        call = as_call(value if isinstance(value, dict) and value else _TWO)
        return ConfigError(refused, f"write each as a text: {call}")
    said = SAID_OF_KEYS.get(name) or _gpus_in_python(name, value) or _SAID_OF_ARGUMENTS.get(name)
    if name in SWITCHES:
        said = f"write it as a text: hpc_train.load(PATH, '{SWITCHES[name]}')"
    key = key_of_word(name, script=script) if not said else ""
    text = ""
    if key:
        keys = {it: key_of_word(it, script=script) for it in flags if _is_a_key(it, flags)}
        texts = {of: flags[it] for it, of in keys.items() if of}
        which = "each" if len(as_texts(texts)) > 1 else "it"
        text = f"write {which} as a text: {as_call(texts)}"
    known = f"known: {', '.join(FLAGS)}; keys of the config are texts: 'model.init_args.{name}=...'"
    options = (*FLAGS, *_OF_LOAD)
    slip = did_you_mean(name, options, cutoff=_SLIP)
    hint = slip or (text if key else said or did_you_mean(name, options))
    return ConfigError(refused, hint or known)


def _is_a_key(name: str, flags: Mapping[str, object]) -> bool:
    """Whether a keyword is none that has a way of its own."""
    others = (*FLAGS, *SAID_OF_KEYS, *_SAID_OF_ARGUMENTS, *SWITCHES)
    return name not in others and not class_of_object(flags[name])


def said_of_option(name: str, value: object) -> str:
    """What an option of the command that is no key of the config is in Python; empty elsewhere.

    Args:
        name: The option's, without dashes.
        value: What was written for it.
    """
    said = _gpus_in_python(name, value) or _SAID_OF_ARGUMENTS.get(name)
    return said or SAID_OF_SUBMIT.get(name, "")


def _gpus_in_python(name: str, value: object) -> str:
    """The number of GPUs, and their type, that were asked for by another name; else empty."""
    count, kind, others = gpus_of_gres(value) if name == "gres" else ("", "", "")
    if name == "devices" and str(value).isdecimal():
        count = str(value)
    asked = f"write gpus={count}" + (f", 'slurm.gpu_type={kind}'" if kind else "")
    return asked if count and not others else ""
