"""``make bundle``: image, wheels, project and table of versions into one archive under dist/."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import docker
import requests
import zstandard
from docker.errors import DockerException, ImageNotFound

import repro
from repro import host
from repro.errors import InfraError, ReproError, UsageError
from repro.evidence.write import cannot_write
from repro.images import archive

# The engine is asked for an image of a gigabyte.
TIMEOUT_S = 600
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def main(arguments: list[str]) -> int:
    """Entry point of the make target."""
    parser = argparse.ArgumentParser(prog="make bundle", description=__doc__)
    parser.add_argument("target", choices=["sim", "ascend"])
    parser.add_argument("--chip", default="")
    parser.add_argument("--image", default="", help="default: hyper-repro:sim or hyper-repro:ascend-CHIP")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="wheels to take along, for a build over there")
    parser.add_argument("--output", type=Path, default=Path("dist"), metavar="DIR")
    options = parser.parse_args(arguments)
    try:
        if options.target == "ascend" and not options.chip:
            raise UsageError("make bundle TARGET=ascend needs CHIP", "CHIP=910b or CHIP=a3")
        image = options.image or (f"hyper-repro:ascend-{options.chip}" if options.chip else "hyper-repro:sim")
        made = make(image, options.target, options.chip, options.wheels, options.output)
    except ReproError as error:
        print(f"make bundle: {error}", file=sys.stderr)
        return error.exit_code
    print(made)
    return 0


def make(image: str, target: str, chip: str, wheels: Path | None, output: Path) -> Path:
    """Write the archive and return its path.

    Raises:
        InfraError: No engine answers, it has no such image, this is no git checkout, or the disk is full.
        UsageError: There is no such folder of wheels, or it holds none.
    """
    root = Path(repro.__file__).resolve().parents[1]
    taken = sorted(wheels.glob("*.whl")) if wheels is not None else []
    if wheels is not None and not taken:
        raise UsageError(f"--wheels: there is no wheel in {wheels}", "pip download --require-hashes -r LOCK -d DIR")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".bundle-", dir=output) as temporary:
        folder = Path(temporary)
        about = _save(image, target, chip, folder / archive.IMAGE)
        _project(root, folder / archive.PROJECT)
        files = {
            archive.IMAGE: folder / archive.IMAGE,
            archive.PROJECT: folder / archive.PROJECT,
            "versions.yaml": root / "images" / "versions.yaml",
            **{f"{archive.WHEELS}/{wheel.name}": wheel for wheel in taken},
        }
        name = "-".join(filter(None, ("hyper-repro", about.version, target, chip, about.architecture)))
        made = output / f"{name}.tar"
        entries = archive.write(made, about, files).entries
    for entry in entries:
        print(f"{entry.size / 1e6:10,.1f} MB  {entry.path}", file=sys.stderr)
    print(f"{made.stat().st_size / 1e6:10,.1f} MB  {made}", file=sys.stderr)
    return made


def _save(image: str, target: str, chip: str, file: Path) -> archive.About:
    try:
        client = docker.from_env(timeout=TIMEOUT_S)
        try:
            found = client.images.get(image)
        except ImageNotFound:
            hint = f"make image-{target}" + (f" CHIP={chip}" if chip else "")
            raise InfraError(f"the Docker engine has no image {image}", hint) from None
        compressor = zstandard.ZstdCompressor(level=3, threads=-1)
        with file.open("wb") as raw, compressor.stream_writer(raw) as stream:
            for chunk in found.save(named=image):
                stream.write(chunk)
    except (DockerException, requests.exceptions.RequestException) as error:
        raise InfraError(f"no Docker engine answers: {error}", "start it, or name another with DOCKER_HOST") from error
    except OSError as error:
        raise cannot_write(file, error) from error
    labels = found.labels
    machine = str(found.attrs["Architecture"])
    return archive.About(
        version=repro.__version__,
        commit=host.commit(),
        target=target,
        chip=chip,
        architecture=_ARCHITECTURES.get(machine, machine),
        image=image,
        image_id=str(found.id),
        mindspore=labels.get("hyper-repro.mindspore", "unknown"),
        cann=labels.get("hyper-repro.cann", "unknown"),
    )


def _project(root: Path, file: Path) -> None:
    """The project as committed: playbooks, sources, documents, and the Dockerfile to build over there."""
    command = ["git", "-C", str(root), "archive", "--format=tar", f"--output={file}", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InfraError(f"git archive: {done.stderr.strip()}", "run in a git checkout")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
