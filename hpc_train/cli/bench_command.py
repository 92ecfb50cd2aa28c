"""`hpc-train bench`: how fast a training is over shapes, and which one is worth it."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.common import (
    ConfigCommand,
    check_page,
    flag_options,
    json_option,
    load_config,
    print_json,
    print_table,
    write_page,
)
from hpc_train.cli.option_hints import several_numbers
from hpc_train.errors import HpcTrainError, UsageError
from hpc_train.plan.bench_plan import LEAST_STEPS, STEPS
from hpc_train.runs.run_word import run_word

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.report.bench_table import BenchTable
    from hpc_train.sweeps import Sweep

IN_A_PIPE = 80  # columns
PLAIN = str.maketrans("█▒░▪·", "#=-s.")  # for a terminal that knows no more than ASCII
LEAST_NEEDED = ["STEPS/S", "SAVE", "COMM", "DATA", "COMPUTE"]


def _listed(_: click.Context, option: click.Parameter, typed: str | None) -> str | None:
    """Refuse `1-4`, with the list that is meant."""
    if typed and "," not in typed and (meant := several_numbers(typed)):
        name = option.opts[0]
        raise UsageError(f"{name} {typed} is no list", f"write {name} {meant}")
    return typed


@click.command("bench", cls=ConfigCommand)
@click.argument("cfg", type=click.Path(path_type=Path, readable=False))
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]... [-- ARGUMENT...]")
@click.option("--nodes", metavar="1,2,3", callback=_listed, help="Numbers of nodes (slurm.nodes).")
@click.option(
    "--gpus", metavar="1,4", callback=_listed, help="GPUs, so ranks, a node (slurm.gpus_per_node)."
)
@click.option("--vary", multiple=True, metavar="KEY=VALUES", help="Another key to vary.")
@click.option(
    "--steps", type=click.IntRange(min=LEAST_STEPS), default=STEPS, help="Of each measurement."
)
@click.option("--cluster", type=click.Choice(["slurm", "local"]), help="As of submit.")
@flag_options("time", "partition", "account", "qos", "name", "runs_dir")
@click.option("--no-wait", is_flag=True, help="Leave once the jobs are submitted.")
@click.option("--show", is_flag=True, help="CFG is a bench that was made: its table again.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the table as a page, too.")
@click.option("--dry-run", is_flag=True, help="Print the shapes; touch nothing.")
@json_option
def command(
    cfg: Path,
    overrides: tuple[str, ...],
    nodes: str | None,
    gpus: str | None,
    vary: tuple[str, ...],
    steps: int,
    cluster: str | None,
    no_wait: bool,
    show: bool,
    html: Path | None,
    dry_run: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Measure some steps of the training in CFG in each shape: rate, efficiency, where time goes.

    Example: hpc-train bench --nodes 1,2,3 --vary trainer.precision=32,bf16-mixed cfg.yaml
    """
    from hpc_train import benches
    from hpc_train.backends.submit import detect_cluster

    if html is not None:
        _refuse_page(html, is_early=not show and (no_wait or dry_run))
    if show:
        return _print(benches.bench_table(benches.find_bench(str(cfg))), html, as_json=as_json)
    axes = [
        *([f"slurm.nodes={nodes}"] if nodes is not None else []),
        *([f"slurm.gpus_per_node={gpus}"] if gpus is not None else []),
        *vary,
    ]
    loaded = load_config(cfg, overrides, flags, sweep=axes)
    _refuse_axes(loaded, axes)
    if dry_run:
        return _dry_run(loaded, steps, as_json=as_json)
    where = cluster or detect_cluster()
    bench = benches.submit_bench(loaded, cluster=where, steps=steps)
    _tell(loaded, bench)
    if not no_wait or where == "local":
        _follow(bench, where)
        return _print(benches.bench_table(bench), html, as_json=as_json)
    if as_json:
        print_json(benches.bench_table(bench).to_json())
    return 0


