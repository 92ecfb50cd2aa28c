"""A checkpoint is whole only where every file of its manifest can be read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from hpc_train.training.rank_failure import failure_of
from hpc_train.training.resume import manifest as manifests
from hpc_train.training.resume.manifest import (
    PIECE_BYTES,
    CheckpointError,
    DamagedCheckpointError,
    FileRecord,
    LaterCheckpointError,
    Manifest,
    UnreadableCheckpointError,
    find_problem,
    hash_file,
    read_manifest,
    record_file,
)

MANIFEST = Manifest(
    step=5,
    epoch=0,
    samples=None,
    world_size=1,
    accumulate=1,
    config_hash="c",
    attempt=0,
    time=0.0,
    versions={},
    files=(),
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A whole checkpoint of two files."""
    (tmp_path / "shard").mkdir()
    for name in ("model.ckpt", "shard/rank-0.pt"):
        (tmp_path / name).write_bytes(name.encode() * 100)
    paths = (tmp_path / "model.ckpt", tmp_path / "shard" / "rank-0.pt")
    write(tmp_path, *(record_file(tmp_path, path) for path in paths))
    assert find_problem(tmp_path) is None
    return tmp_path


def problem(folder: Path, *, hashes: bool = True) -> tuple[type[CheckpointError], str]:
    found = find_problem(folder, hashes=hashes)
    assert found is not None
    return type(found), found.reason


def write(folder: Path, *files: FileRecord, **fields: object) -> None:
    document = replace(MANIFEST, files=files).to_json()
    (folder / "manifest.json").write_text(json.dumps({**json.loads(document), **fields}))


@pytest.mark.parametrize("hashes", [True, False])
def test_a_file_that_the_file_system_does_not_give_is_not_valid(
    hashes: bool, checkpoint: Path
) -> None:
    file = checkpoint / "shard" / "rank-0.pt"
    file.unlink()
    file.symlink_to(file)  # ELOOP, as of a broken mount
    reason = f"shard/rank-0.pt unreadable: {os.strerror(errno.ELOOP)}"
    assert problem(checkpoint, hashes=hashes) == (UnreadableCheckpointError, reason)


def test_a_file_whose_content_cannot_be_read_is_not_valid(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(manifests, "hash_file", fail)  # a disk that answers stat and no read
    reason = "model.ckpt unreadable: Input/output error"
    assert problem(checkpoint) == (UnreadableCheckpointError, reason)
    assert find_problem(checkpoint, hashes=False) is None


def test_a_folder_in_a_files_place_is_not_valid(checkpoint: Path) -> None:
    folder = checkpoint / "folder"
    folder.mkdir()
    write(checkpoint, FileRecord("folder", folder.stat().st_size, "0" * 64))
    reason = "folder unreadable: Is a directory"
    assert problem(checkpoint) == (UnreadableCheckpointError, reason)


def test_a_manifest_that_cannot_be_read_is_told_from_one_that_is_missing(
    checkpoint: Path,
) -> None:
    path = checkpoint / "manifest.json"
    path.unlink()
    assert problem(checkpoint) == (DamagedCheckpointError, "manifest missing")
    path.mkdir()
    kind, reason = problem(checkpoint)
    assert (kind, reason[:21]) == (UnreadableCheckpointError, "manifest unreadable: ")
    path.rmdir()
    path.write_bytes(b"\xff{")
    kind, reason = problem(checkpoint)
    assert kind is DamagedCheckpointError, "it was read, and is no text"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("[]", "not a manifest"),
        ("{}", "not a manifest"),
        ('{"files": []}', "not a manifest"),
        ('{"files": [{"path": "a"}]}', "not a manifest"),
        ('{"files": 3}', "not a manifest"),
    ],
)
def test_json_that_is_no_manifest_is_damaged(document: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(document)
    with pytest.raises(DamagedCheckpointError, match=words):
        read_manifest(tmp_path)


def test_a_manifest_of_a_later_version_is_told_with_who_wrote_it(checkpoint: Path) -> None:
    assert json.loads((checkpoint / "manifest.json").read_text())["schema_version"] == 1
    write(checkpoint, schema_version=2, versions={"hpc-train": "9.1"}, new_field="x")
    with pytest.raises(LaterCheckpointError) as caught:
        read_manifest(checkpoint)
    assert caught.value.message == (
        f"{checkpoint.name} is of a later hpc-train: hpc-train 9.1 wrote it with schema_version 2, "
        "and this one reads up to 1"
    )
    assert "install that hpc-train" in caught.value.hint
    assert problem(checkpoint)[0] is LaterCheckpointError


def test_one_byte_more_or_less_is_told_with_both_sizes(checkpoint: Path) -> None:
    size = (checkpoint / "model.ckpt").stat().st_size
    for changed in (size - 1, size + 1):
        os.truncate(checkpoint / "model.ckpt", changed)
        expected = f"model.ckpt truncated: {changed} of {size} bytes"
        assert problem(checkpoint, hashes=False) == (DamagedCheckpointError, expected)


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES + 5])
def test_the_hash_is_that_of_the_hashes_of_its_pieces(size: int, tmp_path: Path) -> None:
    content = os.urandom(min(size, PIECE_BYTES)) * (size // PIECE_BYTES + 1)
    (tmp_path / "file").write_bytes(content[:size])
    pieces = [content[:size][at : at + 8 * 1024 * 1024] for at in range(0, size, 8 * 1024 * 1024)]
    digests = b"".join(hashlib.sha256(piece).digest() for piece in pieces)
    assert hash_file(tmp_path / "file") == hashlib.sha256(digests).hexdigest()


def test_the_hash_does_not_depend_on_the_number_of_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "PIECE_BYTES", 1000)
    (tmp_path / "file").write_bytes(os.urandom(54_321))
    hashes = set()
    for cpus in (1, 2, 3, 64):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, n=cpus: set(range(n)))
        hashes.add(hash_file(tmp_path / "file"))
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("kind", "recorded"),
    [(DamagedCheckpointError, (3, "check")), (UnreadableCheckpointError, (76, "storage"))],
)
def test_what_rank_0_finds_reaches_the_other_ranks_whole(
    kind: type[CheckpointError], recorded: tuple[int, str]
) -> None:
    error = kind(Path("checkpoints/step-000000005"), "model.ckpt missing")
    sent = pickle.loads(pickle.dumps(error))
    assert (type(sent), sent.message, sent.hint) == (kind, error.message, error.hint)
    failure = failure_of(sent)
    assert (failure.code, failure.kind) == recorded
