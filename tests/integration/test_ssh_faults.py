"""Each way in which a host can fail, provoked on real sshd servers: it is named, and it never stalls the others."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from harness import until
from hosts_cluster import PLAIN_USER, PORT, Cluster, Host, cluster, lacking

from repro.engines.ssh import fanout
from repro.engines.ssh.connection import Limits
from repro.engines.ssh.deadline import Deadline
from repro.engines.ssh.fanout import HostResult
from repro.engines.ssh.readiness import look
from repro.engines.ssh.trouble import Trouble
from repro.hosts import inventory

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking())
LIMITS = Limits(connect_s=3, host_s=20)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Cluster]:
    with cluster(4) as made:
        yield made


@pytest.fixture
def spoiled(hosts: Cluster) -> Iterator[Host]:
    """A host that a test may spoil; it is as it was afterwards."""
    host = hosts["h2"]
    yield host
    hosts.configure(host)
    hosts.restart(host)
    hosts.trust(hosts.hosts)


def run(
    hosts: Cluster, folder: Path, command: str, limits: Limits = LIMITS, /, **variables: Any
) -> dict[str, HostResult]:
    read = inventory.read(hosts.inventory(folder / "hosts.yml", **variables))
    results = fanout.run(read.hosts, command, limits)
    assert [result.host for result in results] == [host.name for host in read.hosts], "the inventory's order"
    return {result.host: result for result in results}


def only(results: dict[str, HostResult], name: str) -> HostResult:
    """The one host that failed; all others gave whole results."""
    assert [result.host for result in results.values() if not result.whole] == [name], results
    return results[name]


def trouble(result: HostResult) -> tuple[Trouble, str]:
    assert result.error is not None
    assert "\n" not in str(result.error)
    assert result.error.next_step or result.error.trouble in (Trouble.DEADLINE, Trouble.STOPPED)
    return result.error.trouble, str(result.error)


def test_a_plain_user_is_enough(hosts: Cluster, tmp_path: Path) -> None:
    results = run(hosts, tmp_path, "id -un; hostname", ansible_user=PLAIN_USER)
    assert [result.out for result in results.values()] == [f"{PLAIN_USER}\nh{n}\n" for n in (1, 2, 3, 4)]


def test_a_command_that_fails_is_a_result_and_is_not_repeated(hosts: Cluster, tmp_path: Path) -> None:
    results = run(hosts, tmp_path, f"echo once >> {tmp_path}/$(hostname); echo out; echo err >&2; exit 7")
    assert {(r.code, r.out, r.err, r.whole) for r in results.values()} == {(7, "out\n", "err\n", True)}
    assert [(tmp_path / name).read_text(encoding="utf-8") for name in results] == ["once\n"] * 4


def test_a_host_that_does_not_come_to_an_end(hosts: Cluster, tmp_path: Path) -> None:
    slow = "echo begun; [ $(hostname) = h3 ] && sleep 600; true"
    result = only(run(hosts, tmp_path, slow, Limits(host_s=3)), "h3")
    kind, line = trouble(result)
    assert (kind, result.out, result.code) == (Trouble.DEADLINE, "begun\n", None)
    assert line.startswith("host h3: the host's deadline of 3 s passed with the command still running")


def test_a_command_that_is_given_up_is_ended_with_all_it_started(hosts: Cluster, tmp_path: Path) -> None:
    command = "trap '' TERM; sleep 61234 & sleep 61234"
    results = run(hosts, tmp_path, command, Limits(host_s=2), ansible_user=PLAIN_USER)
    assert {trouble(result)[0] for result in results.values()} == {Trouble.DEADLINE}
    left = [process for host in hosts.hosts for process in host.running("61234")]
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not alive


def test_ctrl_c_ends_the_command_everywhere(hosts: Cluster, tmp_path: Path) -> None:
    path = hosts.inventory(tmp_path / "hosts.yml", ansible_user=PLAIN_USER)
    command = [sys.executable, "-m", "repro.cli", "hosts", "run", str(path), "--", "sleep", "61235"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])

    def running() -> list[psutil.Process]:
        return [each for host in hosts.hosts for each in host.running("61235") if each.name() == "sleep"]

    until(lambda: len(running()) == 4, "the command on every host")
    left = running()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "repro hosts: interrupted\n")
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not alive


def test_the_whole_runs_deadline_bounds_every_hosts(hosts: Cluster, tmp_path: Path) -> None:
    results = run(hosts, tmp_path, "echo begun; sleep 600", Limits(host_s=500, run_s=3))
    assert {trouble(result)[0] for result in results.values()} == {Trouble.DEADLINE}
    assert {result.out for result in results.values()} == {"begun\n"}


def test_a_host_that_hangs_while_it_is_read(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    marked = tmp_path / "begun"

    def freeze() -> None:
        while not marked.exists():
            threading.Event().wait(0.02)
        spoiled.freeze()

    freezer = threading.Thread(target=freeze)
    freezer.start()
    command = f"echo begun; [ $(hostname) = h2 ] && touch {marked} && sleep 600; true"
    result = only(run(hosts, tmp_path, command, Limits(host_s=4)), "h2")
    freezer.join()
    spoiled.thaw()
    assert (trouble(result)[0], result.out) == (Trouble.DEADLINE, "begun\n")


def test_a_host_that_hangs_while_it_is_connected_to(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    spoiled.freeze()
    kind, line = trouble(only(run(hosts, tmp_path, "true", Limits(connect_s=1, attempts=2, host_s=8)), "h2"))
    spoiled.thaw()
    assert kind is Trouble.UNREACHABLE
    assert "(2 attempts): no answer in time; check that its sshd answers" in line


def test_a_host_that_dies(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    marked = tmp_path / "begun"

    def die() -> None:
        while not marked.exists():
            threading.Event().wait(0.02)
        spoiled.die()

    killer = threading.Thread(target=die)
    killer.start()
    command = f"echo begun; [ $(hostname) = h2 ] && touch {marked} && sleep 600; true"
    result = only(run(hosts, tmp_path, command), "h2")
    killer.join()
    kind, line = trouble(result)
    assert (kind, result.out) == (Trouble.CLOSED, "begun\n")
    assert "the connection closed while the command ran" in line
    # Now nothing listens there.
    kind, line = trouble(only(run(hosts, tmp_path, "true", Limits(attempts=2, host_s=8)), "h2"))
    assert (kind, "(2 attempts): Connection refused" in line) == (Trouble.UNREACHABLE, True)


def test_a_host_that_is_cut_off_without_a_word(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    """No deadline is needed: what is sent now and then stays unacknowledged."""
    marked = tmp_path / "begun"

    def cut_off() -> None:
        while not marked.exists():
            threading.Event().wait(0.02)
        spoiled.run("ip", "link", "set", "eth0", "down")

    cutter = threading.Thread(target=cut_off)
    cutter.start()
    limits = Limits(keep_alive_s=1, unacknowledged_s=2)
    command = f"echo begun; [ $(hostname) = h2 ] && touch {marked} && sleep 600; true"
    result = only(run(hosts, tmp_path, command, limits), "h2")
    cutter.join()
    spoiled.run("ip", "link", "set", "eth0", "up")
    assert (trouble(result)[0], result.out) == (Trouble.CLOSED, "begun\n")


def test_output_without_end_fills_no_memory(hosts: Cluster, tmp_path: Path) -> None:
    results = run(hosts, tmp_path, "head -c 3000000 /dev/zero | tr '\\0' x")
    for result in results.values():
        assert (result.whole, len(result.out) < fanout.OUTPUT_LIMIT + 100) == (True, True)
        assert result.out.endswith(f"[{3_000_000 - fanout.OUTPUT_LIMIT} bytes dropped]\n")


def test_a_changed_host_key_is_refused(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    hosts.new_host_key(spoiled)
    hosts.restart(spoiled)
    known = hosts.known_hosts.read_bytes()
    kind, line = trouble(only(run(hosts, tmp_path, "true"), "h2"))
    assert kind is Trouble.HOST_KEY
    assert "is not the one in known_hosts: it is ssh-ed25519 SHA256:" in line
    assert hosts.known_hosts.read_bytes() == known


def test_an_unknown_host_key_is_never_taken(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    hosts.trust([host for host in hosts.hosts if host is not spoiled])
    known = hosts.known_hosts.read_bytes()
    kind, line = trouble(only(run(hosts, tmp_path, "true"), "h2"))
    assert (kind, "known_hosts has no key of" in line) == (Trouble.HOST_KEY, True)
    assert hosts.known_hosts.read_bytes() == known


def test_a_host_that_does_not_let_us_in(hosts: Cluster, tmp_path: Path) -> None:
    results = run(hosts, tmp_path, "true", h4={"ansible_user": "nobody-there"})
    kind, line = trouble(only(results, "h4"))
    assert (kind, "does not let us in" in line) == (Trouble.LOGIN, True)


def test_a_name_that_does_not_resolve(hosts: Cluster, tmp_path: Path) -> None:
    results = run(hosts, tmp_path, "true", h4={"ansible_host": "no-such-host.invalid"})
    assert trouble(only(results, "h4"))[0] is Trouble.UNREACHABLE


def test_banners_are_no_output(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    (spoiled.folder / "banner").write_text("AUTHORISED USERS ONLY\n" * 50, encoding="utf-8")
    # A shell that talks before each command, as one with a talkative start file does.
    (spoiled.folder / "talk").write_text('#!/bin/sh\necho "Welcome!"\nprintf "no end of line: "\n', encoding="utf-8")
    (spoiled.folder / "talk").chmod(0o755)
    force = f'ForceCommand {spoiled.folder}/talk; exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    hosts.configure(spoiled, f"Banner {spoiled.folder}/banner\n{force}")
    hosts.restart(spoiled)
    assert run(hosts, tmp_path, "echo hello")["h2"].out == "Welcome!\nno end of line: hello\n"
    # The project's own messages are told from what a shell prints.
    path = hosts.inventory(tmp_path / "hosts.yml", hyper_repro_python=sys.executable)
    ready, refused = look(inventory.read(path).hosts, LIMITS, Deadline())
    assert ([each.host.name for each in ready], refused) == (["h1", "h2", "h3", "h4"], [])


def test_a_host_without_the_project(hosts: Cluster, tmp_path: Path) -> None:
    path = hosts.inventory(
        tmp_path / "hosts.yml",
        hyper_repro_python=sys.executable,
        h2={"hyper_repro_python": "/nowhere/python"},
        h3={"hyper_repro_python": ["env", "PYTHONPATH=/nowhere", "/usr/bin/false"]},
    )
    ready, refused = look(inventory.read(path).hosts, LIMITS, Deadline())
    assert [each.host.name for each in ready] == ["h1", "h4"]
    assert [each.error.trouble for each in refused] == [Trouble.NOT_READY, Trouble.NOT_READY]
    assert "status 127 while" in refused[0].error.message
    assert "not found" in refused[0].error.message
    assert "check hyper_repro_python" in refused[0].error.next_step


def test_versions_must_be_ours(hosts: Cluster, tmp_path: Path) -> None:
    """A host with another version of the project's source, by a copy that differs in one file."""
    copy = tmp_path / "project"
    root = Path(__file__).resolve().parents[2]
    for package in ("repro", "fixes"):
        shutil.copytree(root / package, copy / package)
    with (copy / "fixes" / "mend.py").open("a", encoding="utf-8") as file:
        file.write("# another version\n")
    python = ["env", f"PYTHONPATH={copy}", sys.executable]
    path = hosts.inventory(tmp_path / "hosts.yml", hyper_repro_python=sys.executable, h3={"hyper_repro_python": python})
    ready, refused = look(inventory.read(path).hosts, LIMITS, Deadline())
    assert [each.host.name for each in ready] == ["h1", "h2", "h4"]
    assert refused[0].error.trouble is Trouble.VERSIONS
    assert "the project's source" in refused[0].error.message


