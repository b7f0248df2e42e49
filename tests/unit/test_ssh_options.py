"""The options of engine ssh: what implies it, what does not go with another engine, jump hosts as they are written."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from repro.cli import main
from repro.engines import choice
from repro.engines.ssh.connection import _hop, _port_of, python_command
from repro.hosts.inventory import Host


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    choice.prepare_parser(parser)
    return parser.parse_args(arguments)


def test_hosts_imply_the_engine() -> None:
    assert choice.name_of(parsed()) == "local"
    assert choice.name_of(parsed("--hosts", "inventory.yml")) == "ssh"
    assert choice.name_of(parsed("--engine", "ssh")) == "ssh"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "ssh"), "--engine ssh: no hosts; name them with --hosts inventory.yml"),
        (("--engine", "local", "--hosts", "x.yml"), "--engine local takes no --hosts"),
        (("--nodes", "2"), "--engine local takes no --nodes; engines ssh and slurm have several"),
        (("--hosts", "/nowhere/x.yml"), "/nowhere/x.yml"),
        (("--hosts", "x.yml", "--nodes", "0"), "'0' is not a whole number from 1 on"),
    ],
)
def test_what_does_not_fit_is_a_usage_error(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "134", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "address", "port", "user"),
    [
        ("gate", "gate", None, "worker"),
        ("me@gate:2222", "gate", 2222, "me"),
        ("gate:22", "gate", 22, "worker"),
        ("me@gate", "gate", None, "me"),
    ],
)
def test_jump_hosts_as_ssh_writes_them(text: str, address: str, port: int | None, user: str) -> None:
    hop = _hop(text, Host("h", "10.0.0.9", user="worker"))
    assert (hop.address, _port_of(text), hop.user) == (address, port, user)


def test_the_interpreter_on_a_host() -> None:
    def command(python: object) -> str:
        return python_command(Host("h", "h", variables={"hyper_repro_python": python}), "a.b", "x y")

    assert command("~/my venv/bin/python") == """exec "$HOME"/'my venv/bin/python' -m a.b 'x y'"""
    assert command(["docker", "run", "-i", "image", "python"]) == "exec docker run -i image python -m a.b 'x y'"
    assert python_command(Host("h", "h"), "a.b") == "exec /opt/hyper-repro/bin/python -m a.b"


def test_the_inventory_is_read_before_anything_is_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text("all: {hosts: {h1: {ansible_password: secret}}}\n", encoding="utf-8")
    assert main(["hosts", "check", str(path)]) == 2
    assert "a password in clear text" in capsys.readouterr().err
