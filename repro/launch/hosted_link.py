"""The host's end of the channel: messages on the standard streams, and the knowledge of whether anyone listens."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from repro.errors import InfraError
from repro.transfer.frames import Cut, Receiver, Sender

# The other side says something every few seconds; after this long without a word it is taken for gone. The channel of a
# machine that lost its power or its network does not close.
SILENCE_S = 60.0
LOCK_PATIENCE_S = 30.0
BEAT_S = 2.0


class Gone(Exception):  # noqa: N818 -- no failure here
    """The other side is gone: there is nobody to tell."""


class Link:
    """Standard input and output as a channel of messages.

    Args:
        mark: What the lines of this session begin with.
    """

    def __init__(self, mark: str) -> None:
        self._out = os.dup(sys.stdout.fileno())
        # What anything prints goes where it does not disturb the messages.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._sender = Sender(self._write, mark)
        self._receiver = Receiver(self._read, mark)
        self._heard = time.monotonic()
        self.silence_s = SILENCE_S
        self._writing = threading.Lock()

    def send(self, **message: Any) -> None:
        """Send a message.

        Raises:
            Gone: Nobody is there.
        """
        with self._writing:
            self._sender.send(**message)

    def piece(self, data: bytes) -> None:
        """Send a piece of a file.

        Raises:
            Gone: Nobody is there.
        """
        with self._writing:
            self._sender.piece(data)

    def next(self) -> Mapping[str, Any]:
        """Wait for the next message that asks for something.

        Raises:
            Gone: The channel closed, or nothing was heard for too long.
        """
        while True:
            try:
                message = self._receiver.next()
            except Cut:
                raise Gone from None
            if "beat" not in message:
                return message

    def next_or_beat(self) -> Mapping[str, Any]:
        """The next message of any kind, without waiting for one that asks for something.

        Raises:
            Gone: The channel closed.
        """
        try:
            return self._receiver.next()
        except Cut:
            raise Gone from None

    def next_piece(self) -> Iterator[bytes]:
        """Wait for the next piece of a file and give it as it comes.

        Raises:
            Gone: The channel closed, or nothing was heard for too long.
        """
        while not (size := self.next().get("piece", 0)):
            continue
        try:
            yield from self._receiver.stream(size)
        except Cut:
            raise Gone from None

    def pending(self, wait_s: float) -> bool:
        """Wait a little, and tell whether something came.

        Raises:
            Gone: Nothing was heard for too long.
        """
        if self._receiver.buffered:
            return True
        return self._ready(wait_s)

    def _ready(self, wait_s: float) -> bool:
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], wait_s)
        if not ready and time.monotonic() - self._heard > self.silence_s:
            raise Gone
        return bool(ready)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Say now and then that this end is alive, while it does something that takes long, such as hashing."""
        over = threading.Event()

        def beat() -> None:
            with suppress(Gone):
                while not over.wait(BEAT_S):
                    self.send(beat=time.time())

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def last_words(self, error: str, next_step: str, trouble: str) -> None:
        """Tell why this ends, to whoever may still listen."""
        with suppress(Gone):
            self.send(error=error, next=next_step, trouble=trouble)

    @contextmanager
    def patiently(self, lock: Callable[[], int]) -> Iterator[None]:
        """Hold a lock, which the session before this one may take a moment to let go.

        Raises:
            InfraError: It is held for too long.
        """
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                held = lock()
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise InfraError("another session works on this trial", "wait for it, or end it") from None
                time.sleep(0.1)
        try:
            yield
        finally:
            os.close(held)

    def _read(self) -> bytes:
        ready = False
        while not ready:
            ready = self._ready(1.0)
        self._heard = time.monotonic()
        return os.read(sys.stdin.fileno(), 1 << 18)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._out, view) :]
        except (BrokenPipeError, ConnectionResetError):
            raise Gone from None
