"""The sbatch script of a plan: pure text, the same plan gives the same script."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from string import Template

from hpc_train.config.assets import template_dir
from hpc_train.plan.hostlist import expand
from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import escape_pattern, fits_output, quote_sbatch, quote_shell
from hpc_train.plan.shell import environment_lines
from hpc_train.plan.states import NO_PYTHON
from hpc_train.plan.sweep_plan import SweepPlan, array_text, points_text

HEREDOC = "HPC_TRAIN_PLAN"
PLAN_IN_SCRIPT = re.compile(rf"(?<=<<'{HEREDOC}'\n).*?(?=^{HEREDOC}$)", re.DOTALL | re.MULTILINE)
_OUTPUT = "slurm-%j.log"
_OUTPUT_OF_TASK = "slurm-%A_%a.log"


def render_script(plan: Plan, *, run_dir: str | None = None) -> str:
    """The script that runs the attempts of the plan in its batch step, enough alone.

    Args:
        plan: What will happen, its folders relative to the one that the job starts in.
        run_dir: Absolute path of the run that it goes on with, the only thing in which the script
            of a submission differs; without one the supervisor makes it, by SLURM_JOB_ID.

    Raises:
        ConfigError: for values that no script can hold (a NUL, a line break in an option).
    """
    return _rendered(
        plan,
        title=_title(plan),
        options=sbatch_arguments(plan, output=_output(run_dir and f"{run_dir}/submitit", _OUTPUT)),
        where="" if run_dir is None else f" --run-dir {quote_shell(run_dir, 'runs_dir')}",
        body=_body(plan.to_json()),
    )


def script_elsewhere(script: str, run_dir: str) -> str:
    """The script of a run that was moved to `run_dir`.

    Raises:
        HpcTrainError: it holds no plan.
    """
    found = PLAN_IN_SCRIPT.search(script)
    return render_script(Plan.from_json(found[0] if found else ""), run_dir=run_dir)


def render_sweep(sweep: SweepPlan, *, sweep_dir: str | None = None) -> str:
    """The script of a job array whose task K runs the attempts of point K, enough alone.

    Args:
        sweep: As `plan` is to `render_script`.
        sweep_dir: Absolute path of the sweep that it belongs to; without one the supervisor makes
            it, by SLURM_ARRAY_JOB_ID.

    Raises:
        ConfigError: as `render_script`.
    """
    tasks = array_text(range(len(sweep.points)), sweep.at_most)
    options = sbatch_arguments(
        sweep.plan, output=_output(sweep_dir and f"{sweep_dir}/logs", _OUTPUT_OF_TASK)
    )
    return _rendered(
        sweep.plan,
        title=f"a sweep of {points_text(len(sweep.points))}, the first: {_title(sweep.plan)}",
        options=[*options, f"--array={tasks}"],
        where="" if sweep_dir is None else f" --sweep-dir {quote_shell(sweep_dir, 'runs_dir')}",
        body=sweep.to_json().rstrip("\n"),
    )


def _rendered(plan: Plan, *, title: str, options: Sequence[str], where: str, body: str) -> str:
    marks = {
        "title": title,
        "options": "\n".join(f"#SBATCH {option}" for option in options),
        "setup": "\n".join(environment_lines(plan.shell)),
        "python_check": _python_check(plan.shell.python),
        "supervisor": f"{quote_shell(plan.shell.python, 'python')} -m hpc_train.supervisor{where}",
        "heredoc": HEREDOC,
        "plan_json": body,
    }
    template = (template_dir() / "srun.sbatch.in").read_text(encoding="utf-8")
    return _Marks(template).substitute(marks)


def _python_check(python: str) -> str:
    """Lines that end the job where its node has not the Python; bash would name its own line."""
    brings = "submit from an environment that all nodes see, on the shared file system"
    if "/" not in python:  # that of an environment which the lines before have activated
        brings = "what env activates has to bring it, as the nodes see it"
    said = f"{NO_PYTHON}, {python}", f"  fix: {brings}"
    return "\n".join(
        [
            f"if ! type -- {quote_shell(python, 'python')} >/dev/null 2>&1; then",
            '  printf "hpc-train: error: %s %s\\n%s\\n" "${SLURMD_NODENAME:-$HOSTNAME}" \\',
            f"    {' '.join(quote_shell(words, 'python') for words in said)} >&2",
            "  exit 127",
            "fi",
        ]
    )


class _Marks(Template):
    """`@{title}`: a $ is the shell's. jinja2 took a tenth of `submit` to import."""

    delimiter = "@"


def sbatch_arguments(plan: Plan, *, output: str) -> list[str]:
    """The options as they stand behind `#SBATCH`, quoted for sbatch's own parser.

    Args:
        plan: Its `slurm.options` in their order.
        output: The log of the batch step, as a pattern of sbatch (`%j` is the job id).
    """
    options = [*plan.slurm.options, ("output", output)]
    return [
        f"--{name}" if value is None else f"--{name}={quote_sbatch(value, f'--{name}')}"
        for name, value in options
    ]


def job_options(plan: Plan, excluded: Sequence[str]) -> list[str]:
    """What sbatch is told beside the script: where the job starts, and nodes to leave out.

    Args:
        plan: With its folders settled.
        excluded: Nodes; options given here win over those in the script (sbatch(1)).
    """
    leave_out = [f"--exclude={exclusion(plan, excluded)}"] if excluded else []
    return [f"--chdir={plan.workdir}", *leave_out]


def demanded_nodes(plan: Plan) -> frozenset[str]:
    """Nodes that the job's nodelist names, all of which it gets (sbatch(1)); none of a file's."""
    named = dict(plan.slurm.options).get("nodelist") or ""
    return frozenset() if "/" in named or not named else frozenset(expand(named))


def exclusion(plan: Plan, nodes: Sequence[str]) -> str:
    """`nodes` and those that the user leaves out, unless these stand in a file (sbatch(1))."""
    own = dict(plan.slurm.options).get("exclude") or ""
    return ",".join([*([own] if own and "/" not in own else []), *nodes])


def _title(plan: Plan) -> str:
    shape = plan.shape
    what = f"{shape.nodes} x {shape.ranks_per_node}" + ("" if shape.gpus_per_node else " on CPUs")
    if plan.script is not None:
        return f"{shape.world_size} ranks ({what}) of a script"
    batch = plan.batch
    split = f"{batch.micro_batch_size} x {batch.accumulate} x {shape.world_size}"
    return f"{shape.world_size} ranks ({what}), global batch {batch.global_batch_size} = {split}"


def _output(folder: str | None, name: str) -> str:
    if folder is None or not fits_output(folder):
        return name
    return f"{escape_pattern(folder)}/{name}"


def _body(plan_json: str) -> str:
    """The plan, a section a line. JSON escapes line breaks, so no line can end the heredoc."""
    sections = json.loads(plan_json).items()
    lines = [
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in sections
    ]
    return "{" + ",\n ".join(lines) + "}"
