"""One command or file on every host at once: each gives a result or a reason, in the order of the inventory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import paramiko

from repro.engines.ssh import signals, trouble
from repro.engines.ssh.connection import Limits, Remote, python_command
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.pool import WIDTH, Pool
from repro.engines.ssh.trouble import HostError, Trouble
from repro.hosts.inventory import Host

# Of each host's output; the rest is read and dropped, so that a host that floods neither hangs nor fills the memory.
OUTPUT_LIMIT = 256 << 10
POLL_S = 0.5
# For commands on all hosts to end after Ctrl-C.
STOP_S = 4.0


@dataclass(frozen=True)
class HostResult:
    """What one host gave.

    Attributes:
        host: Its name in the inventory.
        code: Exit code of the command, or minus the signal it died of; None if it did not come to its end.
        out, err: What it wrote, at most ``OUTPUT_LIMIT`` bytes of each. Kept also where the end is missing.
        seconds: From the start of connecting to the result.
        error: Why there is no result, or only a part; None if there is a whole one.
        same_as: Another entry of the inventory that is this host, where it was done; empty if there is none.
    """

    host: str
    code: int | None = None
    out: str = ""
    err: str = ""
    seconds: float = 0.0
    error: HostError | None = None
    same_as: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; the trouble by its kind, in words, and with what to do next."""
        error = self.error
        told = None if error is None else {"kind": error.trouble.value, "what": error.message, "next": error.next_step}
        return {
            "host": self.host,
            "code": self.code,
            "out": self.out,
            "err": self.err,
            "seconds": round(self.seconds, 3),
            "error": told,
            "same_as": self.same_as or None,
        }

    @property
    def whole(self) -> bool:
        """True if the command came to its end."""
        return self.error is None


def run(
    hosts: Sequence[Host], command: str, limits: Limits, told: Callable[[HostResult], None] | None = None
) -> list[HostResult]:
    """Run a command line on every host.

    Args:
        hosts: Which.
        command: For the login shell of each.
        limits: Deadlines.
        told: Called in this thread with each result as it comes.
    """
    return _on_each(
        hosts, limits, told or _nobody, lambda remote, deadline, output: _run(remote, command, deadline, output)
    )


def python(hosts: Sequence[Host], arguments: Sequence[str], limits: Limits) -> list[HostResult]:
    """Run a module of the project on every host, each with the Python that the inventory gives it."""
    return _on_each(
        hosts,
        limits,
        _nobody,
        lambda remote, deadline, output: _run(remote, python_command(remote.host, *arguments), deadline, output),
    )


def put(hosts: Sequence[Host], source: Path, target: str, limits: Limits) -> list[HostResult]:
    """Copy a file to every host by SFTP; it appears whole under its name or not at all."""
    return _on_each(hosts, limits, _nobody, lambda remote, deadline, _output: _put(remote, source, target, deadline))


def get(hosts: Sequence[Host], source: str, target: Path, limits: Limits) -> list[HostResult]:
    """Fetch a folder of every host into ``target/NAME``, each file checked by its digest.

    What an earlier, cut transfer left there is gone on with. Nothing is deleted on the hosts.
    """
    return _on_each(
        hosts, limits, _nobody, lambda remote, deadline, output: _get(remote, source, target, deadline, output)
    )


def check(hosts: Sequence[Host], limits: Limits) -> list[HostResult]:
    """Which hosts will do for trials: a line each on what they have, or why not."""
    from repro.engines.ssh.readiness import look

    ready, refused = look(hosts, limits, Deadline.after(limits.run_s, "the run's deadline"))
    found = {each.host.name: HostResult(each.host.name, 0, each.line) for each in ready}
    found |= {each.host.name: HostResult(each.host.name, error=each.error) for each in refused}
    return [found[host.name] for host in hosts]


def _nobody(_result: HostResult) -> None:
    """For who only wants all results."""


class Output:
    """The two streams of a command as far as they have come, for who gives up on it too; and the wish to stop it."""

    def __init__(self) -> None:
        self._streams = (bytearray(), bytearray())
        self.dropped = 0
        self.stopped = threading.Event()

    def take(self, stream: int, data: bytes) -> None:
        """Keep what fits."""
        kept = self._streams[stream]
        room = OUTPUT_LIMIT - len(kept)
        kept += data[:room]
        self.dropped += max(0, len(data) - room)

    def texts(self) -> tuple[str, str]:
        """Standard output and standard error."""
        out, err = (bytes(stream).decode("utf-8", "replace") for stream in self._streams)
        return (f"{out}\n[{self.dropped} bytes dropped]\n", err) if self.dropped else (out, err)


_Work = Callable[[Remote, Deadline, Output], int]


