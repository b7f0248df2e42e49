"""What an image build is told: target, base, build arguments and labels, from the table of versions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from repro.errors import InfraError, UsageError
from repro.images.versions import ALLOW, Row, Versions, Wanted, choose

REGISTRY = "quay.io/ascend/cann"
SIM_BASE = "debian:bookworm-slim"
IMAGE = "hyper-repro"
NO_LIBRARY = "none"


class Target(StrEnum):
    """The two images of one recipe."""

    SIM = "sim"
    ASCEND = "ascend"


@dataclass(frozen=True)
class Asked:
    """What the command line may say of a build; empty for the table's own choice.

    Attributes:
        base: The whole name of a base image.
        registry: Where CANN's image comes from, without tag.
        allow_unlisted: Build a combination that no row of the table has.
        offline: Take packages from the wheels in the context alone.
    """

    target: Target
    wanted: Wanted = field(default_factory=Wanted)
    base: str = ""
    registry: str = REGISTRY
    tag: str = ""
    allow_unlisted: bool = False
    offline: bool = False


@dataclass(frozen=True)
class Build:
    """A build, ready to be handed to a Docker client."""

    target: Target
    row: Row
    tag: str
    arguments: Mapping[str, str]

    def command(self) -> list[str]:
        """The arguments of ``docker`` that make it, secrets and context left out."""
        pairs = [item for name, value in self.arguments.items() for item in ("--build-arg", f"{name}={value}")]
        return ["build", "--file", "images/Dockerfile", "--target", self.target, "--tag", self.tag, *pairs]


def plan(asked: Asked, versions: Versions, root: Path, version: str, commit: str | None, library: str) -> Build:
    """The build that was asked for.

    Args:
        asked: By whoever builds.
        versions: The table.
        root: The checkout, which the locks are in.
        version: Of hyper-repro.
        commit: Of hyper-repro.
        library: The hyper-parallel that comes in, as a reader wants it; ``none`` without one.

    Raises:
        UsageError: No row has the combination, no chip is named, or the lock pins another MindSpore.
        InfraError: A lock is missing.
    """
    lock = root / "images" / ("requirements.lock" if asked.target is Target.SIM else "requirements-ascend.lock")
    if not lock.is_file():
        raise InfraError(f"there is no {lock}", "run from a checkout, after `make lock`")
    pinned = re.search(r"^mindspore==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    if pinned is None:
        raise InfraError(f"{lock} pins no MindSpore", "make it anew with `make lock`")
    mindspore = pinned.group(1)
    row = choose(versions, replace(asked.wanted, mindspore=asked.wanted.mindspore or mindspore), asked.allow_unlisted)
    if row.mindspore != mindspore:
        raise UsageError(
            f"{lock.name} pins MindSpore {mindspore}, not {row.mindspore}",
            "change images/requirements.in and run `make lock`",
        )
    base, chip, tag = asked.base, asked.wanted.chip, asked.tag
    arguments = {"TARGET": str(asked.target)}
    if asked.target is Target.SIM:
        arguments["SIM_BASE"] = base or SIM_BASE
        tag = tag or f"{IMAGE}:sim"
    else:
        if not chip:
            raise UsageError("target ascend needs --chip", f"one of {', '.join(row.chips)}; an Atlas A2 is a 910b")
        arguments["CANN_BASE"] = base or _tagged(asked, row)
        arguments["CHIP"] = chip
        if not asked.allow_unlisted:
            arguments["CANN_WANTED"] = row.cann
        tag = tag or f"{IMAGE}:ascend-{chip}"
    if asked.allow_unlisted:
        arguments["ALLOW_UNLISTED"] = "1"
    if asked.offline:
        arguments["PIP_FLAGS"] = "--no-index"
    arguments |= {
        "VERSION": version,
        "REVISION": commit or "unknown",
        "LOCK_SHA256": hashlib.sha256(lock.read_bytes()).hexdigest(),
        "MINDSPORE": row.mindspore,
        "CANN": "stand-in" if asked.target is Target.SIM else (asked.wanted.cann or row.cann),
        "HYPER_PARALLEL": library,
    }
    return Build(asked.target, row, tag, arguments)


def _tagged(asked: Asked, row: Row) -> str:
    """CANN's image, by a tag that was seen; a tag is never made up, because not every one of the grammar exists."""
    tag = row.base_tags.get(asked.wanted.chip)
    if tag is None or asked.wanted.cann not in {"", row.cann}:
        what = f"CANN {asked.wanted.cann or row.cann} on {asked.wanted.chip}"
        raise UsageError(
            f"images/versions.yaml names no base image for {what}", f"give one with --base; {ALLOW} does not guess tags"
        )
    return f"{asked.registry}:{tag}"
