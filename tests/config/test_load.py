"""From files and a command line to one config."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hpc_train.backends.check_environment import check_environment
from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.origins import NOWHERE
from hpc_train.config.schema import Config
from hpc_train.config.show import show_lines, to_yaml
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, loaded, refused, write

CONFIGS = Path(__file__).parents[2] / "configs"


def test_what_is_not_written_has_its_default_and_says_so(tmp_path: Path) -> None:
    made = loaded(tmp_path, "slurm: {nodes: 3}\n")
    assert made.config.slurm.nodes == 3
    assert (
        made.config.slurm.gpus_per_node
        == Config.__dataclass_fields__["slurm"].default_factory().gpus_per_node
    )  # type: ignore[misc]
    assert made.origins.of("slurm.nodes") == f"{tmp_path}/cfg.yaml:5"
    assert made.origins.of("slurm.gpus_per_node") == "default"
    assert made.origins.of("seed") == "default"


def test_a_file_builds_on_others_and_the_later_wins(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL + "seed: 1\nslurm: {nodes: 2, time: '1:00'}\n", "base.yaml")
    write(tmp_path, "seed: 2\nslurm: {qos: fast}\n", "other.yaml")
    path = write(tmp_path, "defaults: [base.yaml, other.yaml]\nslurm:\n  nodes: 4\n")
    made = load(path)
    assert made.config.seed == 2
    assert (made.config.slurm.nodes, made.config.slurm.qos) == (4, "fast")
    assert made.origins.of("seed") == f"{tmp_path}/other.yaml:1"
    assert made.origins.of("slurm.nodes") == f"{path}:3"
    assert made.origins.of("slurm.time") == f"{tmp_path}/base.yaml:6"
    assert [file.name for file in made.files] == ["base.yaml", "other.yaml", "cfg.yaml"]


def test_a_section_whose_lines_are_all_comments_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL + "slurm: {nodes: 2}\n", "base.yaml")
    path = write(tmp_path, "base: base\nslurm:\n  # nodes: 4\nenv:\n")
    assert load(path).config.slurm.nodes == 2


def test_a_base_may_be_one_name_without_brackets_and_ending(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL, "base.yaml")
    assert load(write(tmp_path, "base: base\nseed: 3\n")).config.seed == 3


def test_the_command_line_and_its_flags_win_over_the_file(tmp_path: Path) -> None:
    made = loaded(
        tmp_path,
        "seed: 1\nslurm: {nodes: 2, gpus_per_node: 2}\n",
        "seed=7",
        "slurm.gpus_per_node=4",
        "trainer.max_epochs=2",
        "model.init_args.lr=1e-3",
        flags={"nodes": 5, "gpus": 4, "time": None},
    )
    assert (made.config.seed, made.config.slurm.nodes) == (7, 5)
    assert made.config.trainer == {"max_epochs": 2}
    assert made.config.model["init_args"] == {"lr": 1e-3}
    assert made.origins.of("seed") == "command line"
    assert made.origins.of("slurm.nodes") == "--nodes"
    assert made.origins.of("model.init_args.lr") == "command line"
    assert made.origins.of("model.class_path") == f"{tmp_path}/cfg.yaml:3"


@pytest.mark.parametrize(
    ("override", "flags", "words"),
    [
        ("slurm.nodes=2", {"nodes": 1}, "--nodes 1 and slurm.nodes=2 are both there"),
        ("name=a", {"name": "b"}, "--name b and name=a are both there"),
        ("runs_dir=a", {"runs_dir": "b"}, "--runs-dir b and runs_dir=a are both there"),
    ],
)
def test_one_thing_said_twice_on_the_command_line_is_refused(
    tmp_path: Path, override: str, flags: dict[str, object], words: str
) -> None:
    error = refused(tmp_path, "slurm: {nodes: 4}\n", override, flags=flags)
    assert (error.message, error.hint) == (f"command line: {words}", "keep one of them")


def test_a_time_needs_no_quotes_on_the_command_line(tmp_path: Path) -> None:
    assert loaded(tmp_path, "", "slurm.time=1:30:00").config.slurm.time == "1:30:00"
    assert loaded(tmp_path, "", flags={"time": "90"}).config.slurm.time == "90"


def test_values_of_the_command_line_are_yaml(tmp_path: Path) -> None:
    made = loaded(
        tmp_path, "", "env.modules=[a, b]", "reproducible=false", "trainer.x=null", "trainer.y=a=b"
    )
    assert made.config.env.modules == ["a", "b"]
    assert made.config.reproducible is False
    assert made.config.trainer == {"x": None, "y": "a=b"}


def test_another_class_begins_with_its_own_arguments(tmp_path: Path) -> None:
    base = MINIMAL.replace("{class_path: nets.Net}", "{class_path: nets.Net, init_args: {a: 1}}")
    write(tmp_path, base, "base.yaml")
    path = write(tmp_path, "base: base\nmodel: {class_path: nets.Other, init_args: {b: 2}}\n")
    assert load(path).config.model == {"class_path": "nets.Other", "init_args": {"b": 2}}
    same = write(tmp_path, "base: base\nmodel: {class_path: nets.Net, init_args: {b: 2}}\n")
    assert load(same).config.model["init_args"] == {"a": 1, "b": 2}


@pytest.mark.parametrize("where", ["clusters", "configs/clusters", "deep/configs/clusters"])
def test_a_site_profile_is_found_beside_the_file_and_in_configs_above_it(
    where: str, tmp_path: Path
) -> None:
    write(tmp_path / where, "slurm: {partition: site, qos: site}\n", "jean.yaml")
    text = MINIMAL + "cluster_profile: jean\nslurm: {qos: own}\n"
    folder = tmp_path / "deep" / "inner" if where.startswith("deep") else tmp_path
    made = load(write(folder, text))
    assert (made.config.slurm.partition, made.config.slurm.qos) == ("site", "own")
    assert made.origins.of("slurm.partition").endswith("jean.yaml:1")


def test_a_site_profile_can_be_chosen_on_the_command_line(tmp_path: Path) -> None:
    write(tmp_path, "slurm: {partition: a}\n", "clusters/a.yaml")
    write(tmp_path, "slurm: {partition: b}\n", "clusters/b.yaml")
    made = loaded(tmp_path, "cluster_profile: a\n", "cluster_profile=b")
    assert made.config.slurm.partition == "b"


def test_a_profile_that_comes_with_hpc_train_is_found_last(tmp_path: Path) -> None:
    made = loaded(tmp_path, "defaults: [clusters/example]\n")
    assert made.config.slurm.cpus_per_gpu == 8


def test_interpolations_are_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDER", "/data/$x")
    more = (
        "data: {class_path: nets.Data, init_args: {path: '${oc.env:FOLDER}/a', n: '${seed}'}}\n"
        "seed: 4\nruns_dir: 'a\\${b}'\n"
    )
    path = write(tmp_path, MINIMAL.replace("data: {class_path: nets.Data}\n", "") + more)
    config = load(path).config
    assert config.data["init_args"] == {"path": "/data/$x/a", "n": 4}
    assert config.runs_dir == "a${b}"


BLOCK = """\
env:
  setup: |

    # where the data are
    export A=1 \\
      B=2
    if [ $A = 1 ]; then
      source nowhere.sh 2>/dev/null || C="x: 'y' # z"
    fi
    cat <<'END'
    source nowhere.sh
      ${A} stays
    END
    echo "$A$B $C"
