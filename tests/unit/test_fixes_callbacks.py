"""Mend 219.1 without MindSpore: the order of final callbacks, with and without errors, and the teardown."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from fixes.final_callbacks import FinalCallbacks
from fixes.hook_handles import HookHandles, _Once
from fixes.teardown import Teardown


class Native:
    """MindSpore's queue of final callbacks: a walk over those that were there at its start; an error drops them."""

    def __init__(self) -> None:
        self.queue: list[Callable[[], object]] = []

    def run(self, body: Callable[[], object]) -> Callable[[], object]:
        """A backward that runs ``body`` and then the callbacks."""

        def backward() -> None:
            try:
                body()
                for callback in list(self.queue):
                    callback()
            finally:
                self.queue.clear()

        return backward


def test_callbacks_run_once_in_order_those_queued_inside_included() -> None:
    native, callbacks, ran = Native(), FinalCallbacks(), list[str]()

    def queue(name: str, then: str = "") -> None:
        def callback() -> None:
            ran.append(name)
            if then:
                queue(then)

        callbacks.queue(callback, native.queue.append)

    def body() -> None:
        queue("first", then="third")
        queue("second")
        assert set(native.queue) == {callbacks.run}

    callbacks.backward(native.run(body))
    callbacks.backward(native.run(body))
    assert ran == ["first", "second", "third"] * 2
    # Outside of a backward that we were told of, too: there MindSpore alone says when it is over.
    native.run(body)()
    assert ran[6:] == ["first", "second", "third"]
    assert callbacks.waiting == 0


def test_an_error_in_backward_leaves_no_callback_un_run() -> None:
    native, callbacks, ran = Native(), FinalCallbacks(), list[str]()

    def fails() -> None:
        callbacks.queue(lambda: ran.append("ran"), native.queue.append)
        callbacks.queue(lambda: ran[99], native.queue.append)
        raise RuntimeError("in backward")

    with pytest.raises(RuntimeError, match="in backward") as caught:
        callbacks.backward(native.run(fails))
    assert ran == ["ran"]
    assert "IndexError" in caught.value.__notes__[0]
    assert callbacks.waiting == 0


def test_an_error_in_a_callback_is_raised_after_the_others() -> None:
    native, callbacks, ran = Native(), FinalCallbacks(), list[Any]()

    def body() -> None:
        callbacks.queue(lambda: ran[99], native.queue.append)
        callbacks.queue(lambda: ran.append("ran"), native.queue.append)

    with pytest.raises(IndexError):
        callbacks.backward(native.run(body))
    assert ran == ["ran"]


def test_a_backward_inside_another_runs_its_own_callbacks_alone() -> None:
    outer, inner, callbacks, ran = Native(), Native(), FinalCallbacks(), list[str]()

    def body_of_inner() -> None:
        callbacks.queue(lambda: ran.append("inner"), inner.queue.append)

    def body() -> None:
        callbacks.queue(lambda: ran.append("outer"), outer.queue.append)
        callbacks.backward(inner.run(body_of_inner))
        assert ran == ["inner"]

    callbacks.backward(outer.run(body))
    assert ran == ["inner", "outer"]


def at_exit(sync: Callable[[], object], *, uses: int = 1, pid: int | None = None) -> Teardown:
    mend = Teardown()
    mend._sync, mend._uses, mend._pid = sync, uses, os.getpid() if pid is None else pid
    return mend


class Handle:
    """The handle of an asynchronous collective, which says in a list that it was waited for."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    def wait(self) -> None:
        """As a CommHandle's."""
        self._order.append("waited")


class Hook:
    """The handle of a hook, which says in a list that it was removed."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    def remove(self) -> None:
        """As a _TensorHookHandle's."""
        self._order.append("removed")


class Dropped:
    """In a cycle with itself; says in a list that it was collected."""

    def __init__(self, order: list[str]) -> None:
        self.itself, self._order = self, order

    def __del__(self) -> None:
        self._order.append("collected")


def test_teardown_comes_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    hooks = HookHandles()
    monkeypatch.setattr("fixes.hook_handles.MEND", hooks)
    once = _Once(lambda grad: grad)
    hooks._kept[weakref.ref(once, hooks._died)] = Hook(order)
    mend = at_exit(lambda: order.append("sync"))
    mend.callbacks.queue(lambda: order.append("ran"), lambda _: None)
    handle = Handle(order)
    mend._open.add(handle)
    gc.collect()
    Dropped(order)
    mend.finish()
    assert order == ["removed", "waited", "sync", "collected", "sync"]
    assert (mend.callbacks.waiting, hooks.open_handles) == (0, 0)


@pytest.mark.parametrize("what", ["queue", "collectives"])
def test_teardown_has_a_deadline(
    what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fixes.teardown.DEADLINE_S", 0.01)
    gate = threading.Event()
    mend = at_exit(gate.wait)
    if what == "collectives":
        mend._wait_for_collectives = gate.wait  # type: ignore[method-assign, assignment]
    mend.finish()
    gate.set()
    assert capsys.readouterr().err == f"hyper-repro: MindSpore's {what} not over after 0.01 s; exiting\n"


def test_an_error_at_exit_is_said_and_not_raised(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise ValueError("an old collective")

    at_exit(fails).finish()
    assert capsys.readouterr().err == "hyper-repro: at exit: ValueError: an old collective\n" * 2


@pytest.mark.parametrize(("uses", "pid"), [(0, None), (1, 1)])
def test_no_teardown_where_nothing_ran_or_in_a_forked_child(uses: int, pid: int | None) -> None:
    asked: list[int] = []
    at_exit(lambda: asked.append(1), uses=uses, pid=pid).finish()
    assert asked == []
