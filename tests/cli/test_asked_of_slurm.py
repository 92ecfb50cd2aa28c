"""What sinfo tells before a submission: memory that no node has, and nodes that are out of use."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

NETS = """\
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule): ...
class Data(LightningDataModule): ...
"""
CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net}
data: {class_path: nets.Data}
trainer: {accelerator: cpu, max_epochs: 1}
slurm:
  nodes: 1
  gpus_per_node: 2
"""
NODES = """\
case "$*" in
  *%T*) cat <<'END'
train*|n1|{0}|none
train*|n2|{1}|none
big|n3|idle|none
END
  ;;
  *) cat <<'END'
train*|infinite|2|1-infinite|8|gpu:4|n[1-2]|N/A|{mib}
big|infinite|1|1-infinite|8|gpu:4|n3|N/A|64000
END
esac"""
YEARS, SOON = (
    time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + days * 86400))
    for days in (366, 2)
)
NOT_AVAILABLE = (
    "echo 'allocation failure: Requested node configuration is not available' >&2;exit 1"
)


@pytest.fixture
def project(taken, tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    taken.has("sinfo", NODES.format("idle", "idle", mib=16000))
    return tmp_path


@pytest.mark.parametrize(
    ("key", "size", "typed", "there"),
    [
        ("mem", "65G", ["--partition", "train"], "write slurm.mem=15G or less"),
        ("mem", "2T", ["--partition", "train,big"], "write slurm.mem=62G or less"),
        ("mem_per_cpu", "9000M", ["--partition", "train"], "write slurm.mem_per_cpu=7G or less"),
        (
            *("mem_per_cpu", "3000M", ["--partition", "train", "slurm.cpus_per_gpu=4"]),
            "write slurm.mem_per_cpu=2000M or less",
        ),
        (
            *("mem_per_gpu", "9G", ["--partition", "train", "trainer.accelerator=gpu"]),
            "write slurm.mem_per_gpu=7G or less",
        ),
    ],
)
@pytest.mark.parametrize("how", [[], ["--test-only"], ["--sweep", "seed=1,2"]])
def test_memory_that_no_node_has_is_told_with_what_a_node_has(
    hpc, taken, project: Path, key: str, size: str, typed: list[str], there: str, how: list[str]
) -> None:
    taken.has("sbatch", "exit 9")
    taken.has("scontrol", "echo MaxArraySize = 1001")
    (project / "cfg.yaml").write_text(f"{CONFIG}  {key}: {size}\n")
    said = hpc("submit", "cfg.yaml", *typed, *how)
    assert said.code == 4, said
    assert said.err.startswith(f"error: cfg.yaml:9: slurm.{key} is {size}")
    assert "no node of the partition has so much (train 16000M" in said.err
    assert f"fix: {there}" in said.err
    fixed = hpc("submit", "cfg.yaml", *typed, there.split()[1], *how)
    assert "has so much" not in fixed.err, "sbatch is asked then"


@pytest.mark.parametrize(
    ("mib", "memory"),
    [
        (16000, "mem: 15G"),
        (16000, "mem: 0"),
        (16000, "mem: 16000M"),
        (1, "mem: 64G"),  # never configured
        ("n/a", "mem: 64G"),
    ],
)
def test_memory_that_may_be_there_is_slurms_to_judge(
    hpc, taken, project: Path, mib: int | str, memory: str
) -> None:
    taken.has("sinfo", NODES.format("idle", "idle", mib=mib))
    (project / "cfg.yaml").write_text(f"{CONFIG}  {memory}\n")
    assert hpc("submit", "cfg.yaml", "--partition", "train").code == 0


@pytest.mark.parametrize(
    ("states", "words", "waits"),
    [
        (
            ("drained", "down*"),
            [],
            "2 of the 2 nodes that it may have are down or drained (n[1-2])",
        ),
        (("idle", "drained"), ["--nodes", "2"], "1 of the 2 nodes"),
        (("idle", "draining"), ["slurm.nodelist=n2"], "1 of the 1 nodes"),
        (("idle", "drained"), ["slurm.exclude=n1"], "1 of the 1 nodes"),
    ],
)
def test_test_only_tells_of_nodes_that_are_out_of_use(
    hpc, taken, project: Path, states: tuple[str, str], words: list[str], waits: str
) -> None:
    taken.has("sinfo", NODES.format(*states, mib=16000))
    taken.has("sbatch", NOT_AVAILABLE)
    said = hpc("submit", "cfg.yaml", "--test-only", *words)
    assert said.code == 0, said
    assert said.out.startswith(f"Slurm would take it: it would wait, since {waits}")
    assert "`sinfo -R` says why, and nothing has to be changed" in said.out
    each = hpc("submit", "cfg.yaml", "--test-only", "--partitions", "train", *words, "--json")
    assert waits in json.loads(each.out)["partitions"][0]["waits"]


@pytest.mark.parametrize(("begin", "is_told"), [([], True), (["slurm.begin=now+400days"], False)])
def test_test_only_behind_jobs_without_a_limit_names_no_start(
    hpc, taken, project: Path, begin: list[str], is_told: bool
) -> None:
    """Slurm counts a year for each of them."""
    taken.has("sbatch", f"echo 'sbatch: Job 4 to start at {YEARS} using 4 processors' >&2")
    said = hpc("submit", "cfg.yaml", "--test-only", *begin)
    told = "jobs in front have no time limit, so its start is not known"
    assert (told in said.out) == is_told
    assert ("to start at" in said.out) != is_told
    each = hpc("submit", "cfg.yaml", "--test-only", "--partitions", "train", *begin, "--json")
    (row,) = json.loads(each.out)["partitions"]
    assert (row["waits"] == told, row["start"] == "") == (is_told, is_told)
    taken.has("sbatch", f"echo 'sbatch: Job 4 to start at {SOON} using 4 processors' >&2")
    assert "to start at" in hpc("submit", "cfg.yaml", "--test-only").out


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (("idle", "drained"), []),
        (("allocated", "mixed"), ["--nodes", "2"]),
        (("drained", "drained"), ["--partition", "big"]),
        (("drained", "drained"), ["slurm.constraint=a100"]),
    ],
)
def test_what_nodes_out_of_use_do_not_explain_stays_slurms_refusal(
    hpc, taken, project: Path, states: tuple[str, str], words: list[str]
) -> None:
    taken.has("sinfo", NODES.format(*states, mib=16000))
    taken.has("sbatch", NOT_AVAILABLE)
    said = hpc("submit", "cfg.yaml", "--test-only", *words)
    assert said.code == 4
    assert "Requested node configuration is not available" in said.err


