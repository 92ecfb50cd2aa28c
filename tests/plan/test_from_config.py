from __future__ import annotations

from typing import Any

import pytest

from hpc_train.config.meant_words.sbatch_names import KNOWN, OWNED
from hpc_train.config.meant_words.sbatch_values import with_value
from hpc_train.config.origins import Origins
from hpc_train.errors import CheckError, ConfigError
from hpc_train.plan.from_config import make_plan
from hpc_train.plan.plan import Batch, ObjectSpec, Plan, Shape
from tests.plan.configs import config, no_requeue


def plan(**changes: Any) -> Plan:
    return make_plan(config(**changes), workdir="/home/me/code", python="/opt/py/bin/python3")


def options(**changes: Any) -> dict[str, str | None]:
    return dict(plan(**changes).slurm.options)


def test_a_plan_is_read_back_from_its_json_unchanged() -> None:
    made = plan(
        slurm={"time": "1:00:00", "extra": {"nice": 100}, "exclusive": True},
        env={"modules": ["cuda"], "variables": {"A": "ü\n"}, "passthrough": ["HF_TOKEN"]},
    )
    assert Plan.from_json(made.to_json()) == made


def test_the_options_of_sbatch_follow_from_the_shape() -> None:
    made = plan(slurm={"spares": 1, "cpus_per_gpu": 8, "gpu_type": "a100", "mem": "64G"})
    assert made.slurm.options == [
        ("job-name", "digits"),
        ("nodes", "3"),
        ("ntasks-per-node", "4"),
        ("gres", "gpu:a100:4"),
        ("cpus-per-task", "8"),
        ("mem", "64G"),
        ("signal", "USR2@120"),
        ("requeue", None),
        ("open-mode", "append"),
    ]
    assert made.shape == Shape(2, 4, 4, spares=1)
    assert made.batch == Batch(96, 12, 1)
    assert made.slurm.cpus_per_rank == 8


def test_a_run_on_cpus_asks_for_no_gpu() -> None:
    assert "gres" not in options(trainer={"accelerator": "cpu"})


def test_every_key_of_slurm_becomes_its_option() -> None:
    keys = {
        "account": "a",
        "partition": "p",
        "qos": "q",
        "constraint": "a100&ib",
        "nodelist": "n[1-2]",
        "exclude": "n3",
        "reservation": "r",
        "licenses": "l",
        "dependency": "afterok:1",
        "begin": "now+1hour",
        "comment": "a b",
        "mail_user": "a@b.c",
        "mail_type": "END",
    }
    made = options(slurm={**keys, "exclusive": True})
    for key, value in keys.items():
        assert made[key.replace("_", "-")] == value
    assert made["exclusive"] is None
    assert "exclusive" in made
    assert options(slurm={"exclusive": "user"})["exclusive"] == "user"
    assert "exclusive" not in options(slurm={"exclusive": False})


def test_the_time_is_written_in_the_form_that_has_one_reading() -> None:
    assert options(slurm={"time": "90"})["time"] == "1:30:00"
    assert options(slurm={"time": "1-12"})["time"] == "1-12:00:00"
    assert options(slurm={"time": "unlimited"})["time"] == "UNLIMITED"


def test_a_short_job_is_told_to_stop_at_half_its_time_and_not_at_its_start() -> None:
    made = plan(slurm={"time": "2", "signal_lead_s": 120})
    assert made.slurm.signal_lead_s == 60
    assert dict(made.slurm.options)["signal"] == "USR2@60"


def test_a_run_that_must_not_go_on_forbids_the_requeue_to_slurm_as_well() -> None:
    made = options(requeue=no_requeue())
    assert "no-requeue" in made
    assert "requeue" not in made


def test_other_options_of_sbatch_go_through_extra() -> None:
    made = options(slurm={"extra": {"nice": 100, "contiguous": True, "reboot": False, "tmp": "1G"}})
    assert made["nice"] == "100"
    assert made["contiguous"] is None
    assert made["tmp"] == "1G"
    assert "reboot" not in made


def test_another_kind_of_gres_stands_beside_the_gpus() -> None:
    assert options(slurm={"extra": {"gres": "nvme:1"}})["gres"] == "gpu:4,nvme:1"


def test_a_secret_is_passed_by_name_and_its_value_is_nowhere() -> None:
    made = plan(env={"passthrough": ["WANDB_API_KEY"]})
    assert dict(made.slurm.options)["export"] == "ALL,WANDB_API_KEY"


