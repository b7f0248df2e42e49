"""The host's side of a trial that another machine asks for: run it, seal it, hand it over, and outlive nobody.

Run over SSH as ``python -m repro.launch.hosted MARK VERB``; it talks on its standard streams and ends with them. A
trial is ended when the channel closes or when the other side has said nothing for a while: nothing runs on for a
controller that is gone. What was finished stays in its folder until the other side says that it has it, checked.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import repro
from repro import host
from repro.errors import InfraError, ReproError
from repro.evidence import manifest
from repro.evidence.layout import TrialFolder
from repro.launch.hosted_link import Gone, Link
from repro.launch.hosted_rest import beside, lock, sweep
from repro.launch.hosted_run import Trial
from repro.transfer.files import Incoming, Listed, list_folder, pieces
from repro.transfer.source import source_digest

DISK_FULL = "disk full"
# A trial's logs and samples are a few MiB; below this nothing is begun, and what ended with less is not believed.
ROOM_TO_BEGIN = 64 << 20
ROOM_AT_END = 1 << 20


def facts(work: Path) -> dict[str, Any]:
    """What the controller must know of this host before it trusts it with trials."""
    work.mkdir(parents=True, exist_ok=True)
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "packages": host.package_versions(),
        "source": source_digest(),
        "version": repro.__version__,
        "tiers": [tier.value for tier in host.available_tiers()],
        "cores": len(os.sched_getaffinity(0)),
        "dies": len(host.npu_devices()),
        "identity": f"{boot.read_text(encoding='ascii').strip()} {os.uname().nodename}",
        "free": shutil.disk_usage(work).free,
    }


def probe(link: Link, request: Mapping[str, Any]) -> None:
    """Say what this host is, and take away what cut sessions have left long ago."""
    sweep(_work(request) / "trials")
    link.send(facts=facts(_work(request)))


def send(link: Link, request: Mapping[str, Any]) -> None:
    """Hand a folder over as it is."""
    folder = Path(str(request["folder"])).expanduser()
    if not folder.is_dir():
        raise InfraError(f"{folder} is no folder", "name one that is on the host")
    with link.beating():
        listed = list_folder(folder, lambda _path: True)
    hand_over(link, folder, listed)


def trial(link: Link, request: Mapping[str, Any]) -> None:
    """Run a trial, or take up the finished one that an earlier, cut session left, and hand it over."""
    work = _work(request)
    if shutil.disk_usage(_made(work)).free < ROOM_TO_BEGIN:
        raise OSError(errno.ENOSPC, f"less than {ROOM_TO_BEGIN >> 20} MiB are free", str(work))
    folder = TrialFolder(work / "trials" / str(request["folder"]))
    this = Trial(link, folder, request)
    with this.alone():
        sweep(work / "trials", folder.path.parent.name, older_than_s=0)
        if not this.finished():
            cases = _receive_case(link, work, request)
            this.run(cases / str(request["program"]))
            if shutil.disk_usage(work).free < ROOM_AT_END:
                raise OSError(errno.ENOSPC, "it filled up while the trial ran", str(work))
            with link.beating():
                manifest.seal(folder)
        if hand_over(link, folder.path, _sealed(folder)):
            shutil.rmtree(folder.path)
            beside(folder.path, "lock").unlink(missing_ok=True)
    _drop_if_empty(folder.path.parent)


def hand_over(link: Link, folder: Path, listed: list[Listed]) -> bool:
    """List the files, send those asked for, and tell whether the other side said that it has them all, checked."""
    link.send(files=[[entry.name, entry.size, entry.digest] for entry in listed])
    while True:
        message = link.next()
        if "have" in message:
            return bool(message["have"])
        for name, offset in message.get("want", []):
            if not any(entry.name == name for entry in listed):
                raise InfraError(f"{name} was not offered")
            for data in pieces(folder, name, int(offset)):
                link.piece(data)


def _sealed(folder: TrialFolder) -> list[Listed]:
    sums = manifest.sums(folder)
    listed = [Listed(name, (folder.path / name).stat().st_size, digest) for name, digest in sums.items()]
    own = list_folder(folder.path, lambda path: path == folder.path / manifest.NAME)
    return [*listed, *own]


def _receive_case(link: Link, work: Path, request: Mapping[str, Any]) -> Path:
    """The case programs, kept by their digests, so that a host gets each of them once."""
    listed = [Listed.from_json(entry) for entry in request["case"]]
    folder = work / "cases" / str(request["case_digest"])
    with link.patiently(lambda: lock(folder)):
        incoming = Incoming(folder, listed)
        asked = incoming.missing()
        if asked:
            link.send(want=asked)
            incoming.receive(dict(asked), link.next_piece)
    return folder


def _work(request: Mapping[str, Any]) -> Path:
    return Path(str(request["work"])).expanduser()


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _drop_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
            raise


VERBS: dict[str, Callable[[Link, Mapping[str, Any]], None]] = {"probe": probe, "send": send, "trial": trial}


def main(arguments: list[str]) -> int:
    """Entry point; every failure is told to the other side, if it is still there."""
    mark, verb = arguments
    link = Link(mark)
    try:
        request = link.next()
        link.silence_s = float(request.get("silence_s", link.silence_s))
        for _ in range(int(request.get("clocks", 0))):
            link.next()
            link.send(time=time.time())
        VERBS[verb](link, request)
    except Gone:
        return InfraError.exit_code
    except ReproError as error:
        full = DISK_FULL if os.strerror(errno.ENOSPC) in str(error) else ""
        link.last_words(error.message, error.next_step, full)
        return error.exit_code
    except OSError as error:
        full = DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        link.last_words(f"{error.filename or 'this host'}: {error.strerror or error}", "", full)
        return InfraError.exit_code
    except (ValueError, KeyError, TypeError, json.JSONDecodeError) as error:
        link.last_words(f"it cannot read what it was sent: {error!r}", "the project there must be the controller's", "")
        return InfraError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