def install_torch(project: Path, monkeypatch, torch: str) -> None:
    """The metadata alone, which tells the version."""
    metadata = project / "site" / f"torch-{torch}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {torch}\n")
    monkeypatch.syspath_prepend(str(metadata.parent))


@pytest.mark.parametrize(
    ("asked", "words", "is_noted"),
    [
        ('accelerator="gpu"', [], True),
        ('accelerator="cuda", devices=2', ["--gpus", "2"], True),
        ('accelerator="gpu"', ["script.accelerator=cpu"], False),
        ('accelerator="auto"', [], False),
        ("accelerator=sys.argv[1]", ["--", "auto"], False),
        ("", [], False),
    ],
)
def test_a_torch_without_cuda_is_noted_of_a_script_for_gpus(
    hpc, taken, project: Path, monkeypatch, asked: str, words: list[str], is_noted: bool
) -> None:
    """Only of a config it was."""
    install_torch(project, monkeypatch, "2.6.0+cpu")
    (project / "train.py").write_text(
        "import sys\nfrom lightning.pytorch import Trainer\n"
        f"if __name__ == '__main__':\n    Trainer({asked}).fit(None)\n"
    )
    for more in (["--dry-run"], []):
        said = hpc("submit", "train.py", *more, *words)
        assert said.code == 0, said
        assert ("or train on CPUs with script.accelerator=cpu" in said.err) is is_noted, said


