"""A bounded pool: one piece of work a host, results in the order of the hosts, and no wait for who does not come back.

Threads of the standard pool are waited for when the interpreter ends. A look-up of a name or a read that nothing can
interrupt would then hold the command for minutes, so these threads are daemons, and a host that is late is left behind.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, cast

from repro.engines.ssh.deadline import Deadline

WIDTH = 128
# A piece of work keeps its own deadline; only one that cannot is left behind, this long after it.
GRACE_S = 1.5
Item = TypeVar("Item")
Result = TypeVar("Result")


class Pool(Generic[Item, Result]):
    """Runs ``work`` on every item, at most ``width`` at a time.

    Args:
        items: What to work on.
        work: Called with each item in a thread of the pool; what it raises is raised to who takes the result.
        late: Makes the result of an item that did not come back in time, and cuts what it still does.
        width: How many at a time.
        deadline: When to stop waiting.
    """

    def __init__(
        self,
        items: Sequence[Item],
        work: Callable[[Item], Result],
        late: Callable[[Item], Result],
        deadline: Deadline,
        width: int = WIDTH,
    ) -> None:
        self._items = items
        self._work = work
        self._late = late
        self._deadline = deadline
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]] = queue.SimpleQueue()
        for number in range(len(items)):
            self._waiting.put(number)
        self._width = min(width, len(items))
        self._threads: list[threading.Thread] = []

    def results(self) -> Iterator[tuple[int, Result]]:
        """Each item's number and result as they come; late ones last."""
        self._threads = [
            threading.Thread(target=self._serve, name=f"host-{number}", daemon=True) for number in range(self._width)
        ]
        for thread in self._threads:
            thread.start()
        left = set(range(len(self._items)))
        while left:
            try:
                wait = None if self._deadline.at == float("inf") else self._deadline.left + GRACE_S
                number, result, problem = self._done.get(timeout=wait)
            except queue.Empty:
                break
            left.discard(number)
            if problem is not None:
                raise problem
            yield number, cast("Result", result)
        for number in sorted(left):
            yield number, self._late(self._items[number])

    def settle(self, seconds: float) -> None:
        """Wait a little for work that has been told to stop."""
        deadline = Deadline.after(seconds)
        for thread in self._threads:
            thread.join(deadline.left)

    def in_order(self) -> list[Result]:
        """All results in the order of the items."""
        found = dict(self.results())
        return [found[number] for number in range(len(self._items))]

    def _serve(self) -> None:
        while True:
            try:
                number = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._done.put((number, self._work(self._items[number]), None))
            except BaseException as error:  # noqa: BLE001 -- raised again where the result is taken
                self._done.put((number, None, error))
