"""Ends a command that is given up: by the signal request of SSH, which sshd gives to the command's whole group."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import paramiko
from paramiko.common import cMSG_CHANNEL_REQUEST

TERM_GRACE_S = 1.0


def end(channel: paramiko.Channel) -> None:
    """Ask for SIGTERM, then for SIGKILL.

    OpenSSH knows the request from 7.9 on, and not for root, whose sessions have no privileged half to send a signal.
    """
    with suppress(paramiko.SSHException, OSError, EOFError):
        _request(channel, "TERM")
        if not channel.status_event.wait(TERM_GRACE_S):
            _request(channel, "KILL")


def _request(channel: paramiko.Channel, name: str) -> None:
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("signal")
    message.add_boolean(False)
    message.add_string(name)
    transport: Any = channel.get_transport()
    transport._send_user_message(message)  # noqa: SLF001 -- paramiko has no call for this request