def test_one_host_under_two_names_counts_once(hosts: Cluster, tmp_path: Path) -> None:
    # The same address twice is seen in the inventory; a second address of the same host only by looking.
    other = f"{hosts['h1'].address.rsplit('.', 1)[0]}.200"
    hosts["h1"].run("ip", "addr", "add", f"{other}/24", "dev", "eth0")
    hosts["h1"].run("sh", "-c", "true")
    hosts.configure(hosts["h1"], f"ListenAddress {other}\n")
    hosts.restart(hosts["h1"])
    with hosts.known_hosts.open("a", encoding="utf-8") as known:
        key = (hosts["h1"].folder / "host_key.pub").read_text(encoding="utf-8").split()
        known.write(f"[{other}]:{PORT} {key[0]} {key[1]}\n")
    path = hosts.inventory(
        tmp_path / "hosts.yml",
        hyper_repro_python=sys.executable,
        h2={"ansible_host": hosts["h1"].address},
        h3={"ansible_host": other},
    )
    read = inventory.read(path)
    results = fanout.run(read.hosts, f"echo done >> {tmp_path}/count; hostname", LIMITS)
    assert [(r.host, r.same_as, r.out) for r in results] == [
        ("h1", "", "h1\n"),
        ("h2", "h1", ""),
        ("h3", "", "h1\n"),
        ("h4", "", "h4\n"),
    ]
    ready, refused = look(read.hosts, LIMITS, Deadline())
    assert [each.host.name for each in ready] == ["h1", "h4"]
    assert [each.error.message for each in refused] == [
        f"host {name}: it is the same host as h1, whose places are used once" for name in ("h2", "h3")
    ]