def _refuse_page(path: Path, *, is_early: bool) -> None:
    """Before hours of measuring, and not behind them."""
    if is_early:
        later = "later: hpc-train bench NAME --show --html PAGE"
        raise UsageError("--html is of what was measured, and nothing is waited for", later)
    if str(path) == "-":
        raise UsageError("--html - is standard output, where the table goes", "name a file")
    check_page(path)


def _refuse_axes(loaded: LoadedConfig, axes: list[str]) -> None:
    asked = [typed.partition("=")[0].strip() for typed in axes]
    if foreign := [key for key in loaded.config.sweep if key not in asked]:
        raise UsageError(
            f"the config is a sweep over {foreign[0]}, and a bench is of one training",
            "sweep={} leaves the sweep out; --vary takes what is to be measured",
        )


def _tell(loaded: LoadedConfig, bench: Sweep) -> None:
    if script := loaded.config.script.path:
        said = "its own arguments end it, and of its time only steps/s is measured"
        click.echo(f"note: {script} makes its own Trainer: {said}", err=True)
    name = run_word(bench.directory.path)
    click.echo(f"bench      {bench.directory.path}", err=True)
    click.echo(f"the table  hpc-train bench {name} --show", err=True)


def _follow(bench: Sweep, cluster: str) -> None:
    from hpc_train import benches
    from hpc_train.cli.following import LiveLine

    line = LiveLine()
    try:
        with contextlib.closing(benches.follow_bench(bench, cluster=cluster)) as statuses:
            for status in statuses:
                line.show(f"{status.name}  {status.summary}", "")
    except KeyboardInterrupt:
        line.finish()
        name = run_word(bench.directory.path)
        goes_on = f"left; the jobs go on. End them with: hpc-train cancel {name}"
        click.echo(goes_on if cluster == "slurm" else "left; what had not ended is ended", err=True)
        raise
    line.finish()


def _dry_run(loaded: LoadedConfig, steps: int, *, as_json: bool) -> int:
    from hpc_train import benches
    from hpc_train.plan.bench_plan import shape_text, variant_text

    portable, _, asked = benches.plan_bench(loaded, steps=steps)
    if as_json:
        told = [point.overrides for point in portable.points]
        print_json({"schema_version": 1, "training": asked.training, "points": told})
        return 0
    rows = []
    for number, point in enumerate(portable.points):
        plan = portable.plan_of(number)
        split = (plan.batch.micro_batch_size, plan.batch.accumulate, plan.shape.world_size)
        text = f"{plan.batch.global_batch_size} = {' x '.join(map(str, split))}"
        rows.append(
            [
                shape_text(plan.shape),
                variant_text(point.overrides) or "-",
                "its own" if plan.script else text,
            ]
        )
    print_table(["SHAPE", "OTHERWISE", "BATCH = MICRO x ACCUMULATE x RANKS"], rows)
    click.echo("nothing was submitted and nothing was written (--dry-run)", err=True)
    return 0


def _print(table: BenchTable, html: Path | None, *, as_json: bool) -> int:
    from hpc_train.report.bench_table import picture_lines

    if as_json:
        print_json(table.to_json())
    else:
        click.secho(f"{table.training}  bench {table.bench}  {table.state}", bold=True)
        print_table(table.header, table.cells, least_needed=LEAST_NEEDED)
        width = shutil.get_terminal_size((IN_A_PIPE, 24)).columns
        is_plain = "utf" not in (getattr(sys.stdout, "encoding", "") or "").lower()
        click.echo()
        for text in picture_lines(table, width):
            click.echo(text.translate(PLAIN) if is_plain else text)
        if table.chosen:
            click.echo(f"\nrecommended  {table.chosen.name}: {table.reason}")
    if html is not None:
        from hpc_train.report.page import render_bench

        write_page(html, render_bench(table))
        click.echo(f"written: {html}", err=True)
    return 0 if table.chosen else HpcTrainError.exit_code
