"""The controller's end of a session with ``repro.launch.hosted`` on a host: messages, beats, silence, files."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from repro.engines.ssh import trouble
from repro.engines.ssh.connection import Remote, python_command
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.trouble import HostError, Trouble
from repro.errors import InfraError
from repro.transfer.files import Incoming, Listed, pieces
from repro.transfer.frames import Cut, Receiver, Sender

BEAT_S = 5.0
POLL_S = 0.5
CLOCK_LOOKS = 5
HOST_GONE_S = 60.0


@dataclass(frozen=True)
class Clock:
    """A host's clock against ours.

    Attributes:
        skew_s: Theirs less ours, in seconds.
        error_s: Half the quickest way there and back: how far off that may be.
    """

    skew_s: float
    error_s: float


class Session:
    """One verb on one host; all waits end at the deadline, or when the host is silent for too long."""

    def __init__(self, remote: Remote, channel: paramiko.Channel, mark: str, deadline: Deadline) -> None:
        self._remote = remote
        self._channel = channel
        self._deadline = deadline
        self._silence_s = remote.limits.silence_s
        self._heard = time.monotonic()
        self._beat = time.monotonic() + BEAT_S
        self._stop_asked = threading.Event()
        self._stop_sent = False
        self._sender = Sender(self._write, mark)
        self._receiver = Receiver(self._read, mark)
        self.doing = "the session began"
        self.clock = Clock(0.0, math.inf)

    def send(self, **message: Any) -> None:
        """Send a message.

        Raises:
            HostError: The connection is gone, or the host no longer reads.
        """
        self._sender.send(**message)

    def ask_to_stop(self) -> None:
        """Ask the host to end its trial; safe from any thread."""
        self._stop_asked.set()

    def next(self) -> Mapping[str, Any]:
        """The next message that is not a beat.

        Raises:
            HostError: The connection closed, the host is silent, the deadline passed, or the host told of trouble.
        """
        while True:
            try:
                message = self._receiver.next()
            except Cut as cut:
                raise self._ended(str(cut)) from None
            except ValueError as error:
                raise HostError(
                    self._remote.name, Trouble.DAMAGED, f"what it sends is no message: {error}", "see its shell's files"
                ) from error
            if "error" in message:
                raise self._told(message)
            if "beat" not in message:
                return message

    def expect(self, word: str) -> Any:
        """The value of the next message's ``word``.

        Raises:
            HostError: As ``next``, or another message came.
        """
        message = self.next()
        if word not in message:
            raise HostError(self._remote.name, Trouble.VERSIONS, f"it said {sorted(message)}, not {word}")
        return message[word]

    def measure_clock(self) -> Clock:
        """Measure the host's clock against ours: the quickest of a few questions has the least to guess."""
        best = Clock(0.0, math.inf)
        for number in range(CLOCK_LOOKS):
            asked = time.time()
            self.send(clock=number)
            told = float(self.expect("time"))
            came = time.time()
            if (came - asked) / 2 < best.error_s:
                best = Clock(told - (asked + came) / 2, (came - asked) / 2)
        return best

    def give_case(self, folder: Path, wanted: Sequence[tuple[str, int]]) -> None:
        """Send the case programs that the host lacks."""
        for name, offset in wanted:
            for data in pieces(folder, name, int(offset)):
                self._sender.piece(data)

    def take_files(self, listed: Sequence[Sequence[Any]], folder: Path) -> int:
        """Fetch the files that the host offers, check them, and say that they are here; returns how many bytes came.

        Raises:
            HostError: As ``next``, or a file is not what was offered.
            InfraError: They cannot be written here.
        """
        try:
            incoming = Incoming(folder, [Listed.from_json(entry) for entry in listed])
            asked = incoming.missing()
            self.send(want=asked)
            came = incoming.receive(dict(asked), self._piece)
        except HostError:
            raise
        except InfraError as error:
            raise HostError(self._remote.name, Trouble.DAMAGED, error.message, error.next_step) from error
        self.send(have=True)
        return came

    def _piece(self) -> Iterator[bytes]:
        while not (size := self.next().get("piece", 0)):
            continue
        try:
            yield from self._receiver.stream(size)
        except Cut as cut:
            raise self._ended(str(cut)) from None

    def _read(self) -> bytes:
        while True:
            self._keep_up()
            wait = min(POLL_S, max(0.01, self._deadline.left), max(0.01, self._beat - time.monotonic()))
            self._channel.settimeout(wait)
            try:
                data = self._channel.recv(1 << 18)
            except TimeoutError:
                self._check()
                continue
            except (paramiko.SSHException, OSError, EOFError) as error:
                raise trouble.closed(self._remote.name, self.doing, error) from error
            self._heard = time.monotonic()
            return data

    def _check(self) -> None:
        if self._deadline.passed:
            raise HostError(self._remote.name, Trouble.DEADLINE, f"{self._deadline.what} passed while {self.doing}")
        if time.monotonic() - self._heard > self._silence_s:
            self._remote.close()
            raise HostError(
                self._remote.name,
                Trouble.SILENT,
                f"nothing was heard for {self._silence_s:g} s while {self.doing}",
                "log in and look; its evidence, if it has any, is still there",
            )

    def _keep_up(self) -> None:
        """What must be said while waiting: that we are here, and that the trial is to stop."""
        if self._stop_asked.is_set() and not self._stop_sent:
            self._stop_sent = True
            self.send(stop=True)
        if time.monotonic() >= self._beat:
            self._beat = time.monotonic() + BEAT_S
            self.send(beat=True)

    def _write(self, data: bytes) -> None:
        self._channel.settimeout(max(0.01, min(self._silence_s, self._deadline.left)))
        try:
            self._channel.sendall(data)
        except TimeoutError as error:
            self._remote.close()
            raise HostError(
                self._remote.name, Trouble.SILENT, f"it no longer reads what it is sent while {self.doing}"
            ) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise trouble.closed(self._remote.name, self.doing, error) from error

    def _told(self, message: Mapping[str, Any]) -> HostError:
        kind = Trouble.DISK_FULL if message.get("trouble") else Trouble.TRIAL
        step = str(message.get("next") or "")
        if kind is Trouble.DISK_FULL:
            step = "free space there, or set hyper_repro_work in the inventory to another folder"
        return HostError(self._remote.name, kind, str(message["error"]), step)

    def _ended(self, noise: str) -> HostError:
        """The channel ended without a last word: the interpreter did not start, or it was killed."""
        if not self._remote.connected:
            return trouble.closed(self._remote.name, self.doing)
        said = self._complaint() or noise
        status = self._channel.recv_exit_status() if self._channel.exit_status_ready() else None
        return HostError(
            self._remote.name,
            Trouble.NOT_READY,
            f"the project there ended with status {status} while {self.doing}{f': {said}' if said else ''}",
            "check hyper_repro_python in the inventory; the same project must be installed there",
        )

    def _complaint(self) -> str:
        self._channel.settimeout(2.0)
        said = b""
        try:
            while data := self._channel.recv_stderr(1 << 16):
                said = (said + data)[-4000:]
        except (TimeoutError, paramiko.SSHException, OSError):
            return ""
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""


@contextmanager
def session(remote: Remote, verb: str, request: Mapping[str, Any], deadline: Deadline) -> Iterator[Session]:
    """Start the project's own other end on the host and give the session with it.

    Raises:
        HostError: The host cannot be reached, or the project is not there.
    """
    mark = secrets.token_hex(8)
    command = python_command(remote.host, "repro.launch.hosted", mark, verb)
    with remote.session(command, deadline) as channel:
        talk = Session(remote, channel, mark, deadline)
        talk.send(**request, silence_s=HOST_GONE_S, clocks=CLOCK_LOOKS)
        talk.clock = talk.measure_clock()
        yield talk