def test_a_jump_host(hosts: Cluster, tmp_path: Path) -> None:
    """h4 has no way back to us, only to h1."""
    hosts["h4"].run("ip", "route", "add", "unreachable", f"{hosts.gateway}/32")
    try:
        args = f"-o UserKnownHostsFile={hosts.known_hosts} -J root@{hosts['h1'].address}:{PORT}"
        direct = run(hosts, tmp_path, "hostname", Limits(connect_s=1, attempts=1))
        assert trouble(only(direct, "h4"))[0] is Trouble.UNREACHABLE
        assert run(hosts, tmp_path, "hostname", h4={"ansible_ssh_common_args": args})["h4"].out == "h4\n"
    finally:
        hosts["h4"].run("ip", "route", "del", "unreachable", f"{hosts.gateway}/32")


@contextmanager
def doorkeeper(target: tuple[str, int], turn_away: int) -> Iterator[tuple[int, list[int]]]:
    """A server before the server: closes the first callers' connections, then lets through; its port and callers."""
    callers: list[int] = []

    def through(one: socket.socket, other: socket.socket) -> None:
        with one, other:
            while data := one.recv(1 << 16):
                other.sendall(data)

    def serve(door: socket.socket) -> None:
        while True:
            try:
                caller, _ = door.accept()
            except OSError:
                return
            callers.append(1)
            if len(callers) <= turn_away:
                caller.close()
                continue
            beyond = socket.create_connection(target)
            for pair in ((caller, beyond), (beyond.dup(), caller.dup())):
                threading.Thread(target=through, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=serve, args=(door,), daemon=True).start()
        yield door.getsockname()[1], callers
        door.shutdown(socket.SHUT_RDWR)


