"""One host's connection: a Fabric connection with checked host keys, retries for connecting alone, and deadlines."""

from __future__ import annotations

import math
import random
import shlex
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import paramiko
from fabric import Config, Connection

from repro.engines.ssh import trouble
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.trouble import HostError, Trouble
from repro.hosts.inventory import Host

CONNECT_S = 10.0
ATTEMPTS = 4
FIRST_PAUSE_S = 0.4
# What a host may send ahead of what is read here. It bounds the memory: a hundred hosts that all send fill 100 MiB.
WINDOW_BYTES = 1 << 20
# paramiko's first choice, AES in counter mode with a separate digest, takes far longer a byte than AES-GCM does.
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")


@dataclass(frozen=True)
class Limits:
    """How long things may take.

    Attributes:
        connect_s: Seconds for one attempt at connecting.
        attempts: How often connecting is tried; nothing else is ever tried again by itself.
        keep_alive_s: Seconds without traffic after which something is sent, so that a lost host or network shows.
        unacknowledged_s: Seconds for which sent bytes may stay unacknowledged before the kernel gives the connection
            up; its own default is 15 minutes.
        silence_s: Seconds for which a host may say nothing while it runs a trial.
        host_s: Seconds for all that is asked of one host, trials aside; None for no limit.
        run_s: Seconds for the whole run; None for no limit.
    """

    connect_s: float = CONNECT_S
    attempts: int = ATTEMPTS
    keep_alive_s: int = 15
    unacknowledged_s: float = 30.0
    silence_s: float = 30.0
    host_s: float | None = None
    run_s: float | None = None


@dataclass(eq=False)
class Remote:
    """A host and the connection to it, made when it is first needed."""

    host: Host
    limits: Limits = field(default_factory=Limits)
    _connection: Connection | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """The host's name in the inventory."""
        return self.host.name

    @property
    def address(self) -> str:
        """Address and port, as a user would type them."""
        return f"{self.host.address}:{self.host.port}"

    @property
    def key_fingerprint(self) -> str:
        """Of the host key that the server showed; empty while there is no connection."""
        transport = self._connection.transport if self._connection else None
        return str(transport.get_remote_server_key().fingerprint) if transport else ""

    @property
    def connected(self) -> bool:
        """True while the connection stands, as far as this end knows."""
        return self._connection is not None and bool(self._connection.is_connected)

    def open(self, deadline: Deadline) -> paramiko.Transport:
        """Connect, unless that is done already, and give what sessions are opened on.

        Raises:
            HostError: It cannot be reached, its key is not the known one, or it does not let us in.
        """
        if self.host.local:
            message = "ansible_connection is local, which is no host to reach over SSH"
            raise HostError(self.name, Trouble.NOT_READY, message, "run there without --hosts, or take it out")
        with self._lock:
            if self._connection is not None and self._connection.is_connected:
                return _transport_of(self._connection)
            pause = FIRST_PAUSE_S
            for attempt in range(1, self.limits.attempts + 1):
                try:
                    self._connection = self._connect(deadline)
                    return _transport_of(self._connection)
                except (paramiko.BadHostKeyException, trouble.UnknownHostKeyError) as error:
                    raise trouble.of_connecting(self.name, self.address, error, 1) from error
                except paramiko.AuthenticationException as error:
                    raise trouble.of_connecting(self.name, self.address, error, 1) from error
                except (FileNotFoundError, PermissionError, socket.gaierror) as error:
                    raise trouble.of_connecting(self.name, self.address, error, 1) from error
                except (paramiko.SSHException, OSError, EOFError) as error:
                    # A server under load turns callers away, and all of them come again: not all at the same time.
                    wait = pause * random.uniform(0.5, 1.5)  # noqa: S311 -- spreads callers, guards nothing
                    if attempt == self.limits.attempts or wait >= deadline.left:
                        raise trouble.of_connecting(self.name, self.address, error, attempt) from error
                    time.sleep(wait)
                    pause *= 2
            raise AssertionError("the last attempt returns or raises")

    def _connect(self, deadline: Deadline) -> Connection:
        if deadline.passed:
            raise HostError(self.name, Trouble.DEADLINE, f"{deadline.what} passed before it was connected to")
        connection = _fabric(self.host, min(self.limits.connect_s, max(1.0, deadline.left)))
        try:
            connection.open()
        except BaseException:
            _close(connection)
            raise
        connection.transport.set_keepalive(self.limits.keep_alive_s)
        _notice_loss(connection.transport.sock, self.limits.unacknowledged_s)
        return connection

    @contextmanager
    def session(self, command: str, deadline: Deadline) -> Iterator[paramiko.Channel]:
        """Start a command and give its channel, which is closed afterwards.

        Raises:
            HostError: There is no connection, or the host takes no more sessions.
        """
        transport = self.open(deadline)
        try:
            channel: paramiko.Channel = transport.open_session(
                window_size=WINDOW_BYTES, timeout=max(1.0, min(self.limits.connect_s, deadline.left))
            )
        except (paramiko.SSHException, OSError, EOFError) as error:
            self.close()
            raise trouble.closed(self.name, "a session was opened", error) from error
        try:
            channel.exec_command(command)
        except (paramiko.SSHException, OSError, EOFError) as error:
            channel.close()
            raise trouble.closed(self.name, "a command was started", error) from error
        try:
            yield channel
        finally:
            channel.close()

    @contextmanager
    def sftp(self, deadline: Deadline) -> Iterator[paramiko.SFTPClient]:
        """An SFTP client, every answer of which must come before the deadline.

        Raises:
            HostError: There is no connection, or the host offers no SFTP.
        """
        transport = self.open(deadline)
        try:
            channel = transport.open_session(timeout=max(1.0, min(self.limits.connect_s, deadline.left)))
            channel.settimeout(max(1.0, min(deadline.left, self.limits.silence_s)))
            channel.invoke_subsystem("sftp")
            client = paramiko.SFTPClient(channel)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise trouble.closed(self.name, "SFTP was started", error) from error
        try:
            yield client
        finally:
            client.close()

    def close(self) -> None:
        """Close the connection at once; whoever waits for something on it gets an error."""
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)


