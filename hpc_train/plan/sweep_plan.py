"""The plan of a sweep: the first point's plan, and what each point has otherwise. Pure data."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hpc_train.codec import decode, encode
from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.plan.hostlist import fold_numbers
from hpc_train.plan.plan import PLAN_SCHEMA_VERSION, Plan

E = TypeVar("E", bound=HpcTrainError)
# What one job array has once for all of its tasks: its script, and what sbatch is told.
_SHARED = {
    "name": "name",
    "runs_dir": "runs_dir",
    "shape": "the shape",
    "slurm": "slurm, or requeue.enabled",
    "shell": "env",
}


@dataclass(frozen=True)
class SweepPoint:
    """One point: what the user chose, and what follows from it in the plan.

    Attributes:
        overrides: Value by dotted key of the config.
        changes: Pairs of a path into the first point's plan and the value there.
    """

    overrides: dict[str, Any]
    changes: list[tuple[list[str], Any]]


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """One job array, decided; point K is its task K."""

    plan: Plan
    points: tuple[SweepPoint, ...]
    at_most: int | None = None  # tasks that run together
    schema_version: int = PLAN_SCHEMA_VERSION

    def plan_of(self, number: int) -> Plan:
        """The plan of one point.

        Raises:
            HpcTrainError: when there is no such point.
        """
        if not 0 <= number < len(self.points):
            raise HpcTrainError(
                f"the sweep has the points 0 to {len(self.points) - 1}, and no {number}",
                "submit its script as it is, without another --array",
            )
        document = copy.deepcopy(encode(self.plan))
        for path, value in self.points[number].changes:
            holder = document
            for word in path[:-1]:
                holder = holder[word]
            holder[path[-1]] = value
        return decode(Plan, document)

    def placed(self, workdir: str, runs_dir: str) -> SweepPlan:
        """The same with its folders settled, both absolute."""
        return dataclasses.replace(self, plan=self.plan.placed(workdir, runs_dir))

    def to_json(self) -> str:
        """The document that is `sweep.json`, a point a line. JSON escapes line breaks."""
        sections = encode(self.plan).items()
        plan = ",\n ".join(f"{_text(name)}: {_text(value)}" for name, value in sections)
        points = ",\n".join(_text(vars(point)) for point in self.points)
        head = f'"schema_version": {self.schema_version},\n"at_most": {_text(self.at_most)}'
        return f'{{{head},\n"plan": {{{plan}}},\n"points": [\n{points}\n]}}\n'

    @classmethod
    def from_json(cls, text: str) -> SweepPlan:
        """Read what `to_json` wrote.

        Raises:
            HpcTrainError: when the text is none, or of a newer hpc-train.
        """
        try:
            document = json.loads(text)
            if document["schema_version"] != PLAN_SCHEMA_VERSION:
                raise ValueError(f"schema_version {document['schema_version']}")
            return decode(cls, document)
        except (ValueError, KeyError, TypeError) as error:
            raise HpcTrainError(
                f"sweep.json cannot be read: {error}",
                "it was written by another version of hpc-train, or is damaged: submit again",
            ) from error


def sweep_point(
    first: Plan, plan: Plan, overrides: Mapping[str, Any], *, is_task: bool = True
) -> SweepPoint:
    """A point whose plan is `plan`.

    Args:
        is_task: Of one job array, and not a job of its own.

    Raises:
        CheckError: when a task asks Slurm for something else than the first point does.
    """
    changes: list[tuple[list[str], Any]] = []
    for field in dataclasses.fields(Plan):
        before, after = getattr(first, field.name), getattr(plan, field.name)
        if before is after or before == after:
            continue
        if is_task and field.name in _SHARED:
            raise CheckError(
                f"it differs from the first point in {_SHARED[field.name]}, and the points of a"
                " sweep are the tasks of one job array, which share that",
                "submit a sweep for each of these values",
            )
        changes += differing(before, after, [field.name])
    return SweepPoint(dict(overrides), changes)


def refused_point(number: int, overrides: Mapping[str, Any], error: E) -> E:
    """The same error, which names the point as well."""
    error.message = f"point {number} of the sweep ({point_text(overrides)}): {error.message}"
    return error


def point_text(overrides: Mapping[str, Any]) -> str:
    """A point as it would be typed: `model.init_args.lr=0.1 seed=2`."""
    return " ".join(f"{key}={value}" for key, value in overrides.items())


def differing(before: Any, after: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """The deepest places below `path` where two values differ, with the later one as JSON."""
    if dataclasses.is_dataclass(after):
        before, after = vars(before), vars(after)
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for name, value in after.items():
            yield from differing(before[name], value, [*path, name])
    elif before != after:
        yield path, encode(after)


def array_text(numbers: Sequence[int], at_most: int | None = None) -> str:
    """Tasks in the form of sbatch's --array, `0-2,7%4`."""
    text = fold_numbers(numbers)
    return text if at_most is None else f"{text}%{at_most}"


def points_text(count: int) -> str:
    """`1 point`, `2 points`."""
    return f"{count} point{'s' * (count != 1)}"


def task_id(array: str, number: int) -> str:
    """The job of one point, as Slurm's commands take it."""
    return f"{array}_{number}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
