"""Which engine runs the trials: the option, and the one place that knows where each engine lives."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repro.engines.base import Engine

# Name -> module with ``create(args) -> Engine``; imported only when asked for, so that the command line stays quick.
ENGINES = {"local": "repro.engines.local"}
# Each adds the options of one engine, named after what they ask for.
_OPTIONS: list[Callable[[argparse._ArgumentGroup], None]] = []


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add ``--engine`` and every engine's own options."""
    group = parser.add_argument_group("where trials run")
    group.add_argument("--engine", choices=sorted(ENGINES), default="local", help="default: this machine")
    for add in _OPTIONS:
        add(group)


def create(args: argparse.Namespace) -> Engine:
    """The engine asked for, ready to run trials.

    Raises:
        UsageError: An option of another engine was given, or one that it needs is missing.
        InfraError: Its daemon, host or scheduler does not answer.
    """
    engine: Engine = import_module(ENGINES[args.engine]).create(args)
    return engine