def _transport_of(connection: Connection) -> paramiko.Transport:
    transport: paramiko.Transport = connection.transport
    return transport


def python_command(host: Host, *arguments: str) -> str:
    """The command line that runs a module of the project on the host.

    ``hyper_repro_python`` in the inventory names the interpreter of the virtual environment there, or, as a list, the
    words that start it in an image, such as ``[docker, run, --rm, -i, --network, host, IMAGE, python]``.
    """
    words = host.variables.get("hyper_repro_python", "/opt/hyper-repro/bin/python")
    listed = [str(word) for word in words] if isinstance(words, list) else [str(words)]
    return "exec " + " ".join([*map(_quoted, listed), "-m", *map(shlex.quote, arguments)])


def _quoted(word: str) -> str:
    return f'"$HOME"/{shlex.quote(word[2:])}' if word.startswith("~/") else shlex.quote(word)


def _fabric(host: Host, timeout_s: float) -> Connection:
    made: Connection | None = None
    for hop in host.jump:
        made = _one(_hop(hop, host), _port_of(hop), timeout_s, made)
    named = any(key in host.variables for key in ("ansible_port", "ansible_ssh_port"))
    return _one(host, host.port if named else None, timeout_s, made)


def _hop(text: str, beyond: Host) -> Host:
    """A jump host, written ``[user@]host[:port]``; it is logged in to with the key of the host behind it."""
    user, _, rest = text.rpartition("@")
    address = rest.rpartition(":")[0] if _port_of(rest) else rest
    return replace(beyond, name=text, address=address, user=user or beyond.user, jump=())


def _port_of(hop: str) -> int | None:
    """The port that is written; None leaves it to ssh_config, as everywhere."""
    port = hop.rpartition(":")[2]
    return int(port) if ":" in hop and port.isdigit() else None


def _one(host: Host, port: int | None, timeout_s: float, gateway: Connection | None) -> Connection:
    arguments: dict[str, Any] = {
        "banner_timeout": timeout_s,
        "auth_timeout": timeout_s,
        "channel_timeout": timeout_s,
        "transport_factory": _transport,
    }
    if host.key is not None:
        # The key that the inventory names, and no other: servers count the wrong ones and close.
        arguments |= {"key_filename": [str(host.key)], "look_for_keys": False, "allow_agent": False}
    connection = Connection(
        host.address,
        user=host.user,
        port=port,
        # One each: a connection changes its settings while it is made, which other threads would see.
        config=Config(),
        gateway=gateway,
        connect_timeout=math.ceil(timeout_s),
        connect_kwargs=arguments,
    )
    client = connection.client
    client.set_missing_host_key_policy(trouble.Refuse())
    for path in _known_hosts(host, connection):
        client.load_system_host_keys(str(path))
    return connection


def _known_hosts(host: Host, connection: Connection) -> list[Path]:
    """The files that ssh itself would read: the inventory's, else ssh_config's, else the usual ones."""
    words = shlex.split(str(host.variables.get("ansible_ssh_common_args") or ""))
    words += shlex.split(str(host.variables.get("ansible_ssh_extra_args") or ""))
    named = [
        value
        for word in words
        for key, _, value in [word.removeprefix("-o").partition("=")]
        if key.lower() == "userknownhostsfile"
    ]
    named = named[:1] or str(connection.ssh_config.get("userknownhostsfile") or "~/.ssh/known_hosts").split()
    paths = [Path(name).expanduser() for name in named] + [Path("/etc/ssh/ssh_known_hosts")]
    return [path for path in paths if path.is_file()]


def _transport(sock: Any, **options: Any) -> paramiko.Transport:
    transport = paramiko.Transport(sock, **options)
    security = transport.get_security_options()
    security.ciphers = [cipher for cipher in CIPHERS if cipher in security.ciphers]
    return transport


def _notice_loss(sock: Any, seconds: float) -> None:
    if isinstance(sock, socket.socket):  # and no channel through a jump host
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def _close(connection: Connection) -> None:
    transport = connection.client.get_transport()
    if transport is not None and isinstance(transport.sock, socket.socket):
        # paramiko's own close waits for its thread, which may hang on a host that does.
        with _ignore_closed():
            transport.sock.shutdown(socket.SHUT_RDWR)
    connection.client.close()
    if isinstance(connection.gateway, Connection):
        _close(connection.gateway)


@contextmanager
def _ignore_closed() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (None, 9, 107):  # EBADF, ENOTCONN: it was closed already
            raise
