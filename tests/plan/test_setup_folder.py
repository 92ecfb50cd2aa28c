"""A `cd` in `env.setup`: told where it leads elsewhere and nothing behind it may be its purpose."""

from __future__ import annotations

import pytest

from hpc_train.plan.setup_folder import moved_shell

HERE = "/work/p"
ENVIRON = {"HOME": "/home/me", "SCRATCH": "/scr/me", "PROJECT": HERE}


@pytest.mark.parametrize(
    ("lines", "item", "folder"),
    [
        (["cd /x"], 0, "/x"),
        (["cd"], 0, "/home/me"),
        (["cd ~/e"], 0, "/home/me/e"),
        (["cd sub"], 0, "/work/p/sub"),
        (["cd $SCRATCH/e", "module load a", "export A=1", "conda activate ml"], 0, "/scr/me/e"),
        (['cd "${SCRATCH}/my e"'], 0, "/scr/me/my e"),
        (["cd $SLURM_TMPDIR"], 0, ""),
        (["cd $(mktemp -d)"], 0, ""),
        (["module load a", "mkdir -p /x && cd /x || exit 1"], 1, "/x"),
        (["cd /x || { echo no; exit 1; }"], 0, "/x"),
        (["[ -d /x ] && cd /x; ulimit -n 5"], 0, "/x"),
        (["pushd /x > /dev/null  # there", "set -e"], 0, "/x"),
        (["cd /a; source e.sh; cd /b; source /opt/e.sh"], 0, "/b"),
        (["cd '/x y' && export K='a;b'", "A=1"], 0, "/x y"),
    ],
)
def test_a_shell_that_has_moved_is_known(lines: list[str], item: int, folder: str) -> None:
    moved = moved_shell(lines, HERE, ENVIRON)
    assert moved is not None
    assert (moved.item, moved.folder) == (item, folder)


@pytest.mark.parametrize(
    "lines",
    [
        ["cd /x && source env.sh"],
        ["cd /x", "source env.sh"],
        ["cd /x && . ./env.sh && cd $SLURM_SUBMIT_DIR"],
        ["(cd /x; make)"],
        ["( cd /x && make )"],
        ["cd /x", "cd -"],
        ["cd /x && make && cd -"],
        ["pushd /x", "make", "popd"],
        ["pushd /x", "popd"],
        ['cd "${SLURM_SUBMIT_DIR}"'],
        ["cd $PWD"],
        ["cd ."],
        ["cd sub/.."],
        ["cd /work/p"],
        ["cd $PROJECT"],
        ["f() {", "cd /x", "}"],
        ["if a; then", "cd /x", "fi"],
        ["if a; then cd /x; fi"],
        ["cat <<E", "cd /x", "E"],
        ["cd /x", "export D=$PWD/d"],
        ["cd /x; export D=$(pwd)"],
        ["cd /x", "conda activate ./env"],
        ["cd /x &&", "make"],
        ["ls; cd /x; tar xf a.tar"],
        ["cd /x | cat"],
        ["export A='cd /x'", "echo cd /x", "bash -c 'cd /x'", "alias c='cd /x'", "# cd /x"],
        [],
    ],
)
def test_lines_that_go_there_and_back_or_for_a_purpose_are_left(lines: list[str]) -> None:
    assert moved_shell(lines, HERE, ENVIRON) is None


def test_the_same_folder_by_another_path_is_the_same(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert moved_shell([f"cd {tmp_path}/link"], f"{tmp_path}/real", ENVIRON) is None
