"""Replaces what names people, machines and secrets by pseudonyms: the same name always by the same one. Pure.

Rather too much is replaced than too little; whoever bundles a run checks that its verdict is still the same.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Names that say nothing of anybody.
COMMON = {"root", "localhost", "local", "nobody", "user", "host", "?", ""}
SHORTEST_NAME = 3
# What stands under these keys of our own files is a host, however short its name.
HOST_KEYS = {"host", "hostname", "node", "address"}
# First components of paths that every machine has.
STANDARD = {
    "usr",
    "lib",
    "lib64",
    "bin",
    "sbin",
    "etc",
    "proc",
    "sys",
    "dev",
    "tmp",
    "var",
    "opt",
    "run",
    "boot",
    "srv",
}
SECRET = r"token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization"  # noqa: S105 -- what to look for
_SECRET_NAME = re.compile(rf"(?i)(?:{SECRET})")
# Parts of a path that stay: what a reader, and the judge's line, name a place by.
KEPT_PARTS = 2
_PLAIN = re.compile(r"(?i)true|false|none|null|\d+|<.*|\$.*|\*+")
_PSEUDONYM = re.compile(r"(?:user|host|ip|mac|token|path)-\d+")

_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s+)([A-Za-z0-9+/_.~=-]{8,})")
_ASSIGNED = re.compile(rf"(?i)([\w-]*(?:{SECRET})[\w-]*[\"']?\s*[=:]\s*[\"']?)([^\s\"',;&)\]}}]{{4,}})")
_FLAG = re.compile(rf"(?i)(--?[\w-]*(?:{SECRET})[\w-]*\s+[\"']?)([^\s\"',;&-][^\s\"',;&]{{3,}})")
_KNOWN_TOKEN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*)"
)
_USERINFO = re.compile(r"(?<=://)([^\s/@:]+)(?::([^\s/@]+))?@")
_AT = re.compile(r"(?<![\w@])([A-Za-z_][\w.+-]*)@([A-Za-z0-9][\w.-]*[A-Za-z0-9])")
_INTERNAL = re.compile(r"(?i)\b(?:[a-z0-9-]+\.)+(?:local|internal|intranet|intra|corp|lan|localdomain)\b")
_MAC = re.compile(
    r"(?i)(?<![0-9a-f:-])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![0-9a-f:-])|(?<![0-9a-f-])(?:[0-9a-f]{2}-){5}[0-9a-f]{2}(?![0-9a-f-])"
)
_V4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|\.\d)")
_V6 = re.compile(r"(?i)(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])")
_HOME = re.compile(r"/(home|Users)/([^\s/:\"'<>|,;()]+)")
_PATH = re.compile(r"(?<![\w.:/~-])/(?:[^\s/:\"'<>|,;()\[\]{}]+/)+[^\s/:\"'<>|,;()\[\]{}]*")


@dataclass
class Pseudonyms:
    """Which name stands for what; grows as names are met, and is kept so that later bundles agree.

    Attributes:
        known: Pseudonyms by kind and name.
    """

    known: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of a name, such as ``host-2``."""
        if _PSEUDONYM.fullmatch(name):
            return name
        names = self.known.setdefault(kind, {})
        return names.setdefault(name, f"{kind}-{len(names) + 1}")