def _on_each(
    hosts: Sequence[Host], limits: Limits, told: Callable[[HostResult], None], work: _Work
) -> list[HostResult]:
    whole_run = Deadline.after(limits.run_s, "the run's deadline")
    first: dict[object, str] = {}
    for host in hosts:
        first.setdefault(host.target, host.name)
    distinct = [host for host in hosts if first[host.target] == host.name]
    jobs = [_Job(Remote(host, limits), limits, whole_run, work) for host in distinct]
    # A host's own time begins with its turn, so the pool can wait for the run's deadline alone. Each job cuts itself
    # at its own deadline by closing its connection, whatever it waits for.
    waves = -(-len(jobs) // WIDTH)
    host_s = None if limits.host_s is None else limits.host_s * waves
    pool = Pool(jobs, _Job.run, _Job.late, whole_run.sooner(Deadline.after(host_s, "the host's deadline")))
    found: dict[str, HostResult] = {}
    try:
        for number, result in pool.results():
            found[distinct[number].name] = result
            told(result)
    except KeyboardInterrupt:
        for job in jobs:
            job.stop()
        pool.settle(STOP_S)
        raise
    return [
        found[host.name] if host.name in found else HostResult(host.name, seconds=0.0, same_as=first[host.target])
        for host in hosts
    ]


class _Job:
    """One host's part, with its watchdog."""

    def __init__(self, remote: Remote, limits: Limits, whole_run: Deadline, work: _Work) -> None:
        self._remote = remote
        self._limits = limits
        self._deadline = whole_run
        self._work = work
        self._output = Output()
        self._start = time.monotonic()

    def stop(self) -> None:
        self._output.stopped.set()

    def run(self) -> HostResult:
        self._start = time.monotonic()
        self._deadline = self._deadline.sooner(Deadline.after(self._limits.host_s, "the host's deadline"))
        try:
            return self._result(self._work(self._remote, self._deadline, self._output), None)
        except HostError as error:
            return self._result(None, error)
        finally:
            self._remote.close()

    def late(self) -> HostResult:
        threading.Thread(target=self._remote.close, daemon=True).start()
        message = f"{self._deadline.what} passed, and it hangs where nothing can interrupt it"
        return self._result(None, HostError(self._remote.name, Trouble.DEADLINE, message))

    def _result(self, code: int | None, error: HostError | None) -> HostResult:
        out, err = self._output.texts()
        return HostResult(self._remote.name, code, out, err, time.monotonic() - self._start, error)


def _run(remote: Remote, command: str, deadline: Deadline, output: Output) -> int:
    if output.stopped.is_set():
        raise HostError(remote.name, Trouble.STOPPED, "the command was stopped before it began")
    with remote.session(command, deadline) as channel:
        try:
            channel.shutdown_write()
            # sshd may send the status before the last of the output, so both ends are waited for.
            while not _over(channel):
                if output.stopped.is_set():
                    signals.end(channel)
                    raise HostError(remote.name, Trouble.STOPPED, "the command was stopped")
                if deadline.passed:
                    signals.end(channel)
                    raise HostError(
                        remote.name,
                        Trouble.DEADLINE,
                        f"{deadline.what} passed with the command still running",
                        "what it had written is kept; give it more time, or log in and look",
                    )
                _read_some(channel, output, deadline)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise trouble.closed(remote.name, "the command ran", error) from error
        status = int(channel.recv_exit_status())
    # paramiko's word for an end without a status: the connection went, or a signal ended the command.
    if status == -1 and not remote.connected:
        raise trouble.closed(remote.name, "the command ran")
    return status


def _over(channel: paramiko.Channel) -> bool:
    # In this order: after the end nothing more comes, before it more may come between two looks.
    if not (channel.closed or (channel.eof_received and channel.exit_status_ready())):
        return False
    return not channel.recv_ready() and not channel.recv_stderr_ready()


def _read_some(channel: paramiko.Channel, output: Output, deadline: Deadline) -> None:
    while channel.recv_stderr_ready():
        output.take(1, channel.recv_stderr(1 << 16))
    channel.settimeout(max(0.01, min(POLL_S, deadline.left)))
    try:
        data = channel.recv(1 << 16)
    except TimeoutError:
        return
    if data:
        output.take(0, data)
        return
    # The end of standard output: the status, or more on standard error, is still to come.
    channel.status_event.wait(max(0.01, min(0.05, deadline.left)))


def _get(remote: Remote, source: str, target: Path, deadline: Deadline, output: Output) -> int:
    from repro.engines.ssh.session import session

    with session(remote, "send", {"folder": source}, deadline) as talk:
        talk.doing = f"{source} was fetched"
        came = talk.take_files(talk.expect("files"), target / remote.name)
    output.take(0, f"{came} bytes\n".encode())
    return 0


def _put(remote: Remote, source: Path, target: str, deadline: Deadline) -> int:
    part = str(PurePosixPath(target).with_name(f".{PurePosixPath(target).name}.part"))
    with remote.sftp(deadline) as sftp:
        try:
            with source.open("rb") as file, sftp.open(part, "wb") as copy:
                copy.set_pipelined(True)
                while data := file.read(1 << 18):
                    if deadline.passed:
                        raise HostError(remote.name, Trouble.DEADLINE, f"{deadline.what} passed while copying")
                    copy.write(data)
            if sftp.stat(part).st_size != source.stat().st_size:
                raise HostError(remote.name, Trouble.DAMAGED, f"{part} is not as long as {source}", "is its disk full?")
            sftp.posix_rename(part, target)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise HostError(
                remote.name, Trouble.NOT_READY, f"cannot write {target}: {error}", "see df and the folder's owner"
            ) from error
    return 0
