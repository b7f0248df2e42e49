"""Messages between the two ends of a channel: one JSON object a line behind a mark, and pieces of files between them.

A login shell may print what it likes before the first message: lines without the mark are passed over. The mark is made
anew for every session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

LINE_LIMIT = 64 << 20
PIECE_BYTES = 1 << 20


class Cut(EOFError):  # noqa: N818 -- no failure by itself: the other end is gone
    """The channel ended inside or between two messages."""


class Sender:
    """Writes messages.

    Args:
        write: Takes all of the bytes it is given.
        mark: What each line begins with.
    """

    def __init__(self, write: Callable[[bytes], Any], mark: str) -> None:
        self._write = write
        self._mark = mark.encode()

    def send(self, **message: Any) -> None:
        """Send one message."""
        self._write(self._mark + b" " + json.dumps(message).encode() + b"\n")

    def piece(self, data: bytes) -> None:
        """Send a piece of a file."""
        self._write(self._mark + b' {"piece": %d}\n' % len(data))
        self._write(data)


class Receiver:
    """Reads messages.

    Args:
        read: Gives some bytes, at least one, or none at the end; may raise to end a wait.
        mark: What each line begins with.
    """

    def __init__(self, read: Callable[[], bytes], mark: str) -> None:
        self._read = read
        self._mark = mark.encode() + b" "
        self._buffer = bytearray()
        self.noise = ""

    @property
    def buffered(self) -> bool:
        """True if a whole line has come already."""
        return b"\n" in self._buffer

    def stream(self, size: int) -> Iterator[bytes]:
        """The bytes of a piece as they come, without a copy of the whole.

        Raises:
            Cut: The channel ended.
        """
        while size > 0:
            if self._buffer:
                data = self._cut(min(size, len(self._buffer)))
            else:
                data = self._read()
                if not data:
                    raise Cut
                if len(data) > size:
                    self._buffer += data[size:]
                    data = data[:size]
            size -= len(data)
            yield data

    def next(self) -> Mapping[str, Any]:
        """The next message; if it announces a piece of a file, ``stream`` must be read before the one after it.

        Raises:
            Cut: The channel ended.
            ValueError: What came is no message, or too long for one.
        """
        while True:
            line = self._line()
            # A shell's last words may lack an end of line, so the mark is looked for anywhere in it.
            at = line.find(self._mark)
            if at < 0:
                self.noise = (self.noise + line.decode("utf-8", "replace"))[-2000:]
                continue
            message = json.loads(line[at + len(self._mark) :])
            if not isinstance(message, dict):
                raise ValueError("a message that is no object")  # noqa: TRY004 -- what came is wrong, not what was passed
            size = message.get("piece", 0)
            if not isinstance(size, int) or not 0 <= size <= PIECE_BYTES:
                raise ValueError(f"a piece of {size!r} bytes")
            return message

    def _line(self) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > LINE_LIMIT:
                raise ValueError(f"a line of more than {LINE_LIMIT >> 20} MiB")
            self._more()
        return self._cut(end + 1)

    def _cut(self, size: int) -> bytes:
        taken = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return taken

    def _more(self) -> None:
        data = self._read()
        if not data:
            raise Cut(self.noise.strip().splitlines()[-1] if self.noise.strip() else "")
        self._buffer += data
