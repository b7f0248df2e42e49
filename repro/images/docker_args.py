"""The flags of ``docker run`` for a host, from what was found there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from repro.errors import UnsupportedError, UsageError
from repro.images.host_tree import SHARED_DEVICES, HostTree
from repro.images.plan import Target

# In use for training on these hosts; MindSpore's data sets and HCCL's buffers live there.
SHM = "16g"


@dataclass(frozen=True)
class Asked:
    """What is wanted of the containers.

    Attributes:
        target: Which image.
        cards: Cards by number; empty for all. An A3's card is two dies.
        evidence: The folder on the host that runs are written to.
        user: ``uid:gid`` of the caller, whose the evidence shall be.
        multi_node: HCCL talks to other hosts.
        cores: A crash leaves its core file, and CANN's own handlers stay out of the way.
        direct: Devices and mounts even where the Ascend Docker Runtime is there.
    """

    target: Target
    evidence: str
    user: str
    cards: Sequence[int] = ()
    multi_node: bool = False
    cores: bool = False
    direct: bool = False
    shm: str = SHM


@dataclass(frozen=True)
class Flags:
    """Arguments of ``docker run`` before the image's name, and what the reader must know of them."""

    arguments: tuple[str, ...]
    notes: tuple[str, ...] = ()


def flags(host: HostTree, asked: Asked) -> Flags:
    """The flags for a host.

    Raises:
        UnsupportedError: Target ascend on a host without NPUs or with half a driver.
        UsageError: A card that the host does not have.
    """
    mount = f"{asked.evidence}:/workspace/runs"
    common = ["--rm", "--user", asked.user, "--security-opt", "no-new-privileges", "--volume", mount]
    limits = ["--ulimit", f"core={-1 if asked.cores else 0}"]
    if asked.target is Target.SIM:
        closed = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--network", "none"]  # noqa: S108
        return Flags((*common, *closed, *limits), _core_notes(host, asked))
    dies = _dies(host, asked)
    notes = []
    limits += ["--ulimit", "memlock=-1", "--ulimit", "stack=67108864", "--shm-size", asked.shm]
    if host.runtime and not asked.direct:
        visible = ",".join(map(str, dies))
        npu = [] if host.runtime_is_default else ["--runtime", "ascend"]
        npu += ["--env", f"ASCEND_VISIBLE_DEVICES={visible}"]
        notes.append("the Ascend Docker Runtime brings devices and driver; --direct maps them by hand instead")
    else:
        if host.missing:
            raise UnsupportedError(
                f"this host has NPUs and no {', '.join(host.missing)}", "install its driver whole, then reboot"
            )
        if "/usr/local/Ascend/driver" not in host.mounts:
            raise UnsupportedError("this host has NPUs and no /usr/local/Ascend/driver", "install its driver")
        devices = [f"/dev/davinci{die}" for die in dies] + list(SHARED_DEVICES)
        npu = [item for device in devices for item in ("--device", device)]
        npu += [item for path in host.mounts for item in ("--volume", f"{path}:{path}:ro")]
        if host.runtime_is_default:
            # Else the default runtime would map devices a second time.
            npu = ["--runtime", "runc", *npu]
    if host.group is None:
        notes.append("there is no group HwHiAiUser here: only root may open the devices")
    else:
        npu += ["--group-add", str(host.group)]
    if asked.multi_node:
        npu += ["--network", "host"]
    if asked.cores:
        npu += ["--env", "ASCEND_COREDUMP_SIGNAL=none"]
    return Flags((*common, *npu, *limits), (*notes, *_core_notes(host, asked)))


def _dies(host: HostTree, asked: Asked) -> list[int]:
    if not host.dies:
        raise UnsupportedError(
            "this host has no /dev/davinci*", "for an image that needs no NPU: repro docker-args sim"
        )
    if not asked.cards:
        return list(host.dies)
    each = host.dies_a_card
    wanted = [die for card in asked.cards for die in range(card * each, (card + 1) * each)]
    lost = [die for die in wanted if die not in host.dies]
    if lost:
        cards = sorted({die // each for die in host.dies})
        raise UsageError(
            f"--cards {lost[0] // each}: there is no /dev/davinci{lost[0]}", f"cards here: {', '.join(map(str, cards))}"
        )
    return wanted


def _core_notes(host: HostTree, asked: Asked) -> tuple[str, ...]:
    if not asked.cores:
        return ()
    pattern = host.core_pattern
    if pattern.startswith("|"):
        return (f"core files go to the host's own handler ({pattern.split()[0][1:]}), not into the container",)
    if pattern.startswith("/"):
        folder = pattern.rsplit("/", 1)[0] or "/"
        return (f"core files are written to {folder} inside the container: mount a folder there",)
    return ("core files are written to the working folder of the rank, which is in its evidence",)
