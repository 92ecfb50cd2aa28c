"""What a checkpoint says of itself: its files with sizes and hashes, and where the run stood.

A file's hash is the SHA-256 of the SHA-256s of its 8 MiB pieces: while one thread reads ahead (in
order, as the kernel's readahead wants it), others hash (hashlib frees the GIL), so that verifying
costs little more than reading. SHA-256 beats BLAKE2b on CPUs with SHA instructions, as nodes have
(1.7 against 1.2 GB/s a thread, measured).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from hpc_train.errors import CheckError, HpcTrainError
from hpc_train.runs.checkpoints import MANIFEST
from hpc_train.training.rank_failure import PeerError

PIECE_BYTES = 8 << 20
_THREADS = 8
# Of the whole folder: manifest.json, model.ckpt, rank-R.pt. What changes any of them adds one here,
# and its reader goes on reading all those before (docs/resuming.md, tests/training/test_golden.py).
SCHEMA_VERSION = 1


class CheckpointError(HpcTrainError):
    """A run cannot go on from the checkpoint in `folder`, and why."""

    exit_code = CheckError.exit_code
    said = ""
    fix = ""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder.name} {self.said}: {reason}", self.fix.format(folder=folder))
        self.args = (folder, reason)  # rank 0's errors are sent to the other ranks
        self.reason = reason


class DamagedCheckpointError(CheckpointError):
    """What is on the disk was read, or is not there, and is not what was written."""

    said = "is damaged"
    fix = "hpc-train checkpoints RUN --verify tells which are whole; rename {folder} to go on"


class UnreadableCheckpointError(CheckpointError, PeerError):
    """It may be whole: another node, or another try, may be able to read it."""

    exit_code = PeerError.exit_code
    kind = "storage"
    said = "cannot be read on this node"
    fix = "is the file system well? rename {folder} to go on from an earlier checkpoint"


class LaterCheckpointError(CheckpointError):
    """A later hpc-train wrote it."""

    said = "is of a later hpc-train"
    fix = "install that hpc-train, or rename {folder} to go on from an earlier checkpoint"


@dataclass(frozen=True)
class FileRecord:
    """One file of a checkpoint; `path` is relative to its folder."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The document that makes a folder a checkpoint.

    Attributes:
        step: Optimizer steps taken.
        samples: Consumed by all ranks together in `epoch`; None for a stream without position.
        config_hash: As in the plan: of what makes the result.
        versions: Of python, torch, hpc-train, and of the packages of Lightning that are there.
    """

    step: int
    epoch: int
    samples: int | None
    world_size: int
    accumulate: int
    config_hash: str
    attempt: int
    time: float
    versions: dict[str, str]
    files: tuple[FileRecord, ...]
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> str:
        """The text of manifest.json."""
        return json.dumps(dataclasses.asdict(self), indent=1) + "\n"

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(record.size_bytes for record in self.files)


def read_manifest(folder: Path) -> Manifest:
    """Read `folder`/manifest.json of this schema version or an earlier one.

    Raises:
        CheckpointError: it is not there, cannot be read, is no manifest or of a later version.
    """
    try:
        document: Any = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version = int(document["schema_version"])
        if version > SCHEMA_VERSION:
            writer = dict(document.get("versions") or {}).get("hpc-train", "unknown")
            raise LaterCheckpointError(
                folder,
                f"hpc-train {writer} wrote it with schema_version {version}, and this one reads "
                f"up to {SCHEMA_VERSION}",
            )
        files = tuple(FileRecord(**record) for record in document.pop("files"))
        return Manifest(files=files, **document)
    except FileNotFoundError as error:
        raise DamagedCheckpointError(folder, "manifest missing") from error
    except OSError as error:
        raise UnreadableCheckpointError(folder, f"manifest unreadable: {error}") from error
    except ValueError as error:
        raise DamagedCheckpointError(folder, f"manifest unreadable: {error}") from error
    except (TypeError, KeyError, AttributeError) as error:
        reason = f"manifest unreadable: not a manifest: {error}"
        raise DamagedCheckpointError(folder, reason) from error


def hash_file(path: Path) -> str:
    """The hash as the manifest has it; reads the file once.

    Raises:
        OSError: as the file system says.
    """
    digests: list[bytes] = []
    with path.open("rb", buffering=0) as stream:
        pieces = -(-os.fstat(stream.fileno()).st_size // PIECE_BYTES)
        threads = max(1, min(_THREADS, pieces, len(os.sched_getaffinity(0))))
        buffers = [bytearray(PIECE_BYTES) for _ in range(min(threads + 2, pieces))]
        hashing: deque[Future[bytes]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for number in range(pieces):
                if len(hashing) == len(buffers):
                    digests.append(hashing.popleft().result())
                filled = _fill(stream, memoryview(buffers[number % len(buffers)]))
                hashing.append(pool.submit(_sha256, filled))
            digests += [future.result() for future in hashing]
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _fill(stream: FileIO, buffer: memoryview) -> memoryview:
    """The next piece of the file, in `buffer`; only the last one is shorter."""
    filled = 0
    while filled < len(buffer) and (count := stream.readinto(buffer[filled:])):
        filled += count
    return buffer[:filled]


def _sha256(piece: memoryview) -> bytes:
    return hashlib.sha256(piece).digest()


def record_file(folder: Path, path: Path) -> FileRecord:
    """Size and hash of a file that was just written, for the manifest."""
    return FileRecord(path.relative_to(folder).as_posix(), path.stat().st_size, hash_file(path))


def find_problem(folder: Path, *, hashes: bool = True) -> CheckpointError | None:
    """Why a run cannot go on from the checkpoint in `folder`; None where it is whole.

    Args:
        hashes: False looks at the manifest and the files' sizes only.
    """
    try:
        manifest = read_manifest(folder)
        for record in manifest.files:
            _check_file(folder, record, hashes=hashes)
    except CheckpointError as error:
        return error
    return None


def find_file_problem(path: Path) -> CheckpointError | None:
    """The same for one file of a checkpoint; None as well where no manifest has it."""
    try:
        for record in read_manifest(path.parent).files:
            if record.path == path.name:
                _check_file(path.parent, record, hashes=True)
    except CheckpointError as error:
        return error if (path.parent / MANIFEST).exists() else None
    return None


def _check_file(folder: Path, record: FileRecord, *, hashes: bool) -> None:
    path = folder / record.path
    try:
        size = path.stat().st_size
        if size != record.size_bytes:
            reason = f"{record.path} truncated: {size} of {record.size_bytes} bytes"
            raise DamagedCheckpointError(folder, reason)
        if hashes and hash_file(path) != record.sha256:
            reason = f"{record.path} damaged: its hash is not the manifest's"
            raise DamagedCheckpointError(folder, reason)
    except FileNotFoundError as error:
        raise DamagedCheckpointError(folder, f"{record.path} missing") from error
    except OSError as error:
        reason = f"{record.path} unreadable: {error.strerror}"
        raise UnreadableCheckpointError(folder, reason) from error
