"""`hpc-train translate`: what a command of a tutorial is here."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from hpc_train.cli.common import json_option, print_json, shell_word
from hpc_train.cli.translated_script import settle_script
from hpc_train.config.meant_words.near_files import LOGS, MADE_BY_US, SCRIPTS, absent_file
from hpc_train.config.meant_words.sbatch_lines import directives_of
from hpc_train.errors import ConfigError, UsageError

_LONGEST = 1_000_000  # characters of a batch script


@click.command("translate", context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="COMMAND", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--keep-nccl", is_flag=True, help="Keep NCCL_* that the preflight would choose.")
@json_option
def command(words: tuple[str, ...], keep_nccl: bool, as_json: bool) -> int:
    """Print the config and the submit line for COMMAND, as it stands in a tutorial.

    Put it in quotes: without them the shell replaces its variables and ends it at a && or |.

    COMMAND may be a file, the script that sbatch takes: hpc-train translate job.sbatch

    Else it is of torchrun, torch.distributed.launch, accelerate, deepspeed, srun or sbatch (also
    its #SBATCH lines), or the arguments of a Lightning Trainer: "Trainer(gpus=4)".

    The exit code is 3 where a word has no equivalent.
    """
    import yaml

    from hpc_train.config.trainer_args import trainer_parameters
    from hpc_train.plan.translate import translate

    text = words[0] if len(words) == 1 else shlex.join(words)
    file = _file_meant(text)
    file, script = (file, _batch_script(file)) if file else _batch_of_sbatch(text)
    if MADE_BY_US in script:
        fix = f"it is a rendered training: sbatch {shell_word(file)}"
        raise UsageError(f"{file} was made by hpc-train, and is translated already", fix)
    known = list(trainer_parameters(sys.path))
    home = str(Path("~").expanduser())
    made = translate(script or text, known, keep_nccl=keep_nccl, here=str(Path.cwd()), home=home)
    if file and not script:
        _refuse_no_script(file, [word for word, _ in made.refused])
    settle_script(made)
    if as_json:
        document = {"schema_version": 1, "config": made.nested(), "command": made.submit_line()}
        said = [{"word": word, "text": what} for word, what in made.said]
        refused = [{"word": word, "text": what} for word, what in made.refused]
        print_json({**document, "said": said, "refused": refused})
        return ConfigError.exit_code if made.refused else 0
    for word, what in made.said:
        click.echo(f"# {' '.join(word.split())}: {what}")
    config = made.nested()
    if config:
        click.secho("# config.yaml", bold=True)
        click.echo(yaml.safe_dump(config, sort_keys=False, allow_unicode=True).rstrip())
    if config or not made.refused:  # of a command that starts nothing, nothing is left
        click.secho("# the command", bold=True)
        # What is redirected into a file is a config, with the command as a comment in it.
        is_config = bool(config) and not sys.stdout.isatty()
        click.echo(f"# {made.submit_line()}" if is_config else made.submit_line())
    for word, why in made.refused:
        click.secho("no equivalent: ", err=True, fg="red", nl=False)
        click.echo(f"{' '.join(word.split())}: {why}", err=True)
    return ConfigError.exit_code if made.refused else 0


def _file_meant(text: str) -> str:
    """The file of `job.sbatch`, `sbatch job.sbatch` and `bash ./job.sh`; empty for other words."""
    try:
        if Path(text).is_file():  # its name may have blanks
            return text
        words = shlex.split(text)
    except (OSError, ValueError):  # a whole script, too long for a name
        return ""
    if words[:1] in ([it] for it in ("sbatch", "bash", "sh", "source", ".")):
        words = words[1:]
    return words[0] if len(words) == 1 and words[0][:1] != "-" else ""


def _batch_of_sbatch(text: str) -> tuple[str, str]:
    """The file of `sbatch OPTIONS job.sh ARGUMENTS`, and its text with what is typed; or empty."""
    from hpc_train.plan.translate_batch import batch_file_of, with_typed

    try:
        words = [] if "\n" in text else shlex.split(text)
    except ValueError:
        return "", ""
    name, _ = batch_file_of(words)
    script = _batch_script(name) if name else ""
    return (name, with_typed(script, words)) if script else ("", "")


def _refuse_no_script(file: str, refused: list[str]) -> None:
    """Refuse a word that is no command and whose form is that of a file.

    Args:
        file: The word.
        refused: Words that are no commands.

    Raises:
        UsageError: there is no such file, or it is none of the shell.
    """
    path = Path(file)
    if file not in refused and path.name not in refused:
        return
    typed = shell_word(file)
    if path.is_dir():
        scripts = sorted(str(it) for it in path.iterdir() if it.suffix in SCRIPTS)
        fix = f"name the batch script in it: {', '.join(scripts[:5])}" if scripts else ""
        raise UsageError(f"{file} is a folder", fix or "name a batch script")
    if path.is_file() and path.suffix in (".yaml", ".yml"):
        raise UsageError(f"{file} is a config already", f"hpc-train submit {typed}")
    if path.is_file() and path.suffix in LOGS:
        raise UsageError(f"{file} is a log, and no command", f"hpc-train diagnose {typed} reads it")
    if path.is_file():
        what = "is empty" if not path.stat().st_size else "is no script that can be read"
        raise UsageError(f"{file} {what}", "name a batch script, or give the command in quotes")
    if absent := absent_file(file):
        raise UsageError(*absent)
    if "/" in file:
        raise UsageError(f"there is no file {file}", "name a batch script, or a command in quotes")


def _batch_script(name: str) -> str:
    """The text of a file of shell lines; empty where it is none."""
    try:
        with open(name, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - any text
            text = stream.read(_LONGEST)
    except (OSError, ValueError):
        return ""
    if name.endswith(".py"):  # `sbatch train.py`: of Python only what sbatch reads of it
        directives = [f"#SBATCH {it}" for it in directives_of(text).values()]
        return "\n".join([*directives, f"srun python {shlex.quote(name)}"])
    is_script = name.endswith(SCRIPTS)
    shebang = text.startswith("#!") and "sh" in text.partition("\n")[0]
    return text if is_script or shebang or "\n#SBATCH" in text else ""
