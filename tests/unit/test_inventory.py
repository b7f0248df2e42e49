"""The inventory: what Ansible reads from it is what we read, and what is wrong is said with its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from repro.errors import UsageError
from repro.hosts.inventory import Inventory, read

MIXED = """\
all:
  vars:
    ansible_user: ops
    ansible_ssh_private_key_file: /keys/ops
  children:
    racks:
      children:
        rack_b:
          vars: {ascend_rack: b}
          hosts:
            a2-[01:03]:
            a3-x:
              ansible_host: 10.1.0.9
              ansible_port: "2222"
        rack_a:
          vars: {ascend_rack: a}
          hosts: {a3-y: }
    a2:
      vars: {ascend_chip: 910b}
      hosts:
        a2-[01:03]:
    a3:
      vars:
        ascend_chip: a3
        ansible_ssh_common_args: -o ProxyJump=ops@gate:2200,inner
      hosts:
        a3-x: {ascend_dies: 14}
        a3-y:
"""


def given(tmp_path: Path, text: str = MIXED) -> Path:
    path = tmp_path / "hosts.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_hosts_in_order_with_what_each_has(tmp_path: Path) -> None:
    inventory = read(given(tmp_path))
    assert [host.name for host in inventory.hosts] == ["a2-01", "a2-02", "a2-03", "a3-x", "a3-y"]
    x = inventory.hosts[3]
    assert (x.address, x.port, x.user, x.key, x.chip, x.dies, x.rack) == (
        "10.1.0.9", 2222, "ops", Path("/keys/ops"), "a3", 14, "b",
    )  # fmt: skip
    assert x.jump == ("ops@gate:2200", "inner")
    assert x.where.endswith("hosts.yml:12")
    assert inventory.hosts[0].dies == 8
    assert inventory.hosts[0].groups == ("a2", "racks", "rack_b")
    assert any("14 dies, where a full a3 host has 16" in line for line in inventory.warnings)


def test_select(tmp_path: Path) -> None:
    inventory = read(given(tmp_path))
    assert [host.name for host in inventory.select("a3,a2-02")] == ["a2-02", "a3-x", "a3-y"]
    assert inventory.select("all") == inventory.hosts
    with pytest.raises(UsageError, match=r"no host or group 'rack_c'.*did you mean 'rack_a'|'rack_b'"):
        inventory.select("rack_c")


def by_ansible(path: Path) -> dict[str, dict[str, object]]:
    command = [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(path), "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"})
    found: dict[str, dict[str, object]] = json.loads(done.stdout)["_meta"]["hostvars"]
    return found


def ours(inventory: Inventory) -> dict[str, dict[str, object]]:
    return {host.name: dict(host.variables) for host in inventory.hosts}


def test_variables_win_as_in_ansible(tmp_path: Path) -> None:
    path = given(tmp_path, MIXED + "        b[c:e:2]-[8:10]: {x: 1}\n")
    for name, text in {
        "group_vars/all.yml": "ascend_rack: of-all\nfrom_all: 1\n",
        "group_vars/racks/one.yml": "ascend_rack: of-racks\n",
        "group_vars/a2": "deep: [1, {two: 2}]\n",
        "host_vars/a3-y.yaml": "ascend_rack: own\n",
        "host_vars/a2-01.yml": "---\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert ours(read(path)) == by_ansible(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ":1: the file is empty"),
        ("- a\n", ":1: the file: must be keys and values"),
        ("all:\n  hosts:\n    - a\n", ":2: all.hosts: must be keys and values"),
        ("all:\n  host: {a: }\n", ":2: all.host: unknown; a group has hosts, children and vars"),
        ("all: {hosts: {}}\n", "no hosts in it"),
        ("all:\n  hosts:\n    a: {}\n    a: {}\n", ":4: a: given twice"),
        ("all:\n  hosts:\n    a[3:1]:\n", ":3: all.hosts.a[3:1]: [3:1] is an empty or unreadable range"),
        ("all:\n  hosts:\n    a[3-1]:\n", ":3: all.hosts.a[3-1]: 'a[3-1]': a range is written [01:12]"),
        ("all:\n  hosts:\n    a:\n      ansible_port: ssh\n", ":4: a: ansible_port: 'ssh' is not a whole number"),
        (
            "all:\n  vars:\n    ascend_chip: A2\n  hosts: {a: }\n",
            ":3: a: ascend_chip: 'A2' is not one of 910b, a3; Atlas",
        ),
        ("all:\n  hosts:\n    a: {ascend_die: 8}\n", ":3: a: ascend_die: unknown; known are"),
        ("all:\n  hosts:\n    a: {ascend_dies: 0}\n", ":3: a: ascend_dies: 0 is not a whole number from 1"),
        ("all:\n  hosts:\n    a:\n      ansible_ssh_pass: x\n", ":4: a: ansible_ssh_pass: a password in clear text"),
        ("all:\n  hosts:\n    a: {ansible_become_password: x}\n", "a password in clear text; use a key and an agent"),
        ("all:\n  hosts:\n    a: {ansible_host: '{{ b }}'}\n", ":3: a: ansible_host: a template or vaulted value"),
        ("all:\n  hosts:\n    a: {ansible_connection: winrm}\n", "'winrm' is neither ssh nor local"),
        (
            "all:\n  hosts:\n    a: {ansible_ssh_common_args: -o StrictHostKeyChecking=no}\n",
            "host keys must be checked",
        ),
        ("all:\n  hosts:\n    a: {ansible_ssh_extra_args: -o ProxyCommand=x}\n", "use -o ProxyJump="),
        ('all:\n  hosts:\n    a: {ansible_ssh_extra_args: "\'"}\n', "not words of a command line"),
        ("all:\n  children: {b: {children: {b: }}}\n", "group b is its own child"),
    ],
)
def test_what_is_wrong_has_its_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(given(tmp_path, text))
    assert words in str(caught.value)


def test_a_vaulted_password_is_left_alone(tmp_path: Path) -> None:
    vaulted = (
        "all:\n  hosts:\n    a:\n      ansible_become_pass: !vault |\n        $ANSIBLE_VAULT;1.1;AES256\n        61\n"
    )
    assert read(given(tmp_path, vaulted)).hosts[0].name == "a"


@pytest.mark.parametrize("name", ["hosts.ini", "hosts"])
def test_other_formats_are_sent_to_ansible(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("[all]\na\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"ansible-inventory -i .* --list --yaml"):
        read(tmp_path / name)


def test_two_names_of_one_host_and_root(tmp_path: Path) -> None:
    text = (
        "all:\n  hosts:\n    a: {ansible_host: h, ansible_user: root}\n    b: {ansible_host: h, ansible_user: root}\n"
    )
    warnings = "\n".join(read(given(tmp_path, text)).warnings)
    assert "hosts.yml:4: b is the same host as a: h:22" in warnings
    assert "a: logs in as root" in warnings
    assert "ascend_chip is not set" in warnings