def test_connecting_is_tried_again_and_nothing_else(hosts: Cluster, tmp_path: Path) -> None:
    with doorkeeper((hosts["h3"].address, PORT), turn_away=2) as (port, callers):
        key = (hosts["h3"].folder / "host_key.pub").read_text(encoding="utf-8").split()
        with hosts.known_hosts.open("a", encoding="utf-8") as known:
            known.write(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
        own = {"ansible_host": "127.0.0.1", "ansible_port": port}
        result = run(hosts, tmp_path, f"echo x >> {tmp_path}/$(hostname)-count; exit 255", h3=own)["h3"]
        assert (result.code, result.whole, len(callers)) == (255, True, 3)
        assert (tmp_path / "h3-count").read_text(encoding="utf-8") == "x\n"


def test_a_server_that_never_says_a_word(hosts: Cluster, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        own = {"ansible_host": "127.0.0.1", "ansible_port": mute.getsockname()[1]}
        kind, line = trouble(only(run(hosts, tmp_path, "true", Limits(connect_s=1, attempts=1), h3=own), "h3"))
    assert (kind, "no answer in time" in line) == (Trouble.UNREACHABLE, True)


def test_the_verb_gives_one_line_a_failing_host(hosts: Cluster, tmp_path: Path, spoiled: Host) -> None:
    spoiled.die()
    path = hosts.inventory(tmp_path / "hosts.yml")
    command = [sys.executable, "-m", "repro.cli", "hosts", "run", "--json", str(path), "--", "hostname"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["host"], each["out"]) for each in told] == [
        ("h1", "h1\n"),
        ("h2", ""),
        ("h3", "h3\n"),
        ("h4", "h4\n"),
    ]
    assert (done.returncode, told[1]["error"]["kind"]) == (4, "unreachable")


def test_files_go_out_and_folders_come_back(hosts: Cluster, tmp_path: Path) -> None:
    read = inventory.read(hosts.inventory(tmp_path / "hosts.yml", hyper_repro_python=sys.executable))
    source = tmp_path / "file"
    source.write_bytes(b"\0\1" * 500_000)
    results = fanout.put(read.hosts, source, "copy", LIMITS)
    assert all(result.whole for result in results)
    back = fanout.get(read.hosts, "~", tmp_path / "back", LIMITS)
    assert all(result.whole for result in back), back
    assert [(tmp_path / "back" / name / "copy").read_bytes() == source.read_bytes() for name in ("h1", "h4")] == [
        True
    ] * 2
