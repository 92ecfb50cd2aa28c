from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.keys import TEXT_KEYS, TYPES
from hpc_train.config.load import load
from hpc_train.config.ranges import RANGES
from hpc_train.config.schema import Config
from hpc_train.config.show import show_lines, to_yaml
from tests.config.files import MINIMAL, loaded, refusal, refused, write

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


# Files


def test_a_missing_file_names_one_that_is_there(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL, "digits.yaml")
    error = refusal(tmp_path / "digit.yaml")
    assert error.message == "digit.yaml: there is no such file"
    assert error.hint == "did you mean 'digits.yaml'?"
    assert "no folder" in refusal(tmp_path / "no" / "x.yaml").hint


def test_a_folder_is_no_config(tmp_path: Path) -> None:
    assert refusal(tmp_path).message.endswith("is a folder")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cfg.yaml"
    path.write_bytes(b"\xff\xfe\x00\x81")
    assert "not text in UTF-8" in refusal(path).message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a: [1, 2\nb: 3\n", "cfg.yaml:1:4: not YAML: a bracket without its end", "close the"),
        ("a:\n\tb: 1\n", "cfg.yaml:2:1: not YAML: found character that cannot start", "indent"),
        ("a: b: c\n", "cfg.yaml:1:5: not YAML: mapping values are not allowed", '"b: c"'),
        ("- a\n", "cfg.yaml:1: not a mapping", "key: value"),
        ("just text\n", "cfg.yaml:1: not a mapping", "key: value"),
        ("a: !!python/object:os.system x\n", "cfg.yaml:1:4: not YAML: could not determine", ""),
        ("a: 1\n1: 2\n", "cfg.yaml:2: the key 1 is no text", '"1":'),
        ("a: 1\non: 2\n", "cfg.yaml:2: the key on is no text", '"on":'),
        ("? [a]\n: 1\n", "cfg.yaml:1: a key that is no plain word", "key: value"),
        ("name: x\nseed: 1\nname: y\n", "cfg.yaml:3: name is here for the second time", "one of"),
        ("slurm:\n  nodes: 1\n  nodes: 2\n", "slurm.nodes is here for the second time", "one of"),
        ("defaults: [nope]\n", "cfg.yaml:1: defaults names nope, and there is no such", ""),
        ("a: 1\ndefaults: [3]\n", "cfg.yaml:2: defaults holds 3", "base.yaml"),
        ("defaults: [cfg.yaml]\n", "cfg.yaml builds on itself", "defaults"),
        ("cluster_profile: exampel\n", "names clusters/exampel", "'clusters/example'"),
        ("cluster_profile: [a]\n", "cfg.yaml:1: cluster_profile is ['a']", "configs/clusters"),
        ("", "cfg.yaml: no key is in it", "name: my-run; global_batch_size: 64"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(
    text: str, message: str, hint: str, tmp_path: Path
) -> None:
    error = refusal(write(tmp_path, text))
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize("key", ["name", "global_batch_size", "model", "data"])
def test_a_key_without_a_default_must_be_there(key: str, tmp_path: Path) -> None:
    lines = [line for line in MINIMAL.splitlines() if not line.startswith(f"{key}:")]
    error = refusal(write(tmp_path, "\n".join(lines)))
    assert error.message == f"cfg.yaml: {key} is missing"
    assert error.hint.startswith(f"write {key}: ")


# Values


@pytest.mark.parametrize(
    ("more", "message", "hint"),
    [
        ("slrum: {}\n", "cfg.yaml:5: slrum is no key of hpc-train", "did you mean 'slurm'?"),
        ("slurm: {node: 3}\n", "cfg.yaml:5: slurm.node is no key", "did you mean 'slurm.nodes'"),
        ("nodes: 3\n", "cfg.yaml:5: nodes is no key", "did you mean 'slurm.nodes'?"),
        ("slurm: {array: 1-3}\n", "slurm.array is no key", "write sweep: {KEY: [VALUES]}"),
        ("slurm: {output: a.log}\n", "slurm.output is no key", "hpc-train logs RUN"),
        ("slurm: fast\n", "cfg.yaml:5: slurm is 'fast'", "it is a section"),
        ("slurm:\n  nodes: 0\n", "cfg.yaml:6: slurm.nodes is 0", "write 1 or more"),
        ("slurm: {nodes: two}\n", "cfg.yaml:5: slurm.nodes is 'two'", "write a whole number"),
        ("slurm: {nodes: 1.5}\n", "cfg.yaml:5: slurm.nodes is '1.5'", "write a whole number"),
        ("slurm: {gpus_per_node: 0}\n", "slurm.gpus_per_node is 0", "trainer.accelerator: cpu"),
        ("slurm: {spares: -1}\n", "slurm.spares is -1", "write 0 or more"),
        ("slurm: {signal_lead_s: 0}\n", "slurm.signal_lead_s is 0", "write 1 or more"),
        ("slurm: {qos: no}\n", "slurm.qos is false in YAML", "put the word in quotes"),
        ("slurm: {mem_per_gpu: 1.5}\n", "slurm.mem_per_gpu is 1.5 without", '"1.5G"'),
        ("slurm: {mem: 64}\n", "slurm.mem is 64 without a unit", '"64G"'),
        ("slurm: {licenses: [a]}\n", "slurm.licenses", ""),
        ("reproducible: maybe\n", "cfg.yaml:5: reproducible is 'maybe'", "write true or false"),
        ("preflight: {mode: fast}\n", "preflight.mode is 'fast'", "'off', 'quick', 'full'"),
        ("checkpoint: {keep_last: 0}\n", "checkpoint.keep_last is 0", "resumes from"),
        ("checkpoint: {every_n_minutes: soon}\n", "every_n_minutes is 'soon'", "write a number"),
        ("loggers: csv\n", "cfg.yaml:5: loggers is no list", "write [csv]"),
        ("loggers: [wadb]\n", "cfg.yaml:5: loggers.0 is 'wadb'", "did you mean 'wandb'?"),
        ("loggers: [neat]\n", "loggers.0 is 'neat'", "write csv, tensorboard, wandb, mlflow, or {"),
        ("loggers: [3]\n", "loggers.0 is 3", "write csv"),
        ("loggers: [csv, {a: 1}]\n", "loggers.1 is {'a': 1}", "class_path"),
        ("loggers: [null]\n", "loggers.0 is None", "write csv"),
        ("trainer: 3\n", "cfg.yaml:5: trainer is no mapping", "key: value"),
        ("env: {modules: cuda}\n", "env.modules is no list", "write [cuda]"),
        ("env: {setup: ls}\n", "env.setup is no list of texts", "lines of shell"),
        ("env: {variables: {DEBUG: yes}}\n", "env.variables.DEBUG is true in YAML", "quotes"),
        ("env: {variables: {HF_TOKEN: x}}\n", "HF_TOKEN looks like a secret", "passthrough: [HF_T"),
        ("runs_dir: '${oc.env:A_KEY}'\n", "takes the value of A_KEY", "env.passthrough: [A_KEY]"),
        (
            "runs_dir: '${oc.env:NO_SUCH}'\n",
            "needs the variable NO_SUCH, not set",
            "export NO_SUCH=",
        ),
        ("runs_dir: '${nope}'\n", "names the key nope, which is not there", "\\${...}"),
        ("runs_dir: '${a'\n", "has a broken ${...}", "\\${...}"),
        ("trainer:\n  max_epochs: ???\n", "trainer.max_epochs is ???", "trainer.max_epochs=..."),
        ("trainer: {max_time: 1:30:00}\n", "which YAML reads as the number 5400", '"00:01:30:00"'),
        ("seed: -1\n", "cfg.yaml:5: seed is -1", "0 or more"),
    ],
)
def test_a_value_that_cannot_be_meant_names_its_line_its_key_and_the_fix(
    more: str, message: str, hint: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, more)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize("key", ["mem", "mem_per_gpu"])
def test_no_memory_is_all_of_a_nodes_to_slurm_and_needs_no_unit(key: str, tmp_path: Path) -> None:
    # sbatch(1), --mem: "a memory size specification of zero is treated as a special case".
    config = loaded(tmp_path, f"slurm: {{{key}: 0}}\n").config
    assert getattr(config.slurm, key) == "0"


def test_an_unquoted_time_is_refused_and_the_message_says_what_yaml_made_of_it(
    tmp_path: Path,
) -> None:
    error = refused(tmp_path, "slurm:\n  time: 1:30:00\n")
    assert error.message == (
        "cfg.yaml:6: slurm.time is 1:30:00 without quotes, which YAML reads as the number 5400,"
        " and Slurm would take as 5400 minutes"
    )
    assert error.hint == 'write slurm.time: "1:30:00"'


@pytest.mark.parametrize("number", ["90", "5400", "1.5"])
def test_a_bare_number_is_no_time(number: str, tmp_path: Path) -> None:
    error = refused(tmp_path, f"slurm: {{time: {number}}}\n")
    assert f"slurm.time is the bare number {number}" in error.message
    assert f'"{number}" is minutes' in error.hint


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed", "command line: 'seed' is no key=value"),
        ("=3", "command line: '' is no key"),
        ("+seed=3", "command line: '+seed' is no key"),
        ("se ed=3", "command line: 'se ed' is no key"),
        ("seed=[1", "seed: '[1' is not YAML"),
        ("trainer.max_epochs=1:30", "command line: trainer.max_epochs is 1:30"),
        ("slurm.nodes=0", "command line: slurm.nodes is 0"),
        ("sead=0", "command line: sead is no key"),
        ("loggers.1=csv", "loggers.1: loggers has no element '1'"),
        ("loggers.-1=csv", "loggers.-1: loggers has no element '-1'"),
        ("loggers.last=csv", "loggers.last: loggers has no element 'last'"),
        ("loggers.0.x=csv", "loggers.0.x: loggers.0 is 'csv', and has no keys"),
        ("name=null", "name is null"),
        ("name=", "command line: name is empty"),
        ("slurm.qos=", "command line: slurm.qos is empty"),
        ("trainer.max_epochs= ", "command line: trainer.max_epochs is empty"),
        ("env={variables: {HF_TOKEN: x}}", "command line: env.variables.HF_TOKEN looks like"),
    ],
)
def test_an_override_that_cannot_be_meant_is_refused(
    override: str, message: str, tmp_path: Path
) -> None:
    assert message in refused(tmp_path, "loggers: [csv]\n", override).message


