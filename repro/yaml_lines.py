"""Reads YAML so that a complaint can name file, line and key; keys given twice are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from repro.errors import UsageError

Step = str | int


def read(path: Path) -> str:
    """The text of an issue file.

    Raises:
        UsageError: It cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8: {error.reason}", "save the file as UTF-8") from error


class Marks:
    """Where each value of a YAML file stands, so that a complaint can name the line."""

    def __init__(self, path: Path, root: yaml.Node) -> None:
        self._path = path
        self._root = root

    def line(self, steps: Sequence[Step]) -> int:
        """The line, from 1, of the value that these keys and indices lead to, or of the last one on the way."""
        node, line = self._root, self._root.start_mark.line
        for step in steps:
            if isinstance(node, yaml.MappingNode):
                pairs = {key.value: (key, value) for key, value in node.value}
                if step not in pairs:
                    break
                key, node = pairs[step]
                line = key.start_mark.line
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line
        return line + 1

    def error(self, steps: Sequence[Step], message: str) -> UsageError:
        """What is wrong with the value, with file, line and key."""
        key = ".".join(str(step) for step in steps) or "the file"
        return UsageError(f"{self._path}:{self.line(steps)}: {key}: {message}")


def parse_with_lines(path: Path, text: str, loader: type[yaml.SafeLoader] | None = None) -> tuple[Any, Marks]:
    """The data of a YAML text, and where each value stands.

    Args:
        path: What to call the file in a complaint.
        text: Its text.
        loader: One that knows more tags than YAML's own; by default the quickest safe one.

    Raises:
        UsageError: It is empty or no YAML, or a key is given twice.
    """
    chosen: Any = loader or getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=chosen)
        if root is None:
            raise UsageError(f"{path}:1: the file is empty")
        for key in _duplicates(root):
            raise UsageError(f"{path}:{key.start_mark.line + 1}: {key.value}: given twice")
        return yaml.load(text, Loader=chosen), Marks(path, root)  # noqa: S506 -- all are safe ones
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{path}:{line}: not YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise UsageError(f"{path}:{line}: not YAML: {error.reason}") from error
    except (ValueError, RecursionError) as error:
        # A date that does not exist, an anchor that holds itself.
        raise UsageError(f"{path}:1: not YAML: {error}") from error


def _duplicates(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a plain word", problem_mark=key.start_mark)
            if key.value in seen:
                yield key
            seen.add(key.value)
            yield from _duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _duplicates(item)
