"""One trial on this host under its supervisor, watched from another machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from repro.errors import InfraError
from repro.evidence import manifest
from repro.evidence.layout import TrialFolder
from repro.evidence.write import write_json
from repro.launch.hosted_link import BEAT_S, Link
from repro.launch.hosted_rest import beside, lock
from repro.launch.ports import reserved_port
from repro.launch.process import die_with_parent, end_strays
from repro.launch.supervisor import PARENT_VARIABLE
from repro.model import Node, Tier, TrialRecord, TrialSpec
from repro.model.wants import Wants

# For the supervisor to end its tree; then it is ended itself.
PATIENCE_S = 20.0
REACH_S = 5.0


class Trial:
    """A trial that was asked for over the link.

    Args:
        link: To who asked.
        folder: Where it runs.
        request: The specification, the slots, and for a trial across hosts this host's part.
    """

    def __init__(self, link: Link, folder: TrialFolder, request: Mapping[str, Any]) -> None:
        self._link = link
        self._folder = folder
        self._request = request
        self._spec = TrialSpec.from_json(request["spec"])
        self._part: Mapping[str, Any] | None = request.get("node")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other sessions off the trial's folder; one of a controller that died may still be ending."""
        with self._link.patiently(lambda: lock(self._folder.path)):
            yield

    def finished(self) -> bool:
        """True if an earlier session ran this very trial to its end and sealed it, but could not hand it over."""
        if self._part is not None or not (self._folder.path / manifest.NAME).exists():
            return False
        try:
            manifest.check(self._folder)
            record = TrialRecord.from_json(json.loads(self._folder.record.read_text(encoding="utf-8")))
        except (InfraError, OSError, ValueError, KeyError, TypeError):
            return False
        return record.spec.key == self._spec.key

    def run(self, program: Path) -> None:
        """Run it to its end.

        Raises:
            Gone: The other side is gone; nothing is left running.
            InfraError: It could not be run.
        """
        if self._folder.path.exists():
            shutil.rmtree(self._folder.path)
        self._folder.path.mkdir(parents=True)
        write_json(self._folder.spec, self._spec.to_json())
        write_json(self._folder.wants, Wants.from_json(self._request["wants"]).to_json())
        with ExitStack() as held:
            if self._part is not None:
                node = self._meet(held)
                write_json(self._folder.node, node.to_json())
            self._supervise(program)

    def _meet(self, held: ExitStack) -> Node:
        """Agree with the other hosts on a port, and see that they reach it, before any rank waits for it in vain."""
        part = dict(self._part or {})
        if part["index"] == 0:
            taken = frozenset(int(port) for port in part.pop("taken", ()))
            part["port"] = held.enter_context(reserved_port(taken))
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    server.bind((part["address"], part["port"]))
                except OSError as error:
                    raise InfraError(
                        f"it cannot listen on {part['address']}:{part['port']}: {error.strerror}",
                        "hyper_repro_address in the inventory must be an address of the host itself",
                    ) from error
                server.listen(64)
                self._link.send(port=part["port"])
                self._wait_for("go")
        else:
            part.pop("taken", None)
            try:
                socket.create_connection((part["master"], part["port"]), timeout=REACH_S).close()
            except OSError as error:
                raise InfraError(
                    f"it cannot reach {part['master']}:{part['port']}, where the first host listens: "
                    f"{error.strerror or error}",
                    "open the ports 20000 to 32000 between the hosts, or set hyper_repro_address",
                ) from error
            self._link.send(reached=True)
            self._wait_for("go")
        return Node.from_json(part)

    def _wait_for(self, word: str) -> None:
        while True:
            message = self._link.next()
            if word in message:
                return
            if "stop" in message:
                raise InfraError("it was told to stop before the trial began")

    def _supervise(self, program: Path) -> None:
        slots = str(self._request["slots"])
        command = [sys.executable, "-m", "repro.launch.supervisor", str(self._folder.path), str(program), slots]
        root = str(Path(__file__).resolve().parents[2])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
            PARENT_VARIABLE: str(os.getpid()),
        }
        if self._spec.tier is Tier.NPU:
            # The dies that this trial was given; its ranks count them from 0. Others may run on the rest.
            places = ",".join(str(place) for place in self._request["places"])
            environment["ASCEND_RT_VISIBLE_DEVICES"] = places
        complaints = beside(self._folder.path, "stderr")
        with complaints.open("w+b") as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                env=environment,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(signal.SIGTERM),  # noqa: PLW1509 -- one thread here
            )
            try:
                self._watch(process)
            finally:
                self._end(process)
                complaints.unlink()
            err.seek(0)
            said = err.read().decode("utf-8", "replace").strip().splitlines()
        if process.returncode != 0:
            raise InfraError(said[-1] if said else f"its supervisor ended with status {process.returncode}")
        if not self._folder.record.exists():
            raise InfraError("the trial left no record", "it was stopped; run again to finish")

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        beat = 0.0
        self._link.send(started=time.time())
        while process.poll() is None:
            now = time.monotonic()
            if now >= beat:
                beat = now + BEAT_S
                self._link.send(beat=time.time())
            if self._link.pending(0.1):
                message = self._link.next_or_beat()
                if "stop" in message:
                    process.terminate()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.returncode != 0:
            end_strays("HYPER_REPRO_TRIAL", str(self._folder.path))