NETWORK = """\
trainer:
  callbacks:
    - {class_path: nets.First, init_args: {patience: 3, mode: min}}
    - {class_path: nets.Last}
    - [[1, 2]]
"""


@pytest.mark.parametrize(
    ("override", "index", "element"),
    [
        (
            "trainer.callbacks.0.init_args.patience=5",
            0,
            {"class_path": "nets.First", "init_args": {"patience": 5, "mode": "min"}},
        ),
        (
            "trainer.callbacks.1.init_args.patience=5",
            1,
            {"class_path": "nets.Last", "init_args": {"patience": 5}},
        ),
        ("trainer.callbacks.1={class_path: nets.Other}", 1, {"class_path": "nets.Other"}),
        ("trainer.callbacks.0.class_path=nets.Other", 0, {"class_path": "nets.Other"}),
        ("trainer.callbacks.2.0.1=7", 2, [[1, 7]]),
    ],
)
def test_an_element_of_a_list_is_set_by_its_index_and_the_others_stay(
    override: str, index: int, element: object, tmp_path: Path
) -> None:
    before = loaded(tmp_path, NETWORK).config.trainer["callbacks"]
    made = loaded(tmp_path, NETWORK, override)
    wanted = [element if place == index else item for place, item in enumerate(before)]
    assert made.config.trainer["callbacks"] == wanted
    assert made.origins.of(override.partition("=")[0]) == "command line"


