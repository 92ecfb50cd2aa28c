from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_train.training.resume.checkpoint import (
    commit,
    discard_partials,
    find_newest_valid,
    list_checkpoints,
    open_partial,
    prune,
    surplus_steps,
)
from hpc_train.training.resume.manifest import (
    PIECE_BYTES,
    LaterCheckpointError,
    Manifest,
    UnreadableCheckpointError,
    find_problem,
    hash_file,
    read_manifest,
    record_file,
)


def make(folder: Path, step: int, *, size: int = 1000, attempt: int = 0) -> Path:
    partial = open_partial(folder, step, attempt)
    file = partial / "model.ckpt"
    file.write_bytes(os.urandom(size))
    (partial / "model").mkdir(exist_ok=True)
    shard = partial / "model" / "__0_0.distcp"
    shard.write_bytes(b"shard")
    manifest = Manifest(
        step=step,
        epoch=0,
        samples=0,
        world_size=1,
        accumulate=1,
        config_hash="c",
        attempt=attempt,
        time=0.0,
        versions={},
        files=(record_file(partial, file), record_file(partial, shard)),
    )
    return commit(partial, manifest)


def flip_a_byte(path: Path, at: int) -> None:
    with path.open("r+b") as stream:
        stream.seek(at)
        byte = stream.read(1)
        stream.seek(at)
        stream.write(bytes([byte[0] ^ 1]))


DAMAGES = {
    "truncated": lambda path: os.truncate(path / "model.ckpt", 500),
    "damaged": lambda path: flip_a_byte(path / "model.ckpt", 777),
    "manifest missing": lambda path: (path / "manifest.json").unlink(),
    "manifest unreadable": lambda path: os.truncate(path / "manifest.json", 40),
    "model.ckpt missing": lambda path: (path / "model.ckpt").unlink(),
    "distcp damaged": lambda path: flip_a_byte(path / "model" / "__0_0.distcp", 2),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_kept_aside_and_named(
    damage: str, tmp_path: Path
) -> None:
    good = make(tmp_path, 5)
    DAMAGES[damage](make(tmp_path, 10))
    newest, skipped = find_newest_valid(tmp_path)
    assert newest == good
    (found,) = skipped
    assert (found.step, found.path.name) == (10, "step-000000010.broken")
    assert found.path.exists()
    assert all(word in str(found.reason) for word in damage.split())
    assert find_newest_valid(tmp_path) == (good, [])  # nobody counts it any more
    assert make(tmp_path, 10).name == "step-000000010"


def make_unreadable(path: Path) -> None:
    """As of a node whose mount is broken: it answers, and gives no content."""
    (path / "model.ckpt").unlink()
    (path / "model.ckpt").symlink_to("model.ckpt")


def make_later(path: Path) -> None:
    """As by an hpc-train that is to come."""
    file = path / "manifest.json"
    file.write_text(file.read_text().replace('"schema_version": 1', '"schema_version": 2'))


@pytest.mark.parametrize(
    ("change", "kind"),
    [(make_unreadable, UnreadableCheckpointError), (make_later, LaterCheckpointError)],
)
def test_one_that_may_be_whole_is_neither_passed_over_nor_moved_nor_deleted(
    change: Callable[[Path], None], kind: type[Exception], tmp_path: Path
) -> None:
    make(tmp_path, 5)
    change(make(tmp_path, 10))
    for verify in (True, False):
        with pytest.raises(kind, match="step-000000010"):
            find_newest_valid(tmp_path, verify=verify)
    make(tmp_path, 12)
    assert find_newest_valid(tmp_path)[0] == tmp_path / "step-000000012"
    prune(tmp_path, keep_last=1, keep_every_n_steps=None)
    with pytest.raises(OSError, match="may be whole"):
        make(tmp_path, 10, attempt=1)
    assert sorted(path.name for path in tmp_path.glob("step-*")) == [
        "step-000000010",
        "step-000000012",
    ]


def test_without_any_whole_checkpoint_there_is_none(tmp_path: Path) -> None:
    assert find_newest_valid(tmp_path / "nowhere") == (None, [])
    DAMAGES["damaged"](make(tmp_path, 1))
    assert find_newest_valid(tmp_path)[0] is None


def test_what_is_not_committed_is_no_checkpoint(tmp_path: Path) -> None:
    good = make(tmp_path, 5)
    (open_partial(tmp_path, 10, 3) / "model.ckpt").write_bytes(b"half")
    assert find_newest_valid(tmp_path) == (good, [])
    discard_partials(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [good.name]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_read_only_folder_still_gives_the_newest_whole_one(tmp_path: Path) -> None:
    good = make(tmp_path, 5)
    DAMAGES["damaged"](make(tmp_path, 10))
    subprocess.run(["mount", "--bind", "-o", "ro", tmp_path, tmp_path], check=True)
    try:
        newest, skipped = find_newest_valid(tmp_path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert newest == good
    assert skipped[0].path.name == "step-000000010"


def test_without_hashes_only_sizes_are_compared(tmp_path: Path) -> None:
    path = make(tmp_path, 5)
    DAMAGES["damaged"](path)
    assert find_problem(path, hashes=False) is None
    assert [found.valid for found in list_checkpoints(tmp_path, verify=True)] == [False]
    assert [found.valid for found in list_checkpoints(tmp_path, verify=False)] == [True]


def test_the_same_step_saved_again_keeps_the_whole_one(tmp_path: Path) -> None:
    first = make(tmp_path, 5)
    content = (first / "model.ckpt").read_bytes()
    assert make(tmp_path, 5, attempt=1) == first
    assert (first / "model.ckpt").read_bytes() == content
    DAMAGES["truncated"](first)
    again = make(tmp_path, 5, attempt=2)
    assert find_problem(again) is None
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "step-000000005",
        "step-000000005.broken",
    ]


def test_what_a_failed_save_left_does_not_get_into_the_next(tmp_path: Path) -> None:
    (open_partial(tmp_path, 5, 0) / "rank-9.pt").write_bytes(b"old")
    path = make(tmp_path, 5)
    assert not (path / "rank-9.pt").exists()


def test_a_manifest_says_where_the_run_stood(tmp_path: Path) -> None:
    manifest = read_manifest(make(tmp_path, 5))
    assert (manifest.step, manifest.config_hash, manifest.size_bytes) == (5, "c", 1005)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES - 1])
