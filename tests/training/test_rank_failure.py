from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hpc_train.errors import CheckError
from hpc_train.training.rank_failure import PeerError, before_teardown, failure_of, user_frame

GLOO = (
    "[../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:4711"
)


def ended(error: BaseException) -> tuple[int, str]:
    ending = failure_of(error)
    return ending.code, ending.kind


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (ValueError("bad"), 1, "user"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), 1, "user"),
        (RuntimeError(GLOO), 76, "network"),
        (RuntimeError("Timed out waiting 1800000ms for recv operation to complete"), 76, "network"),
        (torch.distributed.DistNetworkError("connect() timed out"), 76, "network"),
        (torch.distributed.DistStoreError("wait timeout after 100ms"), 76, "network"),
        (torch.distributed.DistBackendError("NCCL error: ncclRemoteError"), 76, "network"),
        (torch.distributed.DistBackendError("ncclInvalidUsage: Duplicate GPU"), 1, "user"),
        (ConnectionResetError("the user's own socket"), 1, "user"),
        (PeerError("ranks 3 never came"), 76, "network"),
        (CheckError("no"), 3, "check"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), 1, "gpu_memory"),
        (RuntimeError("CUDA error: out of memory"), 1, "gpu_memory"),
        (MemoryError(), 1, "user"),
        (SystemExit(4), 4, "user"),
        (SystemExit(0), 1, "user"),  # leaving early is not finishing
        (SystemExit(75), 1, "user"),  # and a code of ours in the user's mouth means nothing
        (SystemExit("gave up"), 1, "user"),
    ],
)
def test_an_exception_becomes_the_exit_code_that_says_whose_it_is(
    error: BaseException, code: int, kind: str
) -> None:
    assert ended(error) == (code, kind)


@pytest.mark.parametrize(
    ("value", "name", "kind", "fix"),
    [
        ("ib7x", "ib7x", "user", "unset GLOO_SOCKET_IFNAME, or name an interface that is there: "),
        ("lo,ib7x", "ib7x", "user", "unset GLOO_SOCKET_IFNAME"),
        ("lo", "lo", "network", ""),  # it is there and has no address: another node's may
        ("", "node1", "network", ""),  # of a host's name
    ],
)
def test_an_interface_that_a_variable_names_and_that_is_not_there_is_the_users(
    monkeypatch: pytest.MonkeyPatch, value: str, name: str, kind: str, fix: str
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", value)
    where = "[enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:83]"
    error = RuntimeError(f"{where} ifa != nullptr. Unable to find address for: {name}")
    failure = failure_of(error)
    assert (failure.kind, failure.fix.startswith(fix)) == (kind, True)
    assert (failure.fix != "") is (fix != "")


def test_what_an_error_says_below_its_first_line_or_not_at_all_is_said() -> None:
    said = failure_of(ValueError("the output should be one of:\n * an optimizer\n * a list")).error
    assert said == "ValueError: the output should be one of: * an optimizer * a list"
    with pytest.raises(KeyError) as caught:
        os.environ["NO_SUCH_VARIABLE"]
    assert "'NO_SUCH_VARIABLE', a variable that is not set" in failure_of(caught.value).error
    assert failure_of(KeyError("x")).error == "KeyError: 'x'"
    none = AttributeError("'NoneType' object has no attribute 'best_model_path'")
    assert "callbacks.ModelCheckpoint} to trainer.callbacks" in failure_of(none).error
    assert "take it as an argument" in failure_of(EOFError("EOF when reading a line")).error


def test_a_network_error_that_a_library_wrapped_is_still_one() -> None:
    error = ValueError("could not reduce")
    error.__cause__ = RuntimeError(GLOO)
    assert ended(error) == (76, "network")


def test_a_user_error_raised_while_handling_a_network_error_stays_the_users() -> None:
    error = KeyError("key")
    error.__context__ = RuntimeError(GLOO)
    assert ended(error) == (1, "user")


def test_an_error_in_the_users_own_handling_of_another_is_no_tear_down() -> None:
    def teardown() -> None:
        try:
            raise ValueError("first")
        except ValueError:
            raise KeyError("second")  # noqa: B904 - as users write it

    with pytest.raises(KeyError) as caught:
        teardown()
    assert before_teardown(caught.value) is caught.value


def test_the_place_is_the_innermost_line_of_the_users_code(tmp_path: Path) -> None:
    code = "import json\ndef load():\n    return json.loads('{')\n"
    file = tmp_path / "my_model.py"
    file.write_text(code)
    space: dict[str, object] = {}
    exec(compile(code, str(file), "exec"), space)
    with pytest.raises(ValueError) as caught:
        space["load"]()  # type: ignore[operator]
    ending = failure_of(caught.value)
    assert ending.where == f"{file}:3"
    assert ending.error.startswith("JSONDecodeError: Expecting property name")
    assert "json/decoder.py" in ending.traceback


def test_an_error_in_an_installed_package_of_the_user_is_placed_there(tmp_path: Path) -> None:
    file = tmp_path / "site-packages" / "their_models" / "net.py"
    space: dict[str, object] = {}
    exec(compile("def run():\n    1 / 0\n", str(file), "exec"), space)
    frame = None
    try:
        space["run"]()  # type: ignore[operator]
    except ZeroDivisionError as error:
        # as a rank sees it: without this test, which is nobody's user code
        frame = user_frame(error.with_traceback(error.__traceback__.tb_next))  # type: ignore[union-attr]
    assert frame == f"{file}:2"


class _Broken(torch.utils.data.Dataset[int]):
    def __init__(self, says: str) -> None:
        self.says = says

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        raise OSError(self.says)


@pytest.mark.parametrize(
    "more",
    [
        "",
        # As of torch's errors of CUDA, whose last line is advice.
        "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `X` to enable it.\n",
        "\n  indented\nNote: and more",
    ],
)
def test_an_error_in_a_data_worker_is_placed_in_the_dataset(more: str) -> None:
    loader = torch.utils.data.DataLoader(_Broken(f"sample 0 is unreadable{more}"), num_workers=1)
    with pytest.raises(OSError, match="Original Traceback") as caught:
        next(iter(loader))
    ending = failure_of(caught.value)
    assert ending.error == "OSError: sample 0 is unreadable"
    line = _Broken.__getitem__.__code__.co_firstlineno + 1
    assert ending.where == f"{__file__}:{line}"
    assert ending.kind == "user"


def test_an_error_of_ours_is_one_line_without_a_traceback() -> None:
    ending = failure_of(CheckError("no GPU", "ask for one"))
    assert ending.fix == "ask for one", "for diagnose"
    assert (ending.error, ending.traceback) == ("no GPU (ask for one)", "")


def test_judging_needs_no_torch() -> None:
    code = "import sys, hpc_train.training.rank_failure; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


LEAVES = """
import multiprocessing, os, signal, sys, time
from hpc_train.training.rank_failure import leave

class Slow:
    def flush(self):
        time.sleep(0.5)

def ended(*given):
    raise RuntimeError("DataLoader worker (pid 1) is killed by signal: Killed.")

for _ in range(int(sys.argv[1])):
    multiprocessing.Process(target=time.sleep, args=(60,)).start()
signal.signal(signal.SIGCHLD, ended)
sys.stdout = Slow()
leave(7)
"""


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_what_a_killed_data_worker_sends_does_not_change_the_end(workers: int) -> None:
    """torch's handler of SIGCHLD raises in the main thread: the exit code was another one."""
    words = [sys.executable, "-c", LEAVES, str(workers)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (7, "")
