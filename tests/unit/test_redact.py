"""Planted names and secrets of every kind, in every shape in which evidence holds them; and what must stay."""

from __future__ import annotations

import json

import pytest

from repro.collect.redact import Pseudonyms, Redactor


def redactor(names: Pseudonyms | None = None) -> Redactor:
    return Redactor(
        names or Pseudonyms(),
        hosts=["trainer17", "trainer17.cluster.example"],
        users=["wanglei", "root"],
        roots={"/data/wanglei/hyper": "/project", "/opt/py311": "/python"},
        hide=["Falcon"],
    )


# What must go, in a text that holds it.
PLANTED = [
    ("trainer17", "host trainer17 went away"),
    ("trainer17.cluster.example", "connect to trainer17.cluster.example:22"),
    ("TRAINER17", "Traceback on TRAINER17"),
    ("wanglei", "chown wanglei file"),
    ("wanglei", "run of-wanglei in pytest-of-wanglei/pytest-0"),
    ("alice", "alice@gateway: permission denied"),
    ("gateway", "alice@gateway: permission denied"),
    ("mallory", 'File "/home/mallory/train.py", line 3, in main'),
    ("mallory", "/Users/mallory/train.py"),
    ("/data/wanglei/hyper", 'File "/data/wanglei/hyper/repro/plan.py", line 9'),
    ("pangu", '  File "/share/pangu/secretproj/run/train.py", line 7, in step'),
    ("secretproj", '  File "/share/pangu/secretproj/run/train.py", line 7, in step'),
    ("db3.prod.internal", "resolving db3.prod.internal failed"),
    ("Falcon", "project Falcon"),
    ("192.168.17.4", "tcp://192.168.17.4:8118"),
    ("10.0.0.7", "10.0.0.7,10.0.0.8"),
    ("fe80::1ff:fe23:4567:890a", "bound to fe80::1ff:fe23:4567:890a%eth0"),
    ("2001:db8:0:1:1:1:1:1", "[2001:db8:0:1:1:1:1:1]:22"),
    ("52:54:00:ab:cd:ef", "link/ether 52:54:00:ab:cd:ef brd"),
    ("52-54-00-ab-cd-ef", "52-54-00-ab-cd-ef"),
    ("hunter2xyz", "password=hunter2xyz"),
    ("hunter2xyz", '"db_password": "hunter2xyz"'),
    ("hunter2xyz", "--api-key hunter2xyz --steps 3"),
    ("hunter2xyz", "https://bob:hunter2xyz@git.example/x.git"),
    ("hunter2xyz", "export GITCODE_TOKEN=hunter2xyz"),
    ("abcdefgh12345678", "Authorization: Bearer abcdefgh12345678"),
    ("ghp_abcdefghijklmnop1234", "remote: ghp_abcdefghijklmnop1234"),
    ("hf_abcdefghijklmnop1234", "login hf_abcdefghijklmnop1234"),
    ("AKIAABCDEFGHIJKLMNOP", "key AKIAABCDEFGHIJKLMNOP"),
    ("eyJhbGciOiJIUzI1NiJ9", "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"),
    ("MIIEow", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----"),
]


@pytest.mark.parametrize(("secret", "text"), PLANTED)
def test_what_names_somebody_goes(secret: str, text: str) -> None:
    assert secret in text
    assert secret not in redactor().text(text)
    shown = json.dumps(redactor().data({"lines": [text, {"why": text}]}))
    assert secret not in shown


@pytest.mark.parametrize(("secret", "text"), PLANTED)
def test_a_second_time_changes_nothing(secret: str, text: str) -> None:
    once = redactor().text(text)
    assert redactor().text(once) == once
    assert secret not in once


STAYS = [
    "RuntimeError: Not support copy between src:meta and dst:CPU",
    "mindspore/core/device_address/device_address.cc:73 SyncCopy",
    "127.0.0.1:8118 and ::1 and 0.0.0.0",
    "AscendResManager::CreateEventWithFlag <- CommHandle::CreateEvent",
    "std::map<int, int>::find(a::b::c)",
    'File "/usr/lib/python3.11/threading.py", line 982, in run',
    "2026-11-30T20:39:24.995 12:34:56",
    "mindspore 2.10.0, CANN 9.1.0, driver 26.1.0",
    "https://gitcode.com/mindspore/hyper-parallel/issues/134",
    "{'tp': 2, 'ep': 2, 'fsdp': 2} rank-0/stderr.log",
    "token: <unset>",
    "0x00007fcfe90a8f4f in raise () from /lib/x86_64-linux-gnu/libc.so.6",
]


@pytest.mark.parametrize("text", STAYS)
def test_what_tells_of_the_fault_stays(text: str) -> None:
    assert redactor().text(text) == text


def test_the_last_parts_of_a_path_stay() -> None:
    assert redactor().text('File "/data/wanglei/hyper/repro/plan.py"') == 'File "/project/repro/plan.py"'
    assert redactor().text('File "/share/pangu/x/run/train.py"') == 'File "/path-1/run/train.py"'


def test_arguments_and_keys_that_name_a_secret() -> None:
    data = {
        "argv": ["repro", "run", "134", "--token", "hunter2xyz", "--out", "runs"],
        "environment": {"MY_SECRET": "hunter2xyz", "GLOG_v": "3"},
        "steps": 5,
    }
    shown = redactor().data(data)
    assert "hunter2xyz" not in json.dumps(shown)
    assert shown["argv"][:4] == ["repro", "run", "134", "--token"]
    assert shown["environment"]["GLOG_v"] == "3"
    assert shown["steps"] == 5


def test_a_host_of_our_own_files_is_one_however_short_its_name() -> None:
    shown = redactor().data({"node": "x", "ranks": [{"host": "local", "rank": 0}, {"host": "y"}]})
    assert shown == {"node": "host-1", "ranks": [{"host": "local", "rank": 0}, {"host": "host-2"}]}


def test_the_same_name_has_the_same_pseudonym_everywhere_and_later() -> None:
    names = Pseudonyms()
    first = redactor(names).text("trainer17 asks 10.0.0.7")
    again = redactor(Pseudonyms(json.loads(json.dumps(names.known)))).data(["10.0.0.7", "10.0.0.8", "TRAINER17"])
    assert first == "host-1 asks ip-1"
    assert again == ["ip-1", "ip-2", "host-1"]
