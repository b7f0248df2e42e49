"""A real Slurm on this machine: munged, slurmctld and one slurmd a node, all in a folder of their own.

Nothing in /etc is read or written: the key, the configuration, the spool, the sockets and the logs lie in the folder,
and ports are taken that are free. Every daemon is ended by the pid it was started with.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
INSTALL = "apt-get install slurm-wlm munge"
NPUS_A_NODE = 8
# Only ends a start that would never end.
PATIENCE_S = 60.0


def missing() -> str:
    """The programs that are not installed, as the reason to skip a test; empty if all are there."""
    lacking = [name for name in PROGRAMS if _find(name) is None]
    return f"{', '.join(lacking)} not installed; {INSTALL}" if lacking else ""


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


def free_ports(count: int) -> list[int]:
    """Ports that are free now, each another one."""
    with_port = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in with_port]
    for server in with_port:
        server.close()
    return ports


@dataclass
class SlurmCluster:
    """Nodes n1, n2, ... with a fake gres ``npu`` of eight devices each; the last in a partition ``apart``.

    Args:
        folder: Where everything lies; short, for the sake of socket names.
        nodes: How many nodes.
    """

    folder: Path
    nodes: int = 4
    _daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a command needs to speak to this cluster."""
        path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def names(self) -> list[str]:
        """The nodes' names."""
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    def start(self) -> None:
        """Start every daemon and wait until all nodes are idle."""
        self._write_configuration()
        munge = self.folder / "munge"
        key = munge / "munge.key"
        command = ["munged", "--foreground", f"--key-file={key}", f"--socket={munge / 'socket'}"]
        command += [f"--pid-file={munge / 'pid'}", f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}"]
        self._spawn("munged", [*command, "--force"])
        self._until((munge / "socket").exists, "munged listens")
        self.start_controller()
        for name in self.names():
            self.start_node(name)
        self._until(lambda: self._states() == ["idle"] * self.nodes, "all nodes are idle")

    def start_controller(self) -> None:
        """Start slurmctld, anew if it was stopped."""
        self._spawn("slurmctld", ["slurmctld", "-D", "-i"])
        self._until(lambda: "UP" in self.command("scontrol", "ping", check=False), "slurmctld answers")

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        self._spawn(name, ["slurmd", "-D", "-N", name])

    def stop_daemon(self, name: str) -> None:
        """Kill one daemon: ``slurmctld``, ``munged`` or a node's slurmd."""
        process = self._daemons.pop(name)
        process.kill()
        process.wait()

    def lose_node(self, name: str) -> None:
        """What a power cut does: slurmd, its job steps and all they run end at once, and say nothing."""
        mine = [self._daemons[name].pid]
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("SLURMD_NODENAME") == name or self._is_step_of(process, name):
                    mine.append(process.pid)
        for pid in mine:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._daemons.pop(name).wait()

    def _is_step_of(self, process: psutil.Process, name: str) -> bool:
        """A slurmstepd does not carry its node's name, but its slurmd's log file is open in it, or it is its child."""
        return process.name() == "slurmstepd" and any(
            Path(file.path).name == f"{name}.log" and self.folder in Path(file.path).parents
            for file in process.open_files()
        )

    def revive_node(self, name: str) -> None:
        """Start a lost node again and wait until Slurm counts on it; what it lost may take longer to be cleared."""
        self.start_node(name)
        self._until(lambda: self._resume(name), f"{name} is back")

    def _resume(self, name: str) -> bool:
        self.command("scontrol", "update", f"nodename={name}", "state=resume", check=False)
        return self._states("--nodes", name)[0] in ("idle", "mix", "alloc", "comp")

    def command(self, *words: str, check: bool = True) -> str:
        """Run one of Slurm's commands and return what it printed."""
        done = subprocess.run(
            words, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False, timeout=60
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def stop(self) -> None:
        """End all jobs and all daemons."""
        if "slurmctld" in self._daemons:
            self.command("scancel", "--user", getpass.getuser(), check=False)
        for name in [*self.names(), "slurmctld", "munged"]:
            process = self._daemons.pop(name, None)
            if process is None:
                continue
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def logs(self) -> str:
        """The last lines of every daemon's log, for a test that fails."""
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in files)

    def _spawn(self, name: str, command: list[str]) -> None:
        program = _find(command[0])
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                [program, *command[1:]],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _states(self, *which: str) -> list[str]:
        return self.command("sinfo", "--noheader", "--Node", "--format=%t", *which, check=False).split()

    def _until(self, happened: object, what: str) -> None:
        assert callable(happened)
        deadline = time.monotonic() + PATIENCE_S
        while not happened():
            for name, process in self._daemons.items():
                if process.poll() is not None:
                    said = (self.folder / f"{name}.out").read_text(errors="replace")[-500:]
                    raise AssertionError(f"{name} ended with {process.returncode}: {said}\n{self.logs()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"never happened: {what}\n{self.logs()}")
            time.sleep(0.2)

    def _write_configuration(self) -> None:
        munge = self.folder / "munge"
        for folder in (munge, self.folder / "state", *(self.folder / f"spool-{name}" for name in self.names())):
            folder.mkdir(parents=True, mode=0o755)
        key = munge / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        for name in self.names():
            for device in range(NPUS_A_NODE):
                (self.folder / f"{name}-npu{device}").touch()
        host = socket.gethostname().partition(".")[0]
        controller, *ports = free_ports(1 + self.nodes)
        (self.folder / "slurm.conf").write_text(
            "\n".join([*self._settings(host, controller), *self._node_lines(host, ports)]) + "\n"
        )
        (self.folder / "gres.conf").write_text(
            "".join(
                f"NodeName={name} Name=npu File={self.folder}/{name}-npu[0-{NPUS_A_NODE - 1}]\n"
                for name in self.names()
            )
        )
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def _settings(self, host: str, port: int) -> list[str]:
        user = getpass.getuser()
        return [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={port}",
            f"SlurmUser={user}",
            f"SlurmdUser={user}",
            "AuthType=auth/munge",
            f"AuthInfo=socket={self.folder}/munge/socket,cred_expire=5",
            "CredType=cred/munge",
            f"StateSaveLocation={self.folder}/state",
            f"SlurmdSpoolDir={self.folder}/spool-%n",
            f"SlurmctldPidFile={self.folder}/slurmctld.pid",
            f"SlurmdPidFile={self.folder}/%n.pid",
            f"SlurmctldLogFile={self.folder}/slurmctld.log",
            f"SlurmdLogFile={self.folder}/%n.log",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "MpiDefault=none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "GresTypes=npu",
            # Ends a job that takes more memory than it asked for; cgroups are not everywhere.
            "JobAcctGatherType=jobacct_gather/linux",
            "JobAcctGatherFrequency=task=1",
            "JobAcctGatherParams=OverMemoryKill",
            "SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0",
            "SlurmdTimeout=5",
            "SlurmctldTimeout=30",
            "MessageTimeout=5",
            "BatchStartTimeout=5",
            "InactiveLimit=0",
            "KillWait=5",
            "MinJobAge=300",
            "JobRequeue=1",
            "ReturnToService=2",
            "SlurmdParameters=config_overrides",
            "SwitchType=switch/none",
        ]

    def _node_lines(self, host: str, ports: list[int]) -> list[str]:
        # More cores than there are: trials here wait for each other more than they compute.
        size = f"CPUs=8 RealMemory=24000 Gres=npu:{NPUS_A_NODE} State=UNKNOWN"
        lines = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {size}"
            for name, port in zip(self.names(), ports, strict=True)
        ]
        settings = "DefMemPerCPU=1500 MaxTime=INFINITE State=UP"
        main, apart = f"n[1-{self.nodes - 1}]", self.names()[-1]
        return [
            *lines,
            f"PartitionName=main Nodes={main} Default=YES {settings}",
            f"PartitionName=apart Nodes={apart} {settings}",
        ]