seed: 3
"""


def test_a_block_text_is_its_lines_of_shell(tmp_path: Path) -> None:
    config = loaded(tmp_path, BLOCK).config
    check_environment(config.env, tmp_path, os.environ, NOWHERE)
    script = "\n".join(config.env.setup)
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "source nowhere.sh\n  ${A} stays\n12 x: 'y' # z\n"
    again = tmp_path / "again.yaml"
    again.write_text(to_yaml(config))
    assert load(again).config.env.setup == config.env.setup, "as the run keeps it"


def test_lines_for_the_shell_are_not_touched(tmp_path: Path) -> None:
    line = "export X=${HOME}/bin:${Y:-z} # \\${a}"
    assert loaded(tmp_path, f"env:\n  setup: ['{line}']\n").config.env.setup == [line]


def test_numbers_with_an_exponent_are_numbers_and_dates_are_text(tmp_path: Path) -> None:
    made = loaded(tmp_path, "trainer: {a: 1e-3, b: 2E5, c: 2026-01-02, d: 1.5, e: .5e1}\n")
    assert made.config.trainer == {"a": 1e-3, "b": 2e5, "c": "2026-01-02", "d": 1.5, "e": 5.0}


def test_anchors_and_merged_mappings_keep_the_lines_of_what_they_name(tmp_path: Path) -> None:
    more = "trainer:\n  a: &one {x: 1}\n  b: {<<: *one, y: 2}\n"
    made = loaded(tmp_path, more)
    assert made.config.trainer["b"] == {"x": 1, "y": 2}
    assert made.origins.of("trainer.b.x").endswith(":6")
    assert made.origins.of("trainer.b.y").endswith(":7")


def test_numbers_become_text_where_text_is_wanted(tmp_path: Path) -> None:
    made = loaded(tmp_path, "slurm: {account: 1234}\nenv: {variables: {OMP_NUM_THREADS: 4}}\n")
    assert made.config.slurm.account == "1234"
    assert made.config.env.variables == {"OMP_NUM_THREADS": "4"}


@pytest.mark.parametrize("name", ["digits.yaml", "char-gpt.yaml"])
def test_the_configs_that_come_with_it_load(name: str) -> None:
    made = load(CONFIGS / name, [] if name == "digits.yaml" else ["data.init_args.path=/x.txt"])
    assert made.config.name == Path(name).stem


def test_the_example_profile_loads_with_every_comment_taken_away(tmp_path: Path) -> None:
    text = (CONFIGS / "clusters" / "example.yaml").read_text()
    lines = [
        line.replace("# ", "", 1) if line.startswith("  # ") else line
        for line in text.splitlines()
        if not line.startswith("#")
    ]
    made = load(write(tmp_path, MINIMAL + "\n".join(lines)))
    assert made.config.env.passthrough == ["WANDB_API_KEY"]
    assert made.config.slurm.gpu_type == "a100"


# config show


def test_what_is_shown_loads_to_the_same_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDER", "a\\${x}")
    more = (
        "runs_dir: '${oc.env:FOLDER}'\n"
        "trainer: {a: 'it''s: #1', b: [1, {c: \"two\\nlines\"}], '1': x, e: 1e-7, f: '1:30'}\n"
        "slurm: {time: '1:30:00', qos: 'no', comment: 'é'}\n"
        "env: {setup: ['echo ${HOME}'], variables: {A: '\\${B}', C: '\\\\', D: 'x\\\\\\${y}'}}\n"
    )
    first = loaded(tmp_path, more)
    again = load(write(tmp_path, to_yaml(first.config), "again.yaml"))
    assert again.config == first.config
    shown = load(write(tmp_path, "\n".join(show_lines(first)), "shown.yaml"))
    assert shown.config == first.config


def test_every_value_is_shown_with_its_origin(tmp_path: Path) -> None:
    lines = show_lines(loaded(tmp_path, "seed: 3\n", "slurm.nodes=2"))
    assert f"{'seed: 3':<44} # {tmp_path}/cfg.yaml:5" in lines
    assert f"{'  nodes: 2':<44} # command line" in lines
    assert f"{'  gpus_per_node: 1':<44} # default" in lines
    assert "slurm:" in lines


CALLBACKS = """
trainer:
  callbacks:
    - class_path: pytorch_lightning.callbacks.ModelCheckpoint
      init_args: {monitor: val_loss, mode: min}
    - class_path: pytorch_lightning.callbacks.EarlyStopping
      init_args:
        monitor: val_loss
        patience: 50
