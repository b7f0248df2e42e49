"""The errors a user can meet: one root, one subclass a family, each with the exit code it ends the command with."""

from __future__ import annotations


class ReproError(Exception):
    """The root of every expected failure; only ``cli.main`` turns it into one line and an exit code.

    Args:
        message: What happened and to which thing, with its value.
        next_step: What to do next; printed on the same line. Empty if the message already says it.
    """

    exit_code = 4

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message}; {self.next_step}" if self.next_step else self.message


class UsageError(ReproError):
    """The command line or an issue file asks for something that does not exist or does not parse."""

    exit_code = 2


class InconclusiveError(ReproError):
    """There is evidence, but too little of it for a verdict."""

    exit_code = 3


class InfraError(ReproError):
    """The machine, not the code under test, stood in the way: a busy port, a full disk, a lost worker."""

    exit_code = 4


class UnsupportedError(ReproError):
    """This machine cannot show what was asked for; another tier or a missing tool is needed."""

    exit_code = 5
