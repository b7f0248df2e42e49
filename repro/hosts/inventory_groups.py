"""The groups of Ansible's YAML inventory: hosts, ranges of them, children, variables and their files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from repro.errors import UsageError
from repro.yaml_lines import Marks, Step, parse_with_lines
from repro.yaml_lines import read as read_text

_RANGE = re.compile(r"\[(\w+):(\w+)(?::(\d+))?\]")
_MAX_HOSTS = 10_000
Variables = dict[str, tuple[Any, "Where"]]


@dataclass(frozen=True)
class Where:
    """A place in a file."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Vaulted:
    """A value that only ansible-vault can open; never opened here."""


@dataclass
class Group:
    """One group while the file is read.

    Attributes:
        depth: Longest way from ``all``; deeper groups win.
        variables: From the file itself.
        file_variables: From ``group_vars``.
        host_variables: Of its hosts, from the file.
        host_files: From ``host_vars``; kept at ``all`` only.
    """

    name: str
    depth: int = 0
    children: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    hosts_below: set[str] = field(default_factory=set)
    variables: Variables = field(default_factory=dict)
    file_variables: Variables = field(default_factory=dict)
    host_variables: dict[str, Variables] = field(default_factory=dict)
    host_files: dict[str, Variables] = field(default_factory=dict)


class _Loader(yaml.SafeLoader):
    """YAML with Ansible's two tags."""


_Loader.add_constructor("!vault", lambda _loader, _node: Vaulted())
_Loader.add_constructor("!unsafe", lambda _loader, node: node.value)


def read_groups(path: Path) -> tuple[dict[str, Group], dict[str, Where]]:
    """All groups, and every host's first place, in the order of the file.

    Raises:
        UsageError: It is no inventory; the text has file and line.
    """
    if path.is_dir() or path.suffix in (".ini", ".cfg", ""):
        convert = f"ansible-inventory -i {path} --list --yaml --output hosts.yml"
        raise UsageError(f"{path}: only a YAML inventory in one file is read", convert)
    data, marks = parse_with_lines(path, read_text(path), _Loader)
    reader = _Reader(path, marks)
    reader.mapping(data, ())
    for name, value in data.items():
        reader.group(str(name), value, (name,), parent=None if name == "all" else "all")
    reader.settle()
    return reader.groups, reader.places


class _Reader:
    """Walks the file once; what it finds is in ``groups`` and ``places``."""

    def __init__(self, path: Path, marks: Marks) -> None:
        self._path = path
        self._marks = marks
        self.groups: dict[str, Group] = {"all": Group("all")}
        self.places: dict[str, Where] = {}

    def mapping(self, value: Any, steps: tuple[Step, ...]) -> dict[Any, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._marks.error(steps, "must be keys and values, as in Ansible's YAML inventory")
        return value

    def _place(self, steps: tuple[Step, ...]) -> Where:
        return Where(self._path, self._marks.line(steps))

    def group(self, name: str, value: Any, steps: tuple[Step, ...], parent: str | None) -> None:
        """Take one group in, and what is under it."""
        group = self.groups.setdefault(name, Group(name))
        if parent is not None and name not in self.groups[parent].children:
            self.groups[parent].children.append(name)
        for key, below in self.mapping(value, steps).items():
            here = (*steps, key)
            if key == "children":
                for child, its in self.mapping(below, here).items():
                    self.group(str(child), its, (*here, child), parent=name)
            elif key == "vars":
                group.variables |= self._variables(below, here)
            elif key == "hosts":
                for pattern, its in self.mapping(below, here).items():
                    self._hosts(group, str(pattern), its, (*here, pattern))
            else:
                raise self._marks.error(here, "unknown; a group has hosts, children and vars")

    def _hosts(self, group: Group, pattern: str, value: Any, steps: tuple[Step, ...]) -> None:
        variables = self._variables(value, steps)
        for name in self._expand(pattern, steps):
            self.places.setdefault(name, self._place(steps))
            if name not in group.hosts:
                group.hosts.append(name)
            group.host_variables.setdefault(name, {}).update(variables)
        if len(self.places) > _MAX_HOSTS:
            raise self._marks.error(steps, f"more than {_MAX_HOSTS} hosts")

    def _variables(self, value: Any, steps: tuple[Step, ...]) -> Variables:
        return {str(key): (its, self._place((*steps, key))) for key, its in self.mapping(value, steps).items()}

    def _expand(self, pattern: str, steps: tuple[Step, ...]) -> Iterator[str]:
        """``node[01:12]`` and ``rack[a:c]`` as Ansible counts them: both ends belong, zeros in front stay."""
        parts = _RANGE.split(pattern)
        choices: list[list[str]] = [[parts[0]]]
        for first, last, step, tail in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True):
            choices += [self._count(first, last, int(step or 1), steps), [tail]]
        if any("[" in text or "]" in text for text in parts[::4]) and not pattern.startswith("["):
            raise self._marks.error(steps, f"{pattern!r}: a range is written [01:12] or [a:f]")
        return ("".join(words) for words in itertools.product(*choices))

    def _count(self, first: str, last: str, step: int, steps: tuple[Step, ...]) -> list[str]:
        if step > 0 and first.isdigit() and last.isdigit() and int(last) - int(first) < _MAX_HOSTS:
            width = len(first) if first.startswith("0") else 0
            counted = [str(number).zfill(width) for number in range(int(first), int(last) + 1, step)]
        elif step > 0 and len(first) == len(last) == 1 and first.isalpha() and last.isalpha():
            counted = [chr(code) for code in range(ord(first), ord(last) + 1, step)]
        else:
            counted = []
        if not counted:
            raise self._marks.error(steps, f"[{first}:{last}] is an empty or unreadable range")
        return counted

    def settle(self) -> None:
        """Work out depths and who is below whom, and read the files beside the inventory."""
        self._descend("all", 0, ())
        for name, group in self.groups.items():
            group.hosts_below = set(self.places) if name == "all" else set(self._below(name))
            group.file_variables = _file_variables(self._path.parent / "group_vars", name)
        files = self.groups["all"].host_files
        for host in self.places:
            files[host] = _file_variables(self._path.parent / "host_vars", host)

    def _descend(self, name: str, depth: int, above: tuple[str, ...]) -> None:
        if name in above:
            raise UsageError(f"{self._path}: group {name} is its own child", " -> ".join((*above, name)))
        group = self.groups[name]
        group.depth = max(group.depth, depth)
        for child in group.children:
            self._descend(child, depth + 1, (*above, name))

    def _below(self, name: str) -> Iterator[str]:
        yield from self.groups[name].hosts
        for child in self.groups[name].children:
            yield from self._below(child)


def _file_variables(folder: Path, name: str) -> Variables:
    """Variables of ``folder/name``, ``name.yml``, ``name.yaml`` or the files in ``folder/name/``."""
    found: Variables = {}
    plain = folder / name
    paths = sorted(plain.rglob("*.y*ml")) if plain.is_dir() else [plain] if plain.is_file() else []
    paths += [path for suffix in (".yml", ".yaml") if (path := folder / f"{name}{suffix}").is_file()]
    for path in paths:
        text = read_text(path)
        if text.startswith("$ANSIBLE_VAULT;") or not text.strip(" \n-"):
            continue
        data, marks = parse_with_lines(path, text, _Loader)
        if not isinstance(data, dict | None):
            raise marks.error((), "must be keys and values")
        found |= {str(key): (value, Where(path, marks.line((key,)))) for key, value in (data or {}).items()}
    return found
