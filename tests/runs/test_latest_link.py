"""Which attempt is the newest, where the link to it was lost as the run was copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hpc_train.runs.latest_link import link_latest
from hpc_train.runs.layout import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run of two attempts."""
    run = RunDir(tmp_path / "x" / "20261126-170000-ab12")
    for number in (0, 1):
        heartbeat = run.attempt(number).heartbeat(0)
        heartbeat.parent.mkdir(parents=True)
        heartbeat.write_text(f'{{"step": {number}}}')
        run.attempt(number).rank_log(0).write_text("x" * number)
        assert link_latest(run, number) == ""
    return run


@pytest.fixture
def copied(run: RunDir, tmp_path: Path) -> RunDir:
    """As scp -r copies it."""
    copy = RunDir(tmp_path / "copies" / run.run_id)
    shutil.copytree(run.path, copy.path)
    assert not copy.latest.is_symlink()
    return copy


def started(run: RunDir, number: int) -> str:
    run.attempt(number).path.mkdir()
    return link_latest(run, number)


def newest(run: RunDir) -> str:
    return run.latest_attempt.path.resolve().name


def test_the_link_follows_the_attempts(run: RunDir) -> None:
    assert (run.latest.is_symlink(), newest(run)) == (True, "1")
    (run.path / ".latest-2").symlink_to("attempts/2")  # of a supervisor that was killed
    assert started(run, 2) == ""
    assert (newest(run), len(list(run.path.iterdir()))) == ("2", 2)


def test_a_copy_that_has_no_link_is_put_aside_and_nothing_of_it_is_lost(copied: RunDir) -> None:
    assert started(copied, 2) == (
        "latest was a copy of attempts/1 and no link to it: it is latest-copy-2 now"
    )
    assert (copied.latest.is_symlink(), newest(copied)) == (True, "2")
    assert (copied.path / "latest-copy-2/heartbeat/rank-0.json").read_text() == '{"step": 1}'
    assert started(copied, 3) == ""


@pytest.mark.parametrize("change", ["longer", "more", "file"])
def test_what_may_be_the_users_own_stays_where_it_is(copied: RunDir, change: str) -> None:
    if change == "file":
        shutil.rmtree(copied.latest)
        copied.latest.write_text("mine")
    else:
        name = "rank-0.log" if change == "longer" else "notes.txt"
        (copied.latest / name).write_text("mine, and longer")
    what = "a file" if change == "file" else "a folder"
    assert started(copied, 2) == (
        f"{copied.latest} is {what} and no link to the newest attempt:"
        f" mv {copied.latest} {copied.latest}-old; the newest attempt is in attempts/2"
    )
    assert not copied.latest.is_symlink()
    assert newest(copied) == "2", "without the link, too"
    assert sorted(it.name for it in copied.path.iterdir()) == ["attempts", "latest"]


def test_a_link_that_was_copied_as_a_text_is_made_anew(copied: RunDir) -> None:
    """As by an archive that was unpacked where there are no links."""
    shutil.rmtree(copied.latest)
    copied.latest.write_text("attempts/1")
    assert newest(copied) == "1"
    assert started(copied, 2) == ""
    assert (copied.latest.is_symlink(), newest(copied)) == (True, "2")


def test_a_copy_without_the_link_has_one_again(copied: RunDir) -> None:
    shutil.rmtree(copied.latest)
    assert newest(copied) == "1"
    assert started(copied, 2) == ""
    assert copied.latest.is_symlink()


def test_a_file_system_without_links_ends_nothing(
    copied: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert "(Operation not permitted); the newest attempt is in attempts/2" in started(copied, 2)
    assert newest(copied) == "2"
