"""Reads Ansible's YAML inventory: which hosts, how to reach them, their chips and dies; errors name the line."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.errors import UsageError
from repro.hosts.inventory_groups import Group, Vaulted, Where, read_groups

# Chip token of a CANN image tag -> dies of a full host. Atlas A2 is 910b; an A3 host shows two dies a card.
CHIP_DIES = {"910b": 8, "a3": 16}
OWN_VARIABLES = ("ascend_chip", "ascend_dies", "ascend_rack")
MAX_DIES = 64
_SECRETS = re.compile(r"^ansible_(?:.*_)?(?:pass|password|passphrase)$")
_TEMPLATE = re.compile(r"\{\{|\{%")


@dataclass(frozen=True)
class Host:
    """One host of an inventory.

    Attributes:
        name: Its name in the inventory; also its address unless ``ansible_host`` says otherwise.
        address: Name or address to connect to.
        port: TCP port of its sshd.
        user: Whom to log in as; None leaves it to ssh_config and the caller's own name.
        key: Private key file; None leaves it to the agent and ssh_config.
        jump: ``[user@]host[:port]`` in the order they are passed, empty if it is reached directly.
        local: It is this machine (``ansible_connection: local``).
        chip: ``910b``, ``a3``, or None if the inventory does not say.
        dies: How many dies it should show; 0 if the inventory does not say.
        rack: Where it stands; empty if the inventory does not say.
        groups: The groups it is in, outermost first, without ``all``.
        where: File and line of its entry.
        variables: Every variable that the inventory gives it, as read.
    """

    name: str
    address: str
    port: int = 22
    user: str | None = None
    key: Path | None = None
    jump: tuple[str, ...] = ()
    local: bool = False
    chip: str | None = None
    dies: int = 0
    rack: str = ""
    groups: tuple[str, ...] = ()
    where: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def target(self) -> tuple[str, int, str | None, tuple[str, ...]]:
        """What makes two entries the same host under two names."""
        return (self.address, self.port, self.user, self.jump)


@dataclass(frozen=True)
class Inventory:
    """The hosts of a file, in its order, and what is odd but no error.

    Attributes:
        path: The file.
        hosts: Each host once.
        warnings: One line each, with file and line.
    """

    path: Path
    hosts: tuple[Host, ...]
    warnings: tuple[str, ...] = ()

    def select(self, pattern: str) -> tuple[Host, ...]:
        """The hosts that a comma list of host and group names means, in the inventory's order.

        Raises:
            UsageError: A name is neither.
        """
        wanted = [name.strip() for name in pattern.split(",") if name.strip()]
        known = {"all"} | {host.name for host in self.hosts} | {group for host in self.hosts for group in host.groups}
        for name in wanted:
            if name not in known:
                near = difflib.get_close_matches(name, sorted(known), n=1)
                raise UsageError(
                    f"{self.path}: no host or group {name!r} with hosts in it",
                    f"did you mean {near[0]!r}?" if near else "",
                )
        return tuple(host for host in self.hosts if {"all", host.name, *host.groups} & set(wanted))


def read(path: Path) -> Inventory:
    """Read an inventory, with the ``group_vars`` and ``host_vars`` beside it.

    Raises:
        UsageError: It cannot be read, is not Ansible's YAML inventory, holds a password, switches host keys off, or a
            value that is needed here is wrong; the text has file and line.
    """
    groups, places = read_groups(path)
    hosts = tuple(_host(name, groups, place) for name, place in places.items())
    if not hosts:
        raise UsageError(f"{path}: no hosts in it", "name one under `all: hosts:` or under a group's `hosts:`")
    return Inventory(path, hosts, tuple(_odd(hosts)))


def _odd(hosts: tuple[Host, ...]) -> Iterator[str]:
    seen: dict[object, Host] = {}
    for host in hosts:
        first = seen.setdefault(host.target, host)
        if first is not host:
            yield f"{host.where}: {host.name} is the same host as {first.name}: {host.address}:{host.port}"
        if host.user == "root":
            yield f"{host.where}: {host.name}: logs in as root; a plain user with become is enough"
        if host.chip and host.dies != CHIP_DIES[host.chip]:
            whole = CHIP_DIES[host.chip]
            yield f"{host.where}: {host.name}: {host.dies} dies, where a full {host.chip} host has {whole}"
        if not host.chip:
            yield f"{host.where}: {host.name}: ascend_chip is not set ({', '.join(CHIP_DIES)}), so its dies are unknown"


class _Variables:
    """A host's variables, the strongest first, each with where it stands."""

    def __init__(self, name: str, found: dict[str, tuple[Any, Where]], entry: Where) -> None:
        self._name = name
        self._found = found
        self._entry = entry

    def error(self, key: str, message: str, next_step: str = "") -> UsageError:
        where = self._found[key][1] if key in self._found else self._entry
        return UsageError(f"{where}: {self._name}: {key}: {message}", next_step)

    def get(self, *keys: str) -> tuple[str, Any]:
        """The first of these that is set, refused where only Ansible itself could work it out."""
        for key in keys:
            if key in self._found:
                value = self._found[key][0]
                if isinstance(value, Vaulted) or (isinstance(value, str) and _TEMPLATE.search(value)):
                    raise self.error(key, "a template or vaulted value cannot be read here", "write the value out")
                if value is not None:
                    return key, value
        return keys[0], None

    def text(self, *keys: str) -> str | None:
        key, value = self.get(*keys)
        if value is None:
            return None
        if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
            raise self.error(key, f"{value!r} is not a name")
        return str(value).strip()

    def number(self, low: int, high: int, *keys: str) -> int | None:
        key, value = self.get(*keys)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(key, f"{value!r} is not a whole number from {low} to {high}")
        return value


