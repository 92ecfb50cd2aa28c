"""`sys._current_frames`: without it a long validation of a script without a Trainer is a hang."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hpc_train.training.private.main_stack import Place, place_of_main_thread


def seen_while(main: Callable[[], object]) -> set[Place]:
    """Where another thread saw the main one at ten times during `main`."""
    seen, over, looks = set(), threading.Event(), threading.Event()

    def look() -> None:
        for _ in range(10):
            seen.add(place_of_main_thread())
            over.wait(0.02)
        looks.set()

    thread = threading.Thread(target=look)
    thread.start()
    while not looks.is_set():
        main()
    thread.join()
    return seen


def test_a_main_thread_at_work_moves_and_one_that_waits_in_c_does_not() -> None:
    started = threading.Event()
    assert len(seen_while(lambda: sum(number * number for number in range(1000)))) > 1
    waits = seen_while(lambda: started.wait(0.5))
    assert any("wait" in place[0][1] for place in waits if place)
    assert len(waits) < 10
