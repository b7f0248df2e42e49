"""What an Ascend host has that a container needs: device nodes, driver, tools, the Ascend Docker Runtime."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import InfraError

# Where npu-smi lies, by product.
_NPU_SMI = ("usr/local/bin/npu-smi", "usr/local/sbin/npu-smi")
# Devices that every container with an NPU needs beside the dies.
SHARED_DEVICES = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
# An Atlas A3 shows a card as two dies, 16 a host; an A2 shows one a card, 8 a host.
A3_DIES = 16


@dataclass(frozen=True)
class HostTree:
    """What was found.

    Attributes:
        dies: Numbers of /dev/davinciN, which are physical ids.
        missing: Shared device nodes that are not there.
        mounts: Files and folders of the driver that are there and that a container needs, read-only.
        runtime: True if Docker knows the runtime ``ascend``.
        runtime_is_default: True if it uses it unasked.
        group: Id of the group HwHiAiUser, which may open the devices; None if the host has none.
        core_pattern: Where the kernel puts core files; one value for the host and all containers.
    """

    dies: tuple[int, ...]
    missing: tuple[str, ...]
    mounts: tuple[str, ...]
    runtime: bool
    runtime_is_default: bool
    group: int | None
    core_pattern: str

    @property
    def chip(self) -> str:
        """``a3`` or ``910b`` by the number of dies; a host with some of its cards taken away may look like an A2."""
        return "a3" if len(self.dies) >= A3_DIES else "910b"

    @property
    def dies_a_card(self) -> int:
        """Dies that one card shows."""
        return 2 if self.chip == "a3" else 1


def look(root: Path = Path("/")) -> HostTree:
    """Look at a host, or at a folder that holds a copy of the files of one.

    Raises:
        InfraError: Docker's daemon.json is not JSON.
    """
    found = (re.fullmatch(r"davinci(\d+)", path.name) for path in root.glob("dev/davinci*"))
    daemon = _daemon(root / "etc/docker/daemon.json")
    pattern = root / "proc/sys/kernel/core_pattern"
    return HostTree(
        dies=tuple(sorted(int(match.group(1)) for match in found if match)),
        missing=tuple(name for name in SHARED_DEVICES if not (root / name[1:]).exists()),
        mounts=tuple(f"/{name}" for name in _driver(root)),
        runtime="ascend" in daemon.get("runtimes", {}),
        runtime_is_default=daemon.get("default-runtime") == "ascend",
        group=_group(root / "etc/group"),
        core_pattern=pattern.read_text(encoding="utf-8").strip() if pattern.is_file() else "",
    )


def _driver(root: Path) -> list[str]:
    wanted = ["usr/local/dcmi", *_NPU_SMI, "usr/local/Ascend/driver", "etc/ascend_install.info", "etc/hccn.conf"]
    return [name for name in wanted if (root / name).exists()]


def _daemon(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InfraError(f"{path} is not JSON: {error}", "Docker would not start with it either; mend it") from error
    return data


def _group(path: Path) -> int | None:
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, number, *_ = (*line.split(":"), "", "", "")
        if name == "HwHiAiUser" and number.isdigit():
            return int(number)
    return None
