"""Variables by which Slurm or MPI tell a process its place, and what is set wherever it runs.

Of Slurm: srun(1), "OUTPUT ENVIRONMENT VARIABLES". Of Open MPI: "Environment variables" of
mpirun(1), whose OMPI_COMM_WORLD_NODE_RANK counts the ranks on a node. Of MPICH and Intel MPI:
PMI_RANK, PMI_SIZE, MPI_LOCALRANKID; of MVAPICH2: its user guide.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from hpc_train.config.scripts.script_call_arguments import sure_nodes

_RANK, _LOCAL, _SIZE, _NODE, _PER_NODE = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "LOCAL_WORLD_SIZE"),
)
INSTEAD = {
    "SLURM_PROCID": _RANK,
    "SLURM_LOCALID": _LOCAL,
    "SLURM_NTASKS": _SIZE,
    "SLURM_NPROCS": _SIZE,
    "SLURM_NODEID": _NODE,
    "SLURM_NTASKS_PER_NODE": _PER_NODE,
    "SLURM_GPUS_ON_NODE": _PER_NODE,
    "OMPI_COMM_WORLD_RANK": _RANK,
    "OMPI_COMM_WORLD_LOCAL_RANK": _LOCAL,
    "OMPI_COMM_WORLD_NODE_RANK": _LOCAL,
    "OMPI_COMM_WORLD_SIZE": _SIZE,
    "OMPI_COMM_WORLD_LOCAL_SIZE": _PER_NODE,
    "PMI_RANK": _RANK,
    "PMIX_RANK": _RANK,
    "PMI_SIZE": _SIZE,
    "MPI_LOCALRANKID": _LOCAL,
    "MPI_LOCALNRANKS": _PER_NODE,
    "MV2_COMM_WORLD_RANK": _RANK,
    "MV2_COMM_WORLD_LOCAL_RANK": _LOCAL,
    "MV2_COMM_WORLD_SIZE": _SIZE,
    "MV2_COMM_WORLD_LOCAL_SIZE": _PER_NODE,
}
# Of a task of an array alone: sbatch(1), "JOB ARRAY SUPPORT". A sweep is one.
_OF_ARRAY = "SLURM_ARRAY_"
_AS_SWEEP = (
    "the job is no array: take the value as an argument of the script, and give all of them with"
    " --sweep lr=0.1,0.01 -- --lr {lr}"
)
_NODES = ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")
_LISTS = ("SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST", "SLURM_LAUNCH_NODE_IPADDR")
ENVIRON = ("os.environ", "environ")
_GET = ("os.environ.get", "environ.get", "os.getenv", "getenv")
_CHANGE = ("update", "setdefault", "putenv", "load_dotenv")


def is_of_launcher(name: str) -> bool:
    """Whether Slurm or a launcher of MPI sets it, and nothing else does."""
    return name in INSTEAD or name.startswith("SLURM_")


def written_instead(name: str) -> str:
    """What a script writes in place of such a variable."""
    if name in INSTEAD:
        return f'write os.environ["{INSTEAD[name]}"], which hpc-train sets everywhere'
    if name in _NODES:
        return f'write int(os.environ["{_SIZE}"]) // int(os.environ["{_PER_NODE}"])'
    if name in _LISTS:
        return 'write os.environ["MASTER_ADDR"] for the address that is made of it: it is set'
    if name.startswith(_OF_ARRAY):
        return _AS_SWEEP
    return f'write os.environ.get("{name}", VALUE), with what is to hold without Slurm'


def read_variable(node: ast.AST) -> tuple[str, ast.expr | None] | None:
    """The name in `os.environ["X"]`, `os.environ.get("X", 0)` and `os.getenv("X")`, with the rest.

    The second is what is taken where it is not set: None for nothing. None of another expression.
    """
    named: ast.expr | None = None
    default: ast.expr | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        named = node.slice if ast.unparse(node.value) in ENVIRON else None
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in _GET and not node.keywords:
        named, default, *_ = (*node.args, None, None)
    if not isinstance(named, ast.Constant) or not isinstance(named.value, str):
        return None
    is_none = isinstance(default, ast.Constant) and default.value is None
    return named.value, None if is_none else default


def notes_on_variables(
    script: str, tree: ast.Module, environ: Container[str], *, ranks: int
) -> Iterator[str]:
    """A line for each that a script surely reads and that is not set where it starts.

    Args:
        script: As it is shown.
        tree: Its text.
        environ: Where it starts.
        ranks: How many run it.
    """
    for line, name, taken in _unset(tree, environ, ranks):
        said = f", so that each of the {ranks} ranks takes {taken}" if taken else ""
        yield f"{script}:{line}: {name} is not set here{said}: {written_instead(name)}"


def notes_on_array(script: str, tree: ast.Module) -> Iterator[str]:
    """The same of what Slurm sets for the tasks of an array, for a job that is none."""
    others = {it for it in _texts(tree) if not it.startswith(_OF_ARRAY)}
    yield from notes_on_variables(script, tree, others, ranks=1)


def _unset(tree: ast.Module, environ: Container[str], ranks: int) -> Iterator[tuple[int, str, str]]:
    """The line of each, its name, and what is taken in its place: nothing where it fails there."""
    known = {name for name in _texts(tree) if is_of_launcher(name) and name not in environ}
    known &= {name for name in known if is_only_read(tree, name)}
    if not known or any(changes_environment(it) for it in ast.walk(tree)):
        return
    nodes = list(sure_nodes(tree))
    inner = {
        id(part)
        for it in nodes
        if isinstance(it, ast.Call) and ast.unparse(it.func) in _GET
        for given in it.args[1:]
        for part in ast.walk(given)
    }
    told = set()
    for node in nodes:
        name, default = read_variable(node) or ("", None)
        if name not in known or name in told or not isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.Subscript) or (default is None and _is_number(node, nodes)):
            told.add(name)
            yield node.lineno, name, ""
        elif _is_taken(tree, name, default) and ranks > 1 and id(node) not in inner:
            told.add(name)
            yield node.lineno, name, ast.unparse(default).strip("'") if default else ""


def _is_number(node: ast.expr, nodes: list[ast.AST]) -> bool:
    """Whether `int` is asked of it, which cannot be of nothing."""
    calls = (it for it in nodes if isinstance(it, ast.Call) and it.args)
    return any(it.args[0] is node and ast.unparse(it.func) in ("int", "float") for it in calls)


def _is_taken(tree: ast.Module, name: str, default: ast.expr | None) -> bool:
    """Whether each rank takes the same number in its place, and the script has no other source."""
    value = default.value if isinstance(default, ast.Constant) else None
    is_number = isinstance(value, int | str) and str(value).isdecimal()
    other = INSTEAD.get(name, "")
    return bool(other) and is_number and other not in _texts(tree)


def is_only_read(tree: ast.Module, name: str) -> bool:
    """Whether nothing but a reading of it has its name: no `in os.environ`, and no assignment."""
    read = sum((read_variable(it) or ("",))[0] == name for it in ast.walk(tree))
    return read == _texts(tree).count(name)


def _texts(tree: ast.Module) -> list[str]:
    values = (it.value for it in ast.walk(tree) if isinstance(it, ast.Constant))
    return [it for it in values if isinstance(it, str)]


def changes_environment(node: ast.AST) -> bool:
    """Whether it may set variables of names that the text does not show."""
    called = ast.unparse(node.func).split(".") if isinstance(node, ast.Call) else []
    of_environ = "environ" in called or called[-1:] in (["putenv"], ["load_dotenv"])
    return of_environ and called[-1] in _CHANGE