@pytest.mark.parametrize(
    ("overrides", "left_out"),
    [
        (["model.class_path=nets.Other"], "model.init_args.lr, model.init_args.width"),
        (["model.class_path=nets.Other", "model.init_args.lr=2"], "model.init_args.width"),
        (["model.init_args.lr=2", "model.class_path=nets.Other"], "lr, model.init_args.width"),
        (["model.class_path=nets.Other", "model.init_args={lr: 1, width: 2}"], ""),
        (["model.class_path=nets.Net"], ""),
        (["model.init_args.lr=2"], ""),
        ([], ""),
    ],
)
def test_arguments_that_another_class_leaves_out_are_told(
    overrides: list[str], left_out: str, tmp_path: Path
) -> None:
    old = "{class_path: nets.Net, init_args: {lr: 1, width: 2}}"
    text = MINIMAL.replace("{class_path: nets.Net}", old)
    notes = load(write(tmp_path, text), overrides).notes
    assert len(notes) == bool(left_out)
    assert not notes or f"{left_out}; give again" in notes[0]


def test_a_class_of_a_file_over_another_file_is_told_by_nobody(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL.replace("nets.Net", "nets.Old, init_args: {a: 1}"), "base.yaml")
    assert load(write(tmp_path, "base: base\nmodel: {class_path: nets.New}\n")).notes == ()


@pytest.mark.parametrize(("key", "kind"), sorted(TYPES.items()))
def test_null_is_refused_where_the_schema_has_none(key: str, kind: str, tmp_path: Path) -> None:
    if kind.startswith("Optional"):
        loaded(tmp_path, "", f"{key}=null")
    else:
        error = refused(tmp_path, "", f"{key}=null")
        assert error.message.endswith((f"{key} is null", f"{key} is missing"))
        assert error.hint


