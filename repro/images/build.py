"""Carries out an image build: context, secrets of the site, and a Docker client that has BuildKit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from repro.errors import InfraError, UsageError
from repro.images.plan import NO_LIBRARY, Build
from repro.upstream.checkout import git, open_checkout

# Docker's own client had BuildKit inside up to this version; later ones need the plugin buildx.
LAST_WITH_BUILDKIT_INSIDE = 22
# Passed on where they are set: Docker keeps these out of the history by itself.
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_PIP = {"PIP_INDEX_URL": "index-url", "PIP_EXTRA_INDEX_URL": "extra-index-url", "PIP_TRUSTED_HOST": "trusted-host"}
_CA = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_IN_A_BUILD = "/run/secrets/ca_bundle"


@dataclass(frozen=True)
class Site:
    """What only this site knows: files that go into a build as secrets, and its network.

    Attributes:
        pip_conf: A pip.conf; without one, what the PIP_* variables of the environment say.
        ca_bundle: PEM certificates; without one, what PIP_CERT and its like name.
        apt_sources: A deb822 .sources file for apt.
        network: ``default``, ``host`` or ``none``.
    """

    pip_conf: Path | None = None
    ca_bundle: Path | None = None
    apt_sources: Path | None = None
    network: str = "default"


def client(environment: Mapping[str, str]) -> str:
    """The first ``docker`` on the path that builds with BuildKit.

    Raises:
        InfraError: There is none.
    """
    seen = []
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        program = str(Path(folder) / "docker")
        if not os.access(program, os.X_OK):
            continue
        said = _say(program, "--version")
        version = re.search(r"\d+", said)
        if _say(program, "buildx", "version") or (version and int(version.group()) <= LAST_WITH_BUILDKIT_INSIDE):
            return program
        seen.append(f"{program} ({said.strip()}) lacks the plugin buildx")
    raise InfraError(
        f"no Docker client that builds with BuildKit: {'; '.join(seen) or 'none on PATH'}",
        "apt-get install docker.io, or the plugin docker-buildx",
    )


def _say(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def stage_library(source: str, folder: Path) -> str:
    """Bring a checkout of hyper-parallel into the build's context, unmodified and without its history.

    Args:
        source: A folder, or ``URL#REF`` of a git repository; empty takes away what an earlier build brought.
        folder: images/context/hyper-parallel.

    Returns:
        The commit as a reader wants it, or ``none``.

    Raises:
        UsageError: The folder holds no hyper-parallel.
        InfraError: git failed.
    """
    for old in folder.iterdir():
        if old.name != ".gitkeep":
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    if not source:
        return NO_LIBRARY
    if "://" not in source:
        return _copy_library(Path(source), folder)
    address, _, reference = source.partition("#")
    with tempfile.TemporaryDirectory(prefix="hyper-parallel-") as temporary:
        clone = Path(temporary) / "clone"
        git(Path(temporary), "clone", "--quiet", "--", address, str(clone))
        if reference:
            git(clone, "checkout", "--quiet", "--detach", reference, "--")
        return _copy_library(clone, folder)


def _copy_library(source: Path, folder: Path) -> str:
    checkout = open_checkout(source, "--hyper-parallel")
    if checkout is None:
        raise UsageError("--hyper-parallel: no folder is named")
    if checkout.commit:
        listed = git(checkout.path, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        files = [checkout.path / name for name in listed if name and (checkout.path / name).is_file()]
    else:
        files = [path for path in checkout.path.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for file in files:
        target = folder / file.relative_to(checkout.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target, follow_symlinks=False)
    return checkout.label


def stage_wheels(source: Path | None, folder: Path) -> int:
    """Bring wheels into the build's context by hard links where possible; returns how many lie there afterwards.

    Args:
        source: A folder of wheels; None leaves what is there.
        folder: images/context/wheels.

    Raises:
        UsageError: There is no such folder.
    """
    if source is not None:
        if not source.is_dir():
            raise UsageError(f"--wheels: {source} is not a folder", "make one: pip download --require-hashes -r LOCK")
        for wheel in source.glob("*.whl"):
            target = folder / wheel.name
            target.unlink(missing_ok=True)
            try:
                target.hardlink_to(wheel)
            except OSError:
                shutil.copy2(wheel, target)
    return len(list(folder.glob("*.whl")))


@contextmanager
def secrets(site: Site, environment: Mapping[str, str]) -> Iterator[list[str]]:
    """The ``--secret`` arguments of a build; the files that had to be written are gone afterwards.

    Raises:
        UsageError: A file that is named is not there.
    """
    bundle = site.ca_bundle or next((Path(environment[name]) for name in _CA if environment.get(name)), None)
    files = {"ca_bundle": bundle, "pip_conf": site.pip_conf, "apt_sources": site.apt_sources}
    for name, path in files.items():
        if path is not None and not path.is_file():
            raise UsageError(f"{name}: there is no file {path}")
    with tempfile.TemporaryDirectory(prefix="hyper-repro-") as temporary:
        if files["pip_conf"] is None:
            lines = [f"{key} = {environment[name]}" for name, key in _PIP.items() if environment.get(name)]
            lines += [f"cert = {_IN_A_BUILD}"] if bundle else []
            written = Path(temporary) / "pip.conf"
            written.write_text("\n".join(["[global]", "timeout = 180", *lines, ""]), encoding="utf-8")
            files["pip_conf"] = written
        yield [item for name, path in files.items() if path for item in ("--secret", f"id={name},src={path}")]


def carry_out(build: Build, site: Site, root: Path, more: Sequence[str] = ()) -> None:
    """Build the image; what Docker prints goes to the terminal.

    Raises:
        InfraError: There is no client, or it failed.
    """
    program = client(os.environ)
    proxies = [item for name in PROXIES if os.environ.get(name) for item in ("--build-arg", name)]
    with secrets(site, os.environ) as secret:
        command = [program, *build.command(), "--network", site.network, *proxies, *secret, *more, "."]
        done = subprocess.run(command, cwd=root, env={**os.environ, "DOCKER_BUILDKIT": "1"}, check=False)
    if done.returncode != 0:
        raise InfraError(f"docker build ended with {done.returncode}", "its last lines say why")
