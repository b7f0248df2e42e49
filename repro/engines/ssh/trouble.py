"""What can be wrong with a host, in words: every error of the connection becomes one line with a next step."""

from __future__ import annotations

import errno
import logging
import socket
from enum import StrEnum

import paramiko

from repro.errors import InfraError

# paramiko prints the traceback of every server that hangs up; each becomes one line here.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Trouble(StrEnum):
    """Why a host gave no result, or only a part of one."""

    UNREACHABLE = "unreachable"
    HOST_KEY = "host key refused"
    LOGIN = "login refused"
    CLOSED = "connection closed"
    SILENT = "silent"
    DEADLINE = "deadline passed"
    DISK_FULL = "disk full"
    VERSIONS = "versions differ"
    NOT_READY = "not ready"
    TRIAL = "a trial could not be run"
    DAMAGED = "damaged in transit"
    STOPPED = "stopped"


class HostError(InfraError):
    """A host stood in the way.

    Args:
        host: Its name in the inventory.
        trouble: What kind of trouble it was.
        message: What happened.
        next_step: What to do next.
    """

    def __init__(self, host: str, trouble: Trouble, message: str, next_step: str = "") -> None:
        super().__init__(f"host {host}: {message}", next_step)
        self.host = host
        self.trouble = trouble

    @property
    def lost(self) -> bool:
        """True if the host will not do for other trials of this run either."""
        return self.trouble not in (Trouble.STOPPED, Trouble.TRIAL)


def of_connecting(host: str, address: str, error: Exception, attempts: int) -> HostError:
    """Why a connection could not be opened."""
    tried = f" ({attempts} attempts)" if attempts > 1 else ""
    if isinstance(error, paramiko.BadHostKeyException):
        return HostError(
            host,
            Trouble.HOST_KEY,
            f"the host key of {address} is not the one in known_hosts: it is {_fingerprint(error.key)}",
            f"find out why; if the host was installed anew, take the old key out with ssh-keygen -R '{error.hostname}'",
        )
    if isinstance(error, UnknownHostKeyError):
        return HostError(
            host,
            Trouble.HOST_KEY,
            f"known_hosts has no key of {address}, which shows {error.fingerprint}",
            "compare it with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_*.pub there), then connect once by ssh",
        )
    if isinstance(error, paramiko.PasswordRequiredException):
        return HostError(host, Trouble.LOGIN, "its private key needs a passphrase", "load it with ssh-add")
    if isinstance(error, paramiko.AuthenticationException):
        return HostError(
            host, Trouble.LOGIN, f"{address} does not let us in: {error}", "check ansible_user and the key, or ssh-add"
        )
    if isinstance(error, socket.gaierror):
        return HostError(host, Trouble.UNREACHABLE, f"no address for {address}: {error.strerror}", "check ansible_host")
    if isinstance(error, FileNotFoundError | PermissionError):
        return HostError(
            host, Trouble.LOGIN, f"{error.filename}: {error.strerror}", "check ansible_ssh_private_key_file"
        )
    said = _words(error)
    return HostError(
        host, Trouble.UNREACHABLE, f"cannot connect to {address}{tried}: {said}", "check that its sshd answers: ssh -v"
    )


def closed(host: str, while_: str, error: Exception | None = None) -> HostError:
    """The connection ended before what was asked for had come."""
    said = f": {_words(error)}" if error is not None else ""
    return HostError(
        host, Trouble.CLOSED, f"the connection closed while {while_}{said}", "see the host's log; did it restart?"
    )


class UnknownHostKeyError(paramiko.SSHException):
    """known_hosts does not have the host."""

    def __init__(self, fingerprint: str) -> None:
        super().__init__(f"unknown host key {fingerprint}")
        self.fingerprint = fingerprint


class Refuse(paramiko.MissingHostKeyPolicy):
    """Never takes a key that known_hosts does not have."""

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        """Refuse it, saying which key was shown."""
        raise UnknownHostKeyError(_fingerprint(key))


def _fingerprint(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.fingerprint}"


def _timed_out(error: Exception) -> bool:
    return isinstance(error, paramiko.SSHException) and isinstance(error.__context__, TimeoutError)


def _words(error: Exception) -> str:
    if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError):
        return ", ".join(sorted({_words(each) for each in error.errors.values()}))
    # The first is what paramiko says when the time for the first key exchange is over.
    if str(error) == "No existing session" or isinstance(error, TimeoutError) or _timed_out(error):
        return "no answer in time"
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror or errno.errorcode.get(error.errno, str(error.errno))
    return str(error) or type(error).__name__
