"""Reproduce a report: run its cases and controls here, judge the evidence, print the verdict.

ISSUE is a report's number (134) or one fault of it (134.2). With --upstream the real library is run; a fault that its
version cannot have is UNSUPPORTED, with the reason. Exit code: 0 every fault shows as reported, 1 at least one
does not, 2 usage, 3 inconclusive, 4 infrastructure, 5 unsupported here, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.commands import minimising
from repro.engines import choice
from repro.model import Arm, Subject, Tier, Topology

if TYPE_CHECKING:
    from repro.engines.base import Engine
    from repro.model import Fault, Issue
    from repro.model.wants import Wants
    from repro.plan import FaultPlan, Options

# PYTHONHASHSEED takes no more.
LARGEST_SEED = 2**32 - 1


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro run``."""
    minimising.prepare_parser(parser)
    prepare_shared(parser)


def prepare_shared(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``repro verify`` has too."""
    parser.add_argument("issue", metavar="ISSUE[.FAULT]", help="such as 134 or 134.2")
    parser.add_argument(
        "--tier", type=Tier, choices=list(Tier), help="default: the best this machine has for each fault"
    )
    parser.add_argument(
        "--arm", type=Arm, choices=list(Arm), action="append", default=[], help="default: unfixed and controls"
    )
    parser.add_argument("--topology", type=_topology, help="such as tp=2,ep=2,fsdp=2, for the cases with several ranks")
    parser.add_argument(
        "--ranks", type=ranks_of, default=(), metavar="all|0,3", help="ranks of a simulated world to start"
    )
    parser.add_argument(
        "--trials", type=choice.whole_number, help="trials of each unfixed case, and of arms named by --arm"
    )
    parser.add_argument("--steps", type=choice.whole_number, help="calls of each series in growth measurements")
    parser.add_argument("--timeout", type=choice.seconds, metavar="SECONDS", help="deadline of one trial")
    parser.add_argument("--seed", type=seed_of, default=0, help="of MindSpore, and of Python's hashes (0)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder; an unfinished one is resumed")
    add_upstream(parser)
    parser.add_argument("--keep-going", action="store_true", help="go on with other trials after one could not be run")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on standard output, all else on stderr"
    )
    prepare_wants(parser)
    choice.prepare_parser(parser)


def add_upstream(parser: argparse.ArgumentParser) -> None:
    """Add ``--upstream``."""
    parser.add_argument(
        "--upstream",
        type=Path,
        metavar="DIR",
        help="run a checkout of hyper-parallel, unmodified, in place of our own subject; also HYPER_PARALLEL_SRC",
    )


def _topology(text: str) -> Topology:
    try:
        return Topology.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def ranks_of(text: str) -> tuple[int, ...]:
    """Read ``all`` or a list such as ``0,3``; all is empty."""
    if text == "all":
        return ()
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not `all` or a list such as 0,3")
    return tuple(sorted({int(part) for part in parts}))


def seed_of(text: str) -> int:
    """Read a seed."""
    if not (text.isascii() and text.isdigit()) or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {LARGEST_SEED}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Run, judge, write the report, print."""
    from repro.commands.judge import conclude
    from repro.plan import plan

    issue, fault, options = asked(args)
    upstream = upstream_of(args, issue)
    options = on_upstream(replace(options, faults=(fault,) if fault else ()), upstream)
    engine = choice.create(args)
    plans = plan(issue, options, engine.available_tiers())
    how = asked_how(args)
    folder = run_plans(issue, plans, args.out, engine, keep_going=args.keep_going, upstream=upstream, how=how)
    code = conclude(folder, as_json=args.json)
    if args.minimise:
        minimising.tell(folder, minimising.of_run(folder, issue, engine, options, upstream), as_json=args.json)
    return code


def prepare_wants(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how trials are run and what is collected of each."""
    parser.add_argument(
        "--retry-infra", action="store_true", help="with --out: run trials again that were infrastructure trouble"
    )
    group = parser.add_argument_group("what is collected")
    group.add_argument(
        "--cores",
        type=_cores,
        default="auto",
        metavar="auto|never|backtrace|always|below=SIZE",
        help="of ranks that die of a signal; auto: the backtrace, once a case that should crash",
    )
    group.add_argument("--follow", action="store_true", help="print what ranks print, while they run")
    group.add_argument("--memory", action="store_true", help="trace what ranks leave allocated; no growth case")


def _cores(text: str) -> Wants:
    from repro.model.wants import parse_cores

    try:
        return parse_cores(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


@dataclass(frozen=True)
class How:
    """How trials are run, beside what they are.

    Attributes:
        wants: What is to be collected of each.
        follow: Whether to print what ranks print, while they run.
        retry_infra: Whether finished trials that say nothing but infrastructure trouble are run again.
    """

    wants: Wants
    follow: bool = False
    retry_infra: bool = False


def asked_how(args: argparse.Namespace) -> How:
    """How the command line wants its trials run."""
    return How(replace(args.cores, memory=args.memory), args.follow, args.retry_infra)


def asked(args: argparse.Namespace) -> tuple[Issue, str, Options]:
    """The issue, the one fault of it that was named (or an empty string), and the options, faults left out.

    Raises:
        UsageError: There is no such issue, or it is no number.
    """
    from repro.catalogue import find
    from repro.plan import Options

    number, fault = number_and_fault(args.issue)
    options = Options(
        tier=args.tier,
        arms=tuple(args.arm),
        topology=args.topology,
        ranks=args.ranks,
        trials=args.trials,
        steps=args.steps,
        timeout_s=args.timeout,
        seed=args.seed,
    )
    return find(number), fault, options


def number_and_fault(text: str) -> tuple[int, str]:
    """A report's number, and the one fault of it that is named, such as ``134.2``, or an empty string.

    Raises:
        UsageError: It is neither a report nor a fault.
    """
    from repro.errors import UsageError

    number, _, fault = text.partition(".")
    if not number.isdecimal() or not (fault.isdecimal() or text == number):
        raise UsageError(f"{text!r} is not an issue or a fault", "give a number such as 134, or 134.2")
    return int(number), f"{int(number)}.{int(fault)}" if fault else ""


def upstream_of(args: argparse.Namespace, issue: Issue) -> dict[str, Any] | None:
    """What identifies the checkout to run, with what its version lacks; None for our own subject.

    The ranks find the checkout by the variable, which is set here for all that this process starts.

    Raises:
        UsageError: The folder holds no hyper-parallel, or the engine is not this machine.
    """
    import os

    from repro.errors import UsageError
    from repro.upstream.checkout import VARIABLE, open_checkout
    from repro.upstream.versions import lacks, layout

    checkout = open_checkout(args.upstream)
    if checkout is None:
        return None
    if choice.name_of(args) != "local":
        raise UsageError(
            f"--upstream runs on this machine, not by engine {choice.name_of(args)}", "leave --engine and --hosts out"
        )
    os.environ[VARIABLE] = str(checkout.path)
    print(f"upstream: {checkout.label}, layout {layout(checkout.has)}", file=sys.stderr)
    return {**checkout.identity, "layout": layout(checkout.has), "lacks": lacks(issue, checkout.has)}


def on_upstream(options: Options, upstream: dict[str, Any] | None) -> Options:
    """The options for a run of the checkout; unchanged where there is none."""
    return replace(options, subject=Subject.UPSTREAM, lacks=upstream["lacks"]) if upstream else options


def _prefers_sim(fault: Fault) -> bool:
    order = (*fault.prefer, Tier.CPU)
    return Tier.SIM in order and order.index(Tier.SIM) < order.index(Tier.CPU)


def run_plans(
    issue: Issue,
    plans: Sequence[FaultPlan],
    out: Path | None,
    engine: Engine,
    *,
    keep_going: bool,
    kind: str = "run",
    upstream: dict[str, Any] | None = None,
    how: How | None = None,
) -> Path:
    """Run what is missing of the plans, showing how it gets on, and return the run's folder.

    Args:
        issue: The issue.
        plans: Its trials.
        out: The run's folder; None for a new one.
        engine: Where the trials run.
        keep_going: Go on after a trial that could not be run.
        kind: ``run``, ``verify``, ``matrix`` or ``ablation``.
        upstream: What identifies the checkout that is run; None for our own subject.
        how: How they are run and what is collected of them.
    """
    from repro.collect.follow import following
    from repro.errors import UsageError
    from repro.evidence.layout import RunFolder
    from repro.evidence.read import finished_trials
    from repro.report.console import Watch
    from repro.retry import set_aside_trouble
    from repro.runner import carry_out, open_run
    from repro.sim.build import status

    if how is not None and how.retry_infra and not (out is not None and RunFolder(out).run.exists()):
        raise UsageError("--retry-infra: there is no run to retry", "name one with --out")
    fell_back = [item.fault for item in plans if item.tier is Tier.CPU and _prefers_sim(item.fault)]
    # Asked only then: the answer takes a look at the wheel and the compiler.
    if fell_back and not (simulated := status()).ready:
        which = ", ".join(fault.id for fault in fell_back)
        mend = f"{simulated.detail}; {simulated.mend}"
        print(f"note: {which}: tier sim shows more, but is not here: {mend}", file=sys.stderr)
    argv = ["repro", *sys.argv[1:]]
    this = open_run(issue, plans, out, argv, engine, kind=kind, upstream=upstream, wants=how.wants if how else None)
    if how is not None and how.retry_infra:
        for name in set_aside_trouble(this.folder.path):
            print(f"{name}: nothing but infrastructure trouble; it is set aside and run again", file=sys.stderr)
    names = {spec.folder for spec in this.specs}
    done = len(names & finished_trials(this.folder).keys())
    with Watch(len(names), done) as watch, following(this.folder, watch.say) if how and how.follow else nullcontext():
        carry_out(this, engine, keep_going, watch)
    return this.folder.path