"""
PATIENCE = "trainer.callbacks.1.init_args.patience"


def shown_at(loaded_config: LoadedConfig, word: str) -> list[str]:
    """The places behind the lines that begin with a word, which is a key."""
    lines = [line.strip().removeprefix("- ") for line in show_lines(loaded_config)]
    return [line.rpartition(" # ")[2] for line in lines if line.startswith(f"{word}:")]


def test_what_is_typed_for_an_element_of_a_list_is_shown_as_typed(tmp_path: Path) -> None:
    first = loaded(tmp_path, CALLBACKS, f"{PATIENCE}=5", "trainer.callbacks.0.init_args.mode=max")
    assert shown_at(first, "patience") == shown_at(first, "mode")[:1] == ["command line"]
    assert [place.rpartition(":")[2] for place in shown_at(first, "class_path")[-2:]] == ["8", "10"]
    assert len(set(shown_at(first, "monitor"))) == 2
    again = load(write(tmp_path, "\n".join(show_lines(first)), "shown.yaml"))
    assert again.config == first.config


def test_a_whole_list_or_element_that_is_typed_is_shown_as_typed(tmp_path: Path) -> None:
    stops = "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: x}}"
    whole = loaded(tmp_path, CALLBACKS, f"trainer.callbacks=[{stops}]")
    assert shown_at(whole, "callbacks") == ["command line"]
    one = loaded(tmp_path, CALLBACKS, f"trainer.callbacks.0={stops}")
    assert shown_at(one, "monitor")[0] == "command line"
    assert shown_at(one, "patience")[0].endswith(":13")


@pytest.mark.parametrize("key", ["base", "defaults"])
def test_an_element_typed_over_another_files_list_leaves_the_others_in_that_file(
    tmp_path: Path, key: str
) -> None:
    write(tmp_path, MINIMAL + CALLBACKS, "below.yaml")
    path = write(tmp_path, f"{key}: [below]\n" if key == "defaults" else "base: below\n")
    over = load(path, [f"{PATIENCE}=5"])
    assert shown_at(over, "patience") == ["command line"]
    assert all("below.yaml:" in place for place in shown_at(over, "monitor"))


def test_elements_of_lists_in_lists_have_places_of_their_own(tmp_path: Path) -> None:
    sizes = "trainer: {sizes: [[64, 32], [16, 8]], names: [a, b]}\n"
    first = loaded(tmp_path, sizes, "trainer.sizes.1.0=5", "trainer.names.1=c")
    text = "\n".join(show_lines(first))
    assert re.search(r"- 5 +# command line\n +- 8 +# \S+cfg.yaml:\d", text)
    assert re.search(r"- a +# \S+cfg.yaml:\d\n +- c +# command line", text)
    again = load(write(tmp_path, text, "shown.yaml"))
    assert again.config == first.config


def test_an_index_from_the_end_is_told_as_one_from_the_front(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no element '-1'") as caught:
        loaded(tmp_path, CALLBACKS, "trainer.callbacks.-1.init_args.patience=5")
    assert caught.value.hint == f"count from the front: {PATIENCE}=..."
    with pytest.raises(ConfigError, match="has no element '-3'") as caught:
        loaded(tmp_path, CALLBACKS, "trainer.callbacks.-3.init_args.patience=5")
    assert "its elements are 0 to 1" in caught.value.hint


def test_an_argument_typed_of_a_list_of_one_element_is_told_as_that_elements(
    tmp_path: Path,
) -> None:
    one = "trainer: {callbacks: [{class_path: lightning.pytorch.callbacks.Timer}]}\n"
    with pytest.raises(ConfigError, match="has no element 'interval'") as caught:
        loaded(tmp_path, one, "trainer.callbacks.interval=step")
    assert caught.value.hint == "of Timer: write trainer.callbacks.0.init_args.interval=step"
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, CALLBACKS, "trainer.callbacks.interval=step")  # of two
    assert "give the whole list" in caught.value.hint