def test_a_hash_covers_every_byte(size: int, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(size))
    before = hash_file(file)
    assert hash_file(file) == before
    if size:
        flip_a_byte(file, size - 1)
        assert hash_file(file) != before


@given(
    st.sets(st.integers(1, 500), max_size=30),
    st.integers(1, 5),
    st.none() | st.integers(1, 100),
)
def test_the_newest_are_kept_and_one_of_each_interval(
    steps: set[int], keep_last: int, every: int | None
) -> None:
    surplus = surplus_steps(steps, keep_last=keep_last, keep_every_n_steps=every)
    kept = sorted(steps - set(surplus))
    assert sorted(steps)[-keep_last:] == kept[-keep_last:]
    if every is None:
        assert len(kept) == min(len(steps), keep_last)
    else:
        intervals = {step // every for step in steps} - {0}
        assert intervals <= {step // every for step in kept}


def test_nothing_is_kept_means_the_newest_is() -> None:
    assert surplus_steps([1, 2, 3], keep_last=0, keep_every_n_steps=None) == [1, 2]


def test_a_broken_one_never_takes_a_whole_ones_place(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        make(tmp_path, step)
    DAMAGES["truncated"](tmp_path / "step-000000003")
    DAMAGES["manifest missing"](tmp_path / "step-000000002")
    assert prune(tmp_path, keep_last=1, keep_every_n_steps=None) == []
    newest, _ = find_newest_valid(tmp_path)
    assert newest == tmp_path / "step-000000001"
