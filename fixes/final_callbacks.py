"""Backward final callbacks for 219.1: a list of our own, for which MindSpore is handed one lasting object."""

from __future__ import annotations

from collections.abc import Callable

Callback = Callable[[], object]

# MindSpore's worker thread lowers the count of a callback that it drops un-run without holding the GIL, and a count may
# drift. These references keep the one object that it is ever given far from zero; they cost 8 bytes each.
_RESERVE = 100_000


class _Level:
    """The callbacks of one backward.

    Attributes:
        waiting: Those that have not run.
        handed: True once MindSpore was asked to call us at the end of this backward.
    """

    def __init__(self) -> None:
        self.waiting: list[Callback] = []
        self.handed = False


class FinalCallbacks:
    """Runs every final callback once, those queued by another final callback included, with or without an error.

    A backward may run inside a hook of another (recompute does that), so there is a level for each that is under way.
    """

    def __init__(self) -> None:
        # The one bound method that MindSpore is given; reading self._run again would make a new one.
        self.run: Callback = self._run
        self._reserve = [self.run] * _RESERVE
        self._levels = [_Level()]
        self._running = False

    @property
    def waiting(self) -> int:
        """Callbacks that have not run."""
        return sum(len(level.waiting) for level in self._levels)

    def queue(self, callback: Callback, hand_over: Callable[[Callback], object]) -> None:
        """Take a callback.

        Args:
            callback: What to run at the end of the backward that is under way.
            hand_over: MindSpore's own queue. It walks over a vector that a callback queued inside a callback would
                append to, so it is never used while callbacks run.
        """
        level = self._levels[-1]
        level.waiting.append(callback)
        # Outside of a backward that we know of, nothing would tell that MindSpore has dropped what it was handed.
        if not self._running and not (level.handed and len(self._levels) > 1):
            level.handed = True
            hand_over(self.run)

    def backward(self, function: Callable[[], object]) -> object:
        """Run one backward, and what it leaves un-run, also when it raises."""
        level = _Level()
        outer_runs, self._running = self._running, False
        self._levels.append(level)
        try:
            result = function()
            self._run()
            return result
        except BaseException as error:
            self._run_noting(level, error)
            raise
        finally:
            self._levels.remove(level)
            self._running = outer_runs

    def clear(self) -> None:
        """Drop what waits, here and now, on a thread that holds the GIL."""
        for level in self._levels:
            level.waiting.clear()

    def _run(self) -> None:
        level = self._levels[-1]
        level.handed = False
        first: Exception | None = None
        outer_runs, self._running = self._running, True
        try:
            # One queued by another is appended to the same list, and has its turn.
            while level.waiting:
                try:
                    level.waiting.pop(0)()
                except Exception as error:  # noqa: BLE001 -- the others must run; the first error is raised after them
                    first = first or error
        finally:
            self._running = outer_runs
        if first is not None:
            raise first

    def _run_noting(self, level: _Level, error: BaseException) -> None:
        if not level.waiting:
            return
        try:
            # By the public name: it is what a reader of MindSpore's queue, such as a probe, sees run.
            self.run()
        except Exception as later:  # noqa: BLE001 -- the error of backward itself is the one to raise
            error.add_note(f"a final callback failed after it: {type(later).__name__}: {later}")