def _host(name: str, groups: Mapping[str, Group], place: Where) -> Host:
    mine = [group for group in groups.values() if name in group.hosts_below]
    mine.sort(key=lambda group: (group.depth, group.name))
    found: dict[str, tuple[Any, Where]] = {}
    # Ansible's order, weakest first: groups in the file, group_vars, the host in the file, host_vars.
    for group in mine:
        found.update(group.variables)
    for group in mine:
        found.update(group.file_variables)
    for group in mine:
        found.update(group.host_variables.get(name, {}))
    found.update(groups["all"].host_files.get(name, {}))
    variables = _Variables(name, found, place)
    _refuse_secrets(variables, found)
    connection = variables.text("ansible_connection") or "ssh"
    if connection.removeprefix("ansible.builtin.") not in ("ssh", "smart", "local"):
        raise variables.error("ansible_connection", f"{connection!r} is neither ssh nor local")
    chip = variables.text("ascend_chip")
    if chip is not None and chip not in CHIP_DIES:
        hint = "Atlas A2 is 910b" if chip.lower() in ("a2", "910", "910b3", "910b4") else ""
        raise variables.error("ascend_chip", f"{chip!r} is not one of {', '.join(CHIP_DIES)}", hint)
    dies = variables.number(1, MAX_DIES, "ascend_dies")
    key = variables.text("ansible_ssh_private_key_file", "ansible_private_key_file")
    return Host(
        name=name,
        address=variables.text("ansible_host", "ansible_ssh_host") or name,
        port=variables.number(1, 65535, "ansible_port", "ansible_ssh_port") or 22,
        user=variables.text("ansible_user", "ansible_ssh_user"),
        key=Path(key).expanduser() if key else None,
        jump=_jump(variables),
        local=connection.endswith("local"),
        chip=chip,
        dies=dies if dies is not None else CHIP_DIES.get(chip or "", 0),
        rack=variables.text("ascend_rack") or "",
        groups=tuple(group.name for group in mine if group.name != "all"),
        where=str(place),
        variables={key: value for key, (value, _) in found.items()},
    )


def _refuse_secrets(variables: _Variables, found: Mapping[str, tuple[Any, Where]]) -> None:
    for key, (value, _) in found.items():
        if _SECRETS.match(key) and not isinstance(value, Vaulted) and not _TEMPLATE.search(str(value)):
            raise variables.error(key, "a password in clear text", "use a key and an agent, or ansible-vault")
        if key in ("ansible_host_key_checking", "ansible_ssh_host_key_checking") and value in (False, "false", "no"):
            raise variables.error(key, "host keys must be checked", "add them to known_hosts")
        if key.startswith("ascend_") and key not in OWN_VARIABLES and not key.startswith("ascend_runtime_"):
            near = difflib.get_close_matches(key, OWN_VARIABLES, n=1)
            raise variables.error(
                key, f"unknown; known are {', '.join(OWN_VARIABLES)}", f"did you mean {near[0]}?" if near else ""
            )


def _jump(variables: _Variables) -> tuple[str, ...]:
    """Jump hosts out of the arguments that Ansible hands to ssh; other options stay ssh's own business."""
    for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        text = variables.text(key)
        try:
            words = iter(shlex.split(text or ""))
        except ValueError as error:
            raise variables.error(key, f"not words of a command line: {error}") from error
        for word in words:
            option = next(words, "") if word in ("-o", "-J") else word[2:] if word.startswith(("-o", "-J")) else ""
            if word.startswith("-J"):
                return tuple(option.split(","))
            name, _, value = option.replace("=", " ", 1).partition(" ")
            if name.lower() == "proxyjump":
                return tuple(value.strip().split(","))
            if name.lower() == "proxycommand":
                raise variables.error(key, "ProxyCommand cannot be read here", "use -o ProxyJump=[user@]host[:port]")
            if name.lower() == "stricthostkeychecking" and value.strip().lower() in ("no", "off"):
                raise variables.error(key, "host keys must be checked", "add them to known_hosts, or accept-new")
    return ()