@pytest.mark.parametrize(
    ("torch", "words", "is_noted"),
    [
        ("2.6.0+cpu", ["trainer.accelerator=gpu"], True),
        ("2.6.0+cpu", ["no accelerator"], True),
        ("2.6.0+cpu", ["no accelerator", "--sweep", "seed=1,2"], True),
        ("2.6.0+cpu", [], False),
        ("2.6.0+cpu", ["trainer.accelerator=auto"], False),
        ("2.6.0+cpu", ["trainer.accelerator=gpu", "env.setup=[ulimit -c 0]"], False),
        ("2.6.0+cpu", ["trainer.accelerator=gpu", "env.variables.PYTHONPATH=/x"], False),
        ("2.6.0+cu124", ["trainer.accelerator=gpu"], False),
        ("2.6.0", ["trainer.accelerator=gpu"], False),
    ],
)
def test_a_torch_without_cuda_is_noted_where_gpus_are_asked_for(
    hpc, taken, project: Path, monkeypatch, torch: str, words: list[str], is_noted: bool
) -> None:
    install_torch(project, monkeypatch, torch)
    if words[:1] == ["no accelerator"]:
        (project / "cfg.yaml").write_text(CONFIG.replace("accelerator: cpu, ", ""))
        words = words[1:]
    for more in (["--dry-run"], []):
        if more or "--sweep" not in words:
            said = hpc("submit", "cfg.yaml", *words, *more)
            assert said.code == 0, said
            assert ("is built without CUDA" in said.err) is is_noted, said


LIMITS = """cat <<'END'
short*|5:00|2|1-infinite|8|gpu:4|n[1-2]|N/A|16000|up
down|infinite|2|1-infinite|8|gpu:4|n[1-2]|N/A|16000|down
few|infinite|1|1-infinite|8|gpu:4|n1|N/A|16000|up
long|{long}|2|1-infinite|8|gpu:4|n[1-2]|N/A|16000|up
END"""


@pytest.mark.parametrize(
    ("limit", "words", "fix"),
    [
        ("infinite", "--time 2-00:00:00", "write --partition long, which allows it"),
        ("2-00:00:00", "--time 2-00:00:00", "write --partition long, which allows it"),
        (
            "infinite",
            "--time 0:12:00",
            (
                "write --partition long, which allows it; or a chain of 4 jobs does it: write"
                " --partition short --time 0:05:00; the run saves before each limit and goes on"
            ),
        ),
        (
            "0:10:00",
            "--time 0:12:00",
            (
                "a chain of 4 jobs does it: write --partition short --time 0:05:00; the run saves"
                " before each limit and goes on"
            ),
        ),
        (
            "0:10:00",
            "--time 0:12:00 requeue.enabled=false",
            (
                "a chain of 4 jobs does it: write --partition short --time 0:05:00 and"
                " requeue.enabled=true, so that the run goes on at each limit"
            ),
        ),
    ],
)
def test_a_time_that_is_too_long_is_told_with_the_partition_that_allows_it(
    hpc, taken, project: Path, limit: str, words: str, fix: str
) -> None:
    taken.has("sinfo", LIMITS.format(long=limit))
    typed = [
        "submit",
        "cfg.yaml",
        "--partition",
        "short",
        "--nodes",
        "2",
        "slurm.signal_lead_s=100",
    ]
    message = "is longer than the partition allows (short 5:00)"
    said = hpc(*typed, *words.split())
    assert (said.code, message in said.err) == (4, True)
    assert said.err.splitlines()[-1] == f"  fix: {fix}"
    if "which allows it" in fix:
        of_key = [*typed[:2], "slurm.partition=short", *typed[4:], *words.split()]
        assert "fix: write slurm.partition=long, which allows it" in hpc(*of_key).err
        typed[3] = "long"
        assert hpc(*typed, *words.split()).code == 0