@pytest.mark.parametrize("key", sorted(TEXT_KEYS))
def test_an_empty_text_is_refused_in_a_file(key: str, tmp_path: Path) -> None:
    section, _, name = key.rpartition(".")
    more = f'{section}: {{{name}: " "}}\n' if section else f'{name}: ""\n'
    text = "".join(line for line in MINIMAL.splitlines(True) if not line.startswith(f"{key}:"))
    error = refusal(write(tmp_path, text + more))
    assert f"{key} is empty" in error.message
    assert error.hint


def test_mappings_and_lists_whose_lines_are_all_comments_change_nothing(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL + "trainer: {max_epochs: 3}\nenv: {modules: [a]}\n", "base.yaml")
    more = "base: base\ntrainer:\nloggers:\nenv:\n  modules:\n  # - b\n  variables:\n"
    config = load(write(tmp_path, more)).config
    assert (config.trainer, config.env.modules) == ({"max_epochs": 3}, ["a"])
    assert config.loggers == ["csv", "tensorboard"]


# Numbers


def numbers() -> set[str]:
    return {key for key, kind in TYPES.items() if "int" in kind or "float" in kind} - {
        "preflight.thresholds"  # checked by the preflight, which knows their names
    }


def test_every_number_of_the_schema_has_its_range_and_its_default_is_inside() -> None:
    assert set(RANGES) == numbers()


@pytest.mark.parametrize("key", sorted(RANGES))
@pytest.mark.parametrize(
    "value", ["-1", "1e23", "-1e23", ".inf", "-.inf", ".nan", "9" * 400, "1e999", "true", "''", "x"]
)
def test_a_number_out_of_its_range_is_refused_by_its_key(
    key: str, value: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, "", f"{key}={value}")
    assert error.message.startswith(f"command line: {key} is ")
    assert error.hint
    assert len(error.message) < 200


@pytest.mark.parametrize("key", sorted(RANGES))
def test_the_ends_of_a_range_are_inside(key: str, tmp_path: Path) -> None:
    for value in (RANGES[key].least, RANGES[key].most):
        loaded(tmp_path, "", f"{key}={value}")


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("slurm.qos=null", None),
        ("slurm.qos=~", None),
        ("slurm.qos='null'", "null"),
        ('slurm.qos="a b"', "a b"),
        ("slurm.qos=a b", "a b"),
        ('slurm.qos=it\'s "x"', 'it\'s "x"'),
        ("slurm.qos='", "'"),
    ],
)
def test_null_empties_a_text_and_quotes_hold_it(
    override: str, value: str | None, tmp_path: Path
) -> None:
    assert loaded(tmp_path, "slurm: {qos: fast}\n", override).config.slurm.qos == value


@pytest.mark.parametrize("time", ["2:00", "90:30"])
def test_an_unquoted_time_of_two_fields_is_told_what_it_would_be(time: str, tmp_path: Path) -> None:
    error = refused(tmp_path, f"slurm: {{time: {time}}}\n")
    assert f"slurm.time is {time} without quotes" in error.message
    assert error.hint == (
        'write hours and seconds, too: "2:00:00" is two hours, "0:02:00" two minutes'
    )


@pytest.mark.parametrize(
    ("word", "class_path", "arguments"),
    [
        ("wandb", "pytorch_lightning.loggers.WandbLogger", {"project": "x"}),
        ("mlflow", "pytorch_lightning.loggers.MLFlowLogger", {"experiment_name": "x"}),
    ],
)
def test_a_logger_may_be_one_word(
    word: str, class_path: str, arguments: dict[str, str], tmp_path: Path
) -> None:
    made = loaded(tmp_path, f"loggers: [csv, {word}, tensorboard]\n").config.loggers
    assert made == ["csv", {"class_path": class_path, "init_args": arguments}, "tensorboard"]


def test_a_flag_that_cannot_be_meant_is_named(tmp_path: Path) -> None:
    error = refused(tmp_path, "", flags={"nodes": 0})
    assert error.message == "--nodes: slurm.nodes is 0"


def test_a_flag_that_there_is_not_is_named_with_the_nearest(tmp_path: Path) -> None:
    error = refused(tmp_path, "", flags={"node": 3})
    assert (error.message, error.hint) == (
        "node is no option of hpc-train",
        "did you mean 'nodes'?",
    )


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "x_password", "SECRETS", "AWS_KEY_2"]
)
def test_a_name_of_a_secret_is_known(name: str, tmp_path: Path) -> None:
    assert "secret" in refused(tmp_path, f"env: {{variables: {{{name}: x}}}}\n").message


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "KEYBOARD"])
def test_a_name_that_only_contains_the_word_is_no_secret(name: str, tmp_path: Path) -> None:
    made = loaded(tmp_path, f"env: {{variables: {{{name}: 'x'}}}}\n")
    assert made.config.env.variables == {name: "x"}