class Redactor:
    """Applies one set of pseudonyms to texts and to JSON data.

    Args:
        pseudonyms: Taken over and added to.
        hosts, users: Names that are known to be such.
        roots: Folders of this machine by the name that stands for them, such as ``/project``.
        hide: Further words to replace.
    """

    def __init__(
        self,
        pseudonyms: Pseudonyms,
        hosts: Iterable[str] = (),
        users: Iterable[str] = (),
        roots: Mapping[str, str] | None = None,
        hide: Iterable[str] = (),
    ) -> None:
        self._names = pseudonyms
        kinds = {**dict.fromkeys(users, "user"), **dict.fromkeys(hosts, "host"), **dict.fromkeys(hide, "name")}
        self._kinds = {name.lower(): kind for name, kind in kinds.items() if _worth(name)}
        self._literal = _any_of(self._kinds)
        self._roots = {path.rstrip("/"): name for path, name in (roots or {}).items() if path.rstrip("/")}
        self._root = _prefix_of(self._roots)

    def text(self, text: str) -> str:
        """The text with everything replaced."""
        text = _PEM.sub(lambda found: self._names.of("token", found[0]), text)
        text = _KNOWN_TOKEN.sub(lambda found: self._names.of("token", found[0]), text)
        text = _USERINFO.sub(self._userinfo, text)
        text = _BEARER.sub(self._assigned, text)
        text = _ASSIGNED.sub(self._assigned, text)
        text = _FLAG.sub(self._assigned, text)
        text = _AT.sub(lambda m: f"{self._names.of('user', m[1])}@{self._host(m[2])}", text)
        text = _MAC.sub(lambda found: self._names.of("mac", found[0].lower()), text)
        text = _V4.sub(self._address, text)
        text = _V6.sub(self._address, text)
        text = self._paths(text)
        text = _INTERNAL.sub(lambda found: self._host(found[0]), text)
        return self._literal.sub(self._known_name, text) if self._kinds else text

    def data(self, value: Any, name: str = "") -> Any:
        """JSON data with every string replaced; keys stay, for they are ours.

        Args:
            value: The data.
            name: The key it stands under: what stands under a secret's name is one.
        """
        if isinstance(value, str):
            if name in HOST_KEYS and value.lower() not in COMMON:
                return self._names.of("host", value.lower())
            secret = bool(_SECRET_NAME.search(name)) and not _PLAIN.fullmatch(value) and value
            return self._names.of("token", value) if secret else self.text(value)
        if isinstance(value, dict):
            return {key: self.data(each, str(key)) for key, each in value.items()}
        if isinstance(value, list):
            names = ["", *(each if isinstance(each, str) and each.startswith("--") else "" for each in value)]
            # `--token VALUE` in an argument list; `--token=VALUE` is seen by its text.
            return [
                self.data(each, before if "=" not in before else "") for each, before in zip(value, names, strict=False)
            ]
        return value

    def _assigned(self, found: re.Match[str]) -> str:
        if _PLAIN.fullmatch(found[2]) or _PSEUDONYM.fullmatch(found[2]):
            return found[0]
        return found[1] + self._names.of("token", found[2])

    def _userinfo(self, found: re.Match[str]) -> str:
        secret = f":{self._names.of('token', found[2])}" if found[2] else ""
        return f"{self._names.of('user', found[1])}{secret}@"

    def _host(self, name: str) -> str:
        return name if name.lower() in COMMON else self._names.of("host", name.lower())

    def _known_name(self, found: re.Match[str]) -> str:
        return self._names.of(self._kinds[found[0].lower()], found[0].lower())

    def _address(self, found: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(found[0])
        except ValueError:
            return found[0]
        tells_nothing = address.is_loopback or address.is_unspecified
        return found[0] if tells_nothing else self._names.of("ip", str(address))

    def _paths(self, text: str) -> str:
        if self._roots:
            text = self._root.sub(lambda found: self._roots[found[0]], text)
        text = _HOME.sub(lambda found: f"/{found[1]}/{self._names.of('user', found[2].lower())}", text)
        text = re.sub(r"(?<![\w./~-])/root(?![\w.-])", "/home/root", text)
        return _PATH.sub(self._strange_path, text)

    def _strange_path(self, found: re.Match[str]) -> str:
        """A path below a folder that is not everywhere tells of the machine: only its last parts are kept."""
        parts = found[0].split("/")[1:]
        ours = f"/{parts[0]}" in self._roots.values() or parts[0] in ("home", "Users")
        if ours or parts[0] in STANDARD or _PSEUDONYM.fullmatch(parts[0]) or len(parts) <= KEPT_PARTS:
            return found[0]
        folder = "/".join(parts[:-KEPT_PARTS])
        return f"/{self._names.of('path', folder)}/{'/'.join(parts[-KEPT_PARTS:])}"


def _worth(name: str) -> bool:
    telling = len(name) >= SHORTEST_NAME or (len(name) > 1 and any(letter.isdigit() for letter in name))
    return telling and name.lower() not in COMMON


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?i)(?<![a-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![a-z0-9])")


def _prefix_of(roots: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(roots, key=len, reverse=True)
    return re.compile(rf"(?<![\w./~-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w.-])")
