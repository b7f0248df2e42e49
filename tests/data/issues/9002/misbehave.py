"""A rank that ends in all the ways that a harness must survive; ``args.what`` says how, ``args.rank`` which one."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from repro.probes.context import Context

LONG_S = 600


def case(context: Context) -> None:
    """Do as told on the rank that is told; the others behave, or wait if they are told to."""
    if context.args.get("collectives"):
        context.init_collectives()
    mine = context.args.get("rank", context.rank) == context.rank
    what = str(context.args["what"] if mine else context.args.get("others", "behave"))
    # Said before it is done: a test that kills or waits looks for it.
    context.record("about to", what=what)
    print("about to", what)
    ACTIONS[what]()


def _behave() -> None:
    print("well")


def _raise() -> None:
    raise ValueError("asked to raise 形状不符")


def _hang() -> None:
    time.sleep(LONG_S)


def _ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _hang()


def _fork() -> None:
    """Leave a child behind that has a session and no parent of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(LONG_S)
        os._exit(0)


def _fork_and_hang() -> None:
    _fork()
    _hang()


def _flood() -> None:
    line = b"x" * (1 << 20)
    while True:
        os.write(sys.stdout.fileno(), line)
        time.sleep(0.002)


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _leave() -> None:
    os._exit(0)


def _crash_at_exit() -> None:
    atexit.register(ctypes.string_at, 0)


def _wait_for_gate() -> None:
    while not Path(os.environ["HYPER_REPRO_TEST_GATE"]).exists():
        time.sleep(0.02)
    raise ValueError("asked to raise once the gate is open")


ACTIONS = {
    "behave": _behave,
    "raise": _raise,
    "hang": _hang,
    "ignore SIGTERM": _ignore_sigterm,
    "fork": _fork,
    "fork and hang": _fork_and_hang,
    "flood": _flood,
    "kill self": _kill_self,
    "leave": _leave,
    "abort": os.abort,
    "crash at exit": _crash_at_exit,
    "wait for gate": _wait_for_gate,
}
