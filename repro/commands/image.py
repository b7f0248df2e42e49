"""Build a container image: ``sim`` needs no NPU, ``ascend`` stands on a CANN image.

Versions come from images/versions.yaml; a combination that no row there has is refused. What only your site knows goes
in as BuildKit secrets and stays in no layer: a pip.conf, a CA bundle, apt sources. The environment's PIP_INDEX_URL,
PIP_CERT and proxies are taken along. Exit code: 0 built, 2 usage, 4 infrastructure.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro image``."""
    parser.add_argument("target", choices=["sim", "ascend"])
    parser.add_argument("--chip", default="", help="target ascend: 910b (Atlas A2) or a3")
    parser.add_argument("--mindspore", default="", metavar="VERSION", help="must be what the lock pins")
    parser.add_argument("--cann", default="", metavar="VERSION", help="default: the row's")
    parser.add_argument("--python", default="", metavar="3.N", help="of the base image, to be checked against the row")
    parser.add_argument("--architecture", default="", choices=["aarch64", "x86_64"], help="to be checked as well")
    parser.add_argument("--allow-unlisted", action="store_true", help="build what no row of the table has")
    parser.add_argument("--base", default="", metavar="IMAGE", help="another base image, whole name")
    parser.add_argument("--registry", default="", metavar="NAME", help="where CANN's image is (quay.io/ascend/cann)")
    parser.add_argument("--hyper-parallel", default="", metavar="DIR|URL#REF", help="bring the library in, unmodified")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="wheels to install from; hashes are checked as ever")
    parser.add_argument("--offline", action="store_true", help="from these wheels alone, without a package index")
    parser.add_argument("--pip-conf", type=Path, metavar="FILE", help="secret: your pip.conf")
    parser.add_argument("--ca-bundle", type=Path, metavar="FILE", help="secret: certificates of your site")
    parser.add_argument("--apt-sources", type=Path, metavar="FILE", help="secret: a .sources file of your mirror")
    parser.add_argument("--network", default="default", choices=["default", "host", "none"])
    parser.add_argument("--tag", default="", help="default: hyper-repro:sim, or hyper-repro:ascend-CHIP")
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--print", action="store_true", help="print the docker command, without secrets, and stop")


def run(args: argparse.Namespace) -> int:
    """Plan, bring the context together, build."""
    import shlex

    import repro
    from repro import host
    from repro.images.build import Site, carry_out, stage_library, stage_wheels
    from repro.images.plan import NO_LIBRARY, REGISTRY, Asked, Target, plan
    from repro.images.versions import Wanted, load

    root = Path(repro.__file__).resolve().parents[1]
    asked = Asked(
        target=Target(args.target),
        wanted=Wanted(args.mindspore, args.cann, args.python, args.chip, args.architecture),
        base=args.base,
        registry=args.registry or REGISTRY,
        tag=args.tag,
        allow_unlisted=args.allow_unlisted,
        offline=args.offline,
    )
    context = root / "images" / "context"
    about = (load(), root, repro.__version__, host.commit())
    plan(asked, *about, NO_LIBRARY)  # refuses before anything is moved
    if args.print:
        print(shlex.join(["docker", *plan(asked, *about, args.hyper_parallel or NO_LIBRARY).command(), "."]))
        return 0
    stage_wheels(args.wheels, context / "wheels")
    build = plan(asked, *about, stage_library(args.hyper_parallel, context / "hyper-parallel"))
    site = Site(args.pip_conf, args.ca_bundle, args.apt_sources, args.network)
    carry_out(build, site, root, ["--no-cache"] if args.no_cache else [])
    print(f"built {build.tag}: {build.row}")
    return 0
