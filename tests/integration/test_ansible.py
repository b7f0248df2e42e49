"""Playbooks on test hosts with different faults: preflight, check, converge, lost host, idempotence, verify, teardown.

The tests are one sequence, in this order; each stands on what the one before it left.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible_hosts
import ascend_tree
import docker
import pytest
import testinfra
import yaml
from ansible_hosts import OPEN_EULER, Hosts, Spec
from ascend_tree import variant

from repro import cli

REPOSITORY = Path(__file__).parents[2]
OTHERS_JSON = '{"log-driver": "json-file",\n     "log-opts": {"max-size":"10m"}, "debug" : false}\n'
OTHERS_LIMITS = "* - nofile 4096\n"
APPORT = "|/usr/share/apport/apport %p %s"
SPECS = (
    Spec(
        "a2-well",
        files=(("/etc/docker/daemon.json", OTHERS_JSON), ("/etc/security/limits.d/10-others.conf", OTHERS_LIMITS)),
        reserved_ports="8080,9000-9002",
        groups=("rack_a",),
    ),
    Spec("a3-well", ascend_tree.A3, files=(("/etc/os-release", OPEN_EULER),), groups=("rack_b",)),
    Spec("a2-alarm", ascend_tree.ALARM, full_disk=True, groups=("rack_a",)),
    Spec("a2-mismatch", ascend_tree.MISMATCH, clock_s=120, groups=("rack_a",)),
    Spec("a2-held", variant(ascend_tree.HELD, tls=True), core_pattern=APPORT, groups=("rack_a",)),
)
LOST = "a2-held"
NAMES = {spec.name for spec in SPECS}
UNCHANGED: dict[str, object] = {name: {} for name in NAMES}
RUNTIME = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"


@dataclass
class Play:
    """What a run of a playbook printed."""

    code: int
    text: str

    @property
    def changed(self) -> set[tuple[str, str]]:
        """(host, task) of everything that was, or would be, changed; handlers too."""
        found, task = set(), ""
        for line in self.text.splitlines():
            if match := re.match(r"(?:TASK|RUNNING HANDLER) \[(.*)\]", line):
                task = match.group(1)
            elif match := re.match(r"changed: \[([^\]]+)\]", line):
                found.add((match.group(1), task))
        return found

    def count(self, host: str, word: str) -> int:
        """A number of the recap."""
        match = re.search(rf"^{host}\s.*\b{word}=(\d+)", self.text, re.MULTILINE)
        assert match, self.text
        return int(match.group(1))


class Site:
    """The hosts, and playbooks on them."""

    def __init__(self, hosts: Hosts, folder: Path, archive: Path) -> None:
        self.hosts = hosts
        self.folder = folder
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        self.variables: dict[str, object] = {
            "deploy_serial": "100%",
            "deploy_max_fail_percentage": 50,
            "container_engine_settings": {"live-restore": True, "log-opts": {"max-size": "99m", "max-file": "3"}},
            "container_engine_members": [ansible_hosts.USER],
            "teardown_restart_engine": "{{ inventory_hostname != 'a2-alarm' }}",
            # Not above what a container's root may set: it is not root of the machine.
            "limits_values": {"nofile": "2000", "core": "unlimited"},
            # The engine on a full disk takes no image, and that is not what is tested with it.
            "image_archive": str(archive),
            "image_sha256": digest,
            "image_name": "{{ '' if inventory_hostname == 'a2-alarm' else 'hyper-repro-test:tiny' }}",
        }
        # The row of images/versions.yaml that this is about; the table itself has tests of its own.
        self.versions = folder / "versions.yaml"
        row = {"mindspore": "2.10.0", "cann": "9.1.0", "hdk": "26.1.0"}
        self.versions.write_text(yaml.safe_dump({"default": "2.10.0", "rows": [row]}))
        self.variables["preflight_versions"] = str(self.versions)
        self.before: dict[str, dict[str, str]] = {}
        self.would: set[tuple[str, str]] = set()

    def play(self, playbook: str, *options: str, **variables: object) -> Play:
        """Run a playbook on all hosts."""
        file = self.folder / "variables.yml"
        file.write_text(yaml.safe_dump({**self.variables, **variables}))
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        done = subprocess.run(
            [program, f"playbooks/{playbook}.yml", "-i", str(self.hosts.inventory), "-e", f"@{file}", *options],
            cwd=REPOSITORY,
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
                "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.hosts.folder / "cp"),
                "ANSIBLE_NOCOLOR": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Play(done.returncode, done.stdout + done.stderr)

    def trees(self) -> dict[str, dict[str, str]]:
        """The file tree of every host."""
        return {name: self.hosts.tree(name) for name in self.hosts.containers}


@pytest.fixture(scope="module")
def site(docker_client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("ansible")
    tiny = io.BytesIO()
    with tarfile.open(fileobj=tiny, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("nothing"))
    docker_client.api.import_image_from_data(tiny.getvalue(), repository="hyper-repro-test", tag="tiny")
    saved = folder / "tiny.tar"
    with saved.open("wb") as file:
        for piece in docker_client.images.get("hyper-repro-test:tiny").save(named=True):
            file.write(piece)
    docker_client.images.remove("hyper-repro-test:tiny")
    with ansible_hosts.hosts(docker_client, SPECS, "172.31.76.0/24") as hosts:
        made = Site(hosts, folder, saved)
        made.before = made.trees()
        yield made


def difference(one: dict[str, str], other: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    return {
        path: (one.get(path), other.get(path)) for path in one.keys() | other.keys() if one.get(path) != other.get(path)
    }


def test_what_a_command_line_gives_is_text_and_is_taken_as_what_it_says() -> None:
    words = (
        "preflight_strict=false",
        "preflight_everything=false",
        "preflight_shm_gib=0.001",
        "preflight_skew_warn_s=60",
    )
    given = [*words, f"ansible_python_interpreter={sys.executable}"]
    command = ["-i", "localhost,", "-c", "local", *(word for each in given for word in ("-e", each))]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "playbooks/preflight.yml", *command],
        cwd=REPOSITORY,
        env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " ok    " not in done.stdout


FAULTS = {
    "a2-well": set(),
    "a3-well": set(),
    "a2-alarm": {"health.alarm", "ecc.errors", "disk.full"},
    "a2-mismatch": {"cann.driver", "clock.far"},
    "a2-held": set(),
}
# Of every host, before anything is deployed.
BARE = {"users.none", "tls.mixed"}


def test_preflight_names_the_fault_of_each_host_and_changes_nothing(site: Site) -> None:
    report = site.folder / "report"
    play = site.play("preflight", preflight_report=str(report))
    assert play.code == 2, play.text
    assert play.changed == set()
    found = {}
    for name in NAMES:
        data = json.loads((report / f"{name}.json").read_text())
        found[name] = {one["fault"]: one for one in data["findings"] if one["fault"]}
        fails = {fault for fault, one in found[name].items() if one["level"] == "fail"}
        assert fails == FAULTS[name] | BARE, name
        assert all(one["seen"] and one["advice"] for one in found[name].values())
    assert found["a2-held"]["holders.some"]["advice"].endswith("ASCEND_RT_VISIBLE_DEVICES=2,3,4,5,6,7")
    assert found["a2-held"]["core.pipe"]["seen"] == APPORT
    assert found["a2-well"]["tls.mixed"]["seen"].endswith("otherwise on a2-held")
    assert found["a2-well"]["ports.unreserved"]["seen"] == "60000-60015; reserved: 8080,9000-9002"
    assert found["a2-mismatch"]["clock.far"]["seen"].startswith("+1")
    assert "5 hosts: 0 ok, 0 warn, 5 fail" in play.text
    assert "<td" in (report / "preflight.html").read_text()
    assert json.loads((report / "a3-well.json").read_text())["look"]["system"]["id"] == "openEuler"
    assert {name: difference(tree, site.before[name]) for name, tree in site.trees().items()} == UNCHANGED
    assert [site.hosts.run(name, "find / -xdev -name ran-twice-at-once") for name in NAMES] == [""] * len(NAMES)


def test_doctor_finds_the_same_over_ssh(site: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    table = ["--versions", str(site.versions)]
    code = cli.main(["doctor", "--hosts", str(site.hosts.inventory), "--json", "--html", str(page), *table])
    data = json.loads(capsys.readouterr().out)["hosts"]
    assert code == 1
    for name in NAMES:
        ours = json.loads((site.folder / "report" / f"{name}.json").read_text())["findings"]
        assert {one["fault"] for one in data[name]["findings"]} == {one["fault"] for one in ours}, name
    assert page.read_text().count('class="host"') == len(NAMES)


def test_check_mode_changes_nothing(site: Site) -> None:
    play = site.play("deploy", "--check", "--diff")
    assert play.code == 0, play.text
    assert '+  "live-restore": true' in play.text
    site.would = play.changed
    assert {host for host, _ in site.would} == NAMES
    assert {name: difference(tree, site.before[name]) for name, tree in site.trees().items()} == UNCHANGED


def test_deploy_does_what_check_said_and_a_lost_host_stops_no_other(site: Site) -> None:
    network = site.hosts.network
    network.disconnect(site.hosts.containers[LOST])
    try:
        play = site.play("deploy")
    finally:
        network.connect(site.hosts.containers[LOST], ipv4_address=site.hosts.addresses[LOST])
    assert play.count(LOST, "unreachable") == 1
    assert play.code == 4, play.text
    assert play.changed == {(host, task) for host, task in site.would if host != LOST}
    assert "kept as they are: log-opts.max-size" in play.text


def test_a_second_run_does_the_lost_host_and_changes_no_other(site: Site) -> None:
    play = site.play("deploy")
    assert play.code == 0, play.text
    assert play.changed == {(host, task) for host, task in site.would if host == LOST}
    assert {name: play.count(name, "changed") for name in NAMES - {LOST}} == dict.fromkeys(NAMES - {LOST}, 0)


def test_a_third_run_changes_nothing_at_all(site: Site) -> None:
    play = site.play("deploy", deploy_serial=[1, "50%", "100%"])
    assert play.code == 0, play.text
    assert play.changed == set()
    assert {play.count(name, "changed") for name in NAMES} == {0}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_hosts_are_as_wanted(site: Site, name: str, docker_host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    host = testinfra.get_host(f"docker://{site.hosts.containers[name].id}")
    driver = host.user("HwHiAiUser")
    assert (driver.uid, driver.gid, driver.shell) == (1000, 1000, "/usr/sbin/nologin")
    assert {"HwHiAiUser", "docker"} <= set(host.user(ansible_hosts.USER).groups)
    assert host.file("/etc/security/limits.d/90-hyper-repro.conf").contains("^\\* - core unlimited$")
    assert host.file("/var/lib/hyper-repro/runs").mode == 0o1777
    assert host.service("docker").is_running
    reserved = host.file("/proc/sys/net/ipv4/ip_local_reserved_ports").content_string.strip()
    assert reserved == ("8080,9000-9002,60000-60015" if name == "a2-well" else "60000-60015")
    pattern = host.file("/proc/sys/kernel/core_pattern").content_string.strip()
    assert pattern == (APPORT if name == LOST else "/var/lib/hyper-repro/cores/core.%e.%P.%t")
    settings = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert settings["live-restore"] is True
    assert host.check_output("docker info --format '{{.LiveRestoreEnabled}}'") == "true"
    if name == "a2-well":
        # Theirs stays theirs, ours stands beside it.
        assert settings["log-opts"] == {"max-size": "10m", "max-file": "3"}
        assert settings["debug"] is False
        assert host.file("/etc/security/limits.d/10-others.conf").content_string == OTHERS_LIMITS
    if name != "a2-alarm":
        assert (
            host.check_output("docker image inspect --format '{{.RepoTags}}' hyper-repro-test:tiny")
            == "[hyper-repro-test:tiny]"
        )
        assert host.check_output("find /var/tmp -name '*.tar'") == ""


def test_preflight_has_less_to_say_now(site: Site) -> None:
    report = site.folder / "after"
    play = site.play("preflight", "--limit", "a3-well", preflight_everything=True, preflight_report=str(report))
    assert play.code == 0, play.text
    # A new login has the new limits.
    assert json.loads((report / "a3-well.json").read_text())["look"]["limits"]["NOFILE"] == [2000, 2000]
    for words in (
        "HwHiAiUser 1000:1000, ops may use it",
        "60000-60015 reserved",
        "/var/lib/hyper-repro/cores/core.%e.%P.%t",
    ):
        assert words in play.text


def test_collect_brings_logs_and_names_cores(site: Site) -> None:
    site.hosts.run(
        "a2-well",
        "mkdir -p /var/lib/hyper-repro/runs/1/rank-0 && echo trouble >/var/lib/hyper-repro/runs/1/rank-0/stderr.log",
    )
    site.hosts.run("a2-well", "echo core >/var/lib/hyper-repro/cores/core.python.1.2")
    target = site.folder / "collected"
    play = site.play("collect", "--limit", "a2-well", collect_folder=str(target))
    assert play.code == 0, play.text
    assert (target / "a2-well/var/lib/hyper-repro/runs/1/rank-0/stderr.log").read_text() == "trouble\n"
    data = json.loads((target / "a2-well" / "host.json").read_text())
    assert data["cores"] == {"/var/lib/hyper-repro/cores/core.python.1.2": 5}
    assert "910B3" in data["npu_smi"]
    site.hosts.run("a2-well", "rm -r /var/lib/hyper-repro/runs/1 /var/lib/hyper-repro/cores/core.python.1.2")


def test_teardown_leaves_each_host_as_it_was(site: Site) -> None:
    would = site.play("teardown", "--check").changed
    play = site.play("teardown")
    assert play.code == 0, play.text
    assert play.changed == would
    assert "What was left, and why" not in [task for _, task in play.changed]
    assert {name: difference(tree, site.before[name]) for name, tree in site.trees().items()} == UNCHANGED
    for spec in SPECS:
        assert site.hosts.run(spec.name, "cat /proc/sys/kernel/core_pattern").strip() == spec.core_pattern
        assert (
            site.hosts.run(spec.name, "cat /proc/sys/net/ipv4/ip_local_reserved_ports").strip() == spec.reserved_ports
        )
        assert site.hosts.run(spec.name, "docker image ls -q") == ""
        if spec.name != "a2-alarm":
            assert site.hosts.run(spec.name, "docker info --format '{{.LiveRestoreEnabled}}'").strip() == "false"
    assert site.play("teardown").changed == set()


def test_teardown_leaves_what_others_have_changed_since(site: Site) -> None:
    host, tags = "a2-well", ("--limit", "a2-well", "--tags", "container_engine,limits,repro_agent")
    assert site.play("deploy", *tags).code == 0
    edited = json.loads(site.hosts.run(host, "cat /etc/docker/daemon.json"))
    edited["dns"] = ["192.0.2.1"]
    edited["log-opts"]["max-file"] = "7"
    site.hosts.run(host, f"echo '{json.dumps(edited)}' >/etc/docker/daemon.json")
    site.hosts.run(
        host,
        "echo '* - nproc 7' >>/etc/security/limits.d/90-hyper-repro.conf; touch /var/lib/hyper-repro/runs/evidence",
    )
    play = site.play("teardown", "--limit", host)
    assert play.code == 0, play.text
    left: Any = json.loads(site.hosts.run(host, "cat /etc/docker/daemon.json"))
    assert left == {**json.loads(OTHERS_JSON), "log-opts": {"max-size": "10m", "max-file": "7"}, "dns": ["192.0.2.1"]}
    assert "file /etc/security/limits.d/90-hyper-repro.conf: others have changed it since" in play.text
    assert "folder /var/lib/hyper-repro/runs: not empty: evidence" in play.text
    assert site.hosts.run(host, "ls /var/lib/hyper-repro/runs").strip() == "evidence"


def test_what_others_own_is_refused_in_one_line(site: Site) -> None:
    host = "a3-well"
    site.hosts.run(host, "echo theirs >/etc/security/limits.d/90-hyper-repro.conf; groupadd --gid 1000 ubuntu")
    for tags, words in (
        ("limits", "was not written by these playbooks; move it away or name another"),
        ("users", "gid 1000 belongs to ubuntu; it is not renumbered here"),
    ):
        play = site.play("deploy", "--limit", host, "--tags", tags)
        assert play.code == 2
        assert words in " ".join(play.text.split())
    assert site.hosts.run(host, "cat /etc/security/limits.d/90-hyper-repro.conf") == "theirs\n"


def test_an_archive_that_is_not_what_it_should_be_is_not_loaded(site: Site) -> None:
    play = site.play("deploy", "--limit", "a3-well", "--tags", "image", image_sha256="0" * 64)
    assert play.code == 2
    assert f"not {'0' * 64}; copy it again" in " ".join(play.text.split())
    assert site.hosts.run("a3-well", "docker image ls -q") == ""


def test_a_named_package_is_installed_once_and_the_runtime_registered(site: Site, tmp_path: Path) -> None:
    host = "a2-mismatch"
    package = tmp_path / "driver.run"
    package.write_text(
        '#!/bin/sh\n[ "$*" = "--full --install-for-all" ] || exit 9\n'
        "sed -i 's/24.1.rc3/26.1.0/' /usr/local/Ascend/driver/version.info\n"
    )
    site.hosts.run(host, f"mkdir -p {Path(RUNTIME).parent} && install -m 755 /bin/true {RUNTIME}")
    named = {
        "name": "driver",
        "package": str(package),
        "sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
        "version": "26.1.0",
        "version_file": "/usr/local/Ascend/driver/version.info",
        "arguments": ["--full", "--install-for-all"],
    }
    tags = ("--limit", host, "--tags", "ascend_runtime")
    assert "24.1.rc3" in site.hosts.run(host, "cat /usr/local/Ascend/driver/version.info")
    not_said = site.play("deploy", *tags, ascend_runtime_packages=[named])
    assert not_said.code == 0, not_said.text
    assert "24.1.rc3" in site.hosts.run(host, "cat /usr/local/Ascend/driver/version.info")
    assert "ascend" in site.hosts.run(host, "docker info --format '{{json .Runtimes}}'")
    would = site.play("deploy", *tags, "--check", ascend_runtime_packages=[named], ascend_runtime_install=True)
    first = site.play("deploy", *tags, ascend_runtime_packages=[named], ascend_runtime_install=True)
    assert first.code == 0, first.text
    assert first.changed == would.changed
    assert "package_version=26.1.0" in site.hosts.run(host, "cat /usr/local/Ascend/driver/version.info")
    again = site.play("deploy", *tags, ascend_runtime_packages=[named], ascend_runtime_install=True)
    assert (again.code, again.changed) == (0, set())
    gone = site.play("teardown", "--limit", host)
    assert "it is not taken back" in gone.text
    assert "ascend" not in site.hosts.run(host, "docker info --format '{{json .Runtimes}}'")