def test_an_option_that_hpc_train_sets_is_refused_with_the_key_to_write() -> None:
    for name, hint in OWNED.items():
        with pytest.raises(ConfigError, match=f"slurm.extra.{name}: ") as caught:
            plan(slurm={"extra": {name: "x"}})
        assert caught.value.hint == with_value(hint, "x", typed=False)


def test_what_hpc_train_sets_are_options_that_sbatch_has() -> None:
    assert set(OWNED) <= KNOWN


def test_an_option_of_a_plugin_that_nobody_knows_is_passed_on() -> None:
    assert options(slurm={"extra": {"x11-forwarder": "yes"}})["x11-forwarder"] == "yes"


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"slurm": {"time": "1h"}}, "slurm.time: '1h' is not a Slurm time", '"1:00:00"'),
        ({"slurm": {"time": "0"}}, "slurm.time is zero", "UNLIMITED"),
        ({"slurm": {"mem": "64"}}, "slurm.mem: '64' is not a memory size", "64G"),
        ({"slurm": {"mem": "1G", "mem_per_gpu": "1G"}}, "mem_per_gpu stands beside", "keep one"),
        (
            {"slurm": {"mem_per_gpu": "1G"}, "trainer": {"accelerator": "cpu"}},
            "slurm.mem_per_gpu is set, and trainer.accelerator: cpu",
            "slurm.mem",
        ),
        ({"slurm": {"nodelist": "n["}}, "slurm.nodelist: 'n\\['", "node[1-3]"),
        ({"slurm": {"exclude": "a;b"}}, "slurm.exclude: 'a;b'", "node[1-3]"),
        ({"slurm": {"extra": {"nicee": 1}}}, "sbatch has no --nicee", "'nice'"),
        ({"slurm": {"extra": {"a b": 1}}}, "cannot be the name", "long name"),
        ({"slurm": {"extra": {"x;y": 1}}}, "cannot be the name", "long name"),
        ({"slurm": {"extra": {"nice": [1]}}}, "nice is a list", "one text"),
        ({"slurm": {"extra": {"gres": "gpu:2"}}}, "gres asks for GPUs", "gpus_per_node"),
        ({"slurm": {"comment": "a\nb"}}, "--comment holds a line break", "one line"),
        ({"slurm": {"extra": {"mcs-label": "a\nb"}}}, "--mcs-label holds a line break", "one"),
        ({"slurm": {"nodes": 0}}, "slurm.nodes is 0", "1 or more"),
        ({"slurm": {"gpus_per_node": 0}}, "slurm.gpus_per_node is 0", "accelerator: cpu"),
        ({"slurm": {"signal_lead_s": 99999}}, "signal_lead_s is 99999", "65535"),
        ({"name": "a\nb"}, "name is 'a\\\\nb'", "printable"),
        ({"name": " "}, "name is ' '", "printable"),
        ({"env": {"variables": {"1A": "x"}}}, "'1A' cannot be the name", "letters"),
        ({"env": {"variables": {"A;id": "x"}}}, "'A;id' cannot be the name", "letters"),
        ({"env": {"passthrough": ["A=1"]}}, "'A=1' cannot be the name", "letters"),
        ({"env": {"variables": {"RANK": "0"}}}, "RANK is set by Slurm", "remove"),
        ({"env": {"variables": {"HF_TOKEN": "x"}}}, "HF_TOKEN looks like a secret", "passthrough"),
        ({"model": {"init_args": {}}}, "model names no class", "write model: {class_path: "),
        ({"model": {"class_pth": "a.B"}}, "model names no class", "write class_path for"),
        ({"model": {"class_path": "Nowhere"}}, "'Nowhere', which is no class", "package.module"),
        ({"model": {"class_path": "a.B", "lr": 1}}, "model.lr stands beside", "init_args"),
        ({"data": {"_target_": "a.B", "init_args": {}}}, "stands beside _target_", "one form"),
        ({"data": {"_target_": "a.B", "_partial_": True}}, "_partial_ is not understood", "remove"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_with_the_fix(
    changes: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        plan(**changes)
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_refusal_begins_with_the_line_of_the_file() -> None:
    origins = Origins({"slurm.time": "cfg.yaml:12"})
    with pytest.raises(ConfigError, match=r"^cfg\.yaml:12: slurm\.time: '1h'"):
        make_plan(config(slurm={"time": "1h"}), workdir="/w", python="python", origins=origins)


def test_a_batch_that_cannot_be_split_begins_with_the_line_of_the_file() -> None:
    origins = Origins({"global_batch_size": "cfg.yaml:2"})
    with pytest.raises(CheckError, match=r"^cfg\.yaml:2: global_batch_size 9 cannot be split"):
        make_plan(config(global_batch_size=9), workdir="/w", python="python", origins=origins)


def test_hydras_form_of_a_class_and_lightnings_give_the_same_plan() -> None:
    hydra = {"_target_": "nets.Net", "width": 8, "act": {"_target_": "nets.Act", "slope": 0.1}}
    lightning = {
        "class_path": "nets.Net",
        "init_args": {
            "width": 8,
            "act": {"class_path": "nets.Act", "init_args": {"slope": 0.1}},
        },
    }
    assert plan(model=hydra) == plan(model=lightning)
    assert plan(model=hydra).training.model == ObjectSpec("nets.Net", lightning["init_args"])


def test_the_hash_changes_with_the_result_and_not_with_the_shape() -> None:
    made = plan().config_hash
    assert plan(slurm={"nodes": 3, "partition": "x"}, name="other").config_hash == made
    assert plan(seed=1).config_hash != made
    assert plan(global_batch_size=192).config_hash != made
    assert plan(trainer={"max_epochs": 4}).config_hash != made
    assert plan(model={"class_path": "nets.Net", "init_args": {"width": 9}}).config_hash != made


def test_a_script_stays_relative_to_the_folder_it_is_submitted_from() -> None:
    made = make_plan(config(), workdir="/home/me", python="/opt/python", for_script=True)
    assert (made.workdir, made.runs_dir) == (".", "runs")
    assert plan().runs_dir == "/home/me/code/runs"


def test_an_environment_that_is_activated_brings_its_own_python() -> None:
    assert plan().shell.python == "/opt/py/bin/python3"
    assert plan(env={"venv": "/venv"}).shell.python == "python"
    assert plan(env={"conda": "train"}).shell.python == "python"
    assert plan(env={"setup": ["source /x/bin/activate"]}).shell.python == "python"


def test_all_that_is_refused_of_slurm_extra_is_told_at_once() -> None:
    extra = {"gres": "gpu:2", "output": "o.txt", "nice": 3, "qos2": [1], "hold": True}
    places = {f"slurm.extra.{key}": f"cfg.yaml:{at}" for at, key in enumerate(extra, 5)}
    with pytest.raises(ConfigError) as caught:
        make_plan(config(slurm={"extra": extra}), workdir="/", python="p", origins=Origins(places))
    told = [it.message for it in (caught.value, *caught.value.others)]
    assert [it.split()[0] + " " + it.split()[1].rstrip(":") for it in told] == [
        "cfg.yaml:5: slurm.extra.gres",
        "cfg.yaml:6: slurm.extra.output",
        "cfg.yaml:8: slurm.extra.qos2",
        "cfg.yaml:9: slurm.extra.hold",
    ]


@pytest.mark.parametrize(
    ("places", "message", "hint"),
    [
        (
            {"mem": "cfg.yaml:7", "mem_per_cpu": "command line"},
            "command line: slurm.mem_per_cpu stands beside slurm.mem (cfg.yaml:7)",
            "write slurm.mem_per_cpu=1G slurm.mem=null",
        ),
        (
            {"mem": "command line", "mem_per_cpu": "cfg.yaml:7"},
            "command line: slurm.mem stands beside slurm.mem_per_cpu (cfg.yaml:7)",
            "write slurm.mem=2G slurm.mem_per_cpu=null",
        ),
        (
            {"mem": "cfg.yaml:7", "mem_per_cpu": "cfg.yaml:8"},
            "cfg.yaml:8: slurm.mem_per_cpu stands beside slurm.mem (cfg.yaml:7)",
            "keep one",
        ),
        (
            {"mem": "command line", "mem_per_cpu": "command line"},
            "command line: slurm.mem_per_cpu stands beside slurm.mem",
            "keep one",
        ),
    ],
)
def test_two_kinds_of_memory_are_told_with_the_place_of_both(
    places: dict[str, str], message: str, hint: str
) -> None:
    origins = Origins({f"slurm.{key}": place for key, place in places.items()})
    both = {"mem": "2G", "mem_per_cpu": "1G"}
    with pytest.raises(ConfigError) as caught:
        make_plan(config(slurm=both), workdir="/", python="p", origins=origins)
    assert (caught.value.message, caught.value.hint) == (message, hint)
