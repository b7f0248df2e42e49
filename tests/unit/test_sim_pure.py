"""The pure parts of the simulated tier: the table, ranks, what is served how, generated code, the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from repro.errors import UsageError
from repro.sim.build import Runtime, generated_source, served_generically
from repro.sim.environment import PRELOAD, environment
from repro.sim.operators import TABLE, Outcome, Result, Usage, markdown, parse
from repro.sim.run import parse_ranks

RUNTIME = Runtime(Path("/cache/key"), "2.10.0")


def test_a_table_has_groups_code_and_expected_errors() -> None:
    text = "# why\n\n[mint: shape]\nmint.ones(2)\n~ mint.nonzero(x)\n[x for x in ops()]\n[nn]\nnn.Dense(1, 2)\n"
    assert parse(text) == [
        Usage("mint: shape", "mint.ones(2)"),
        Usage("mint: shape", "mint.nonzero(x)", expects_error=True),
        Usage("mint: shape", "[x for x in ops()]"),
        Usage("nn", "nn.Dense(1, 2)"),
    ]


@pytest.mark.parametrize("text", ["mint.ones(2)", "[mint]\nmint.ones(2)\nmint.ones(2)"])
def test_a_table_with_a_mistake_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no heading or stands twice"):
        parse(text)


def test_every_line_of_our_table_is_python() -> None:
    for usage in parse(TABLE.read_text(encoding="utf-8")):
        compile(usage.code.replace("\\n", "\n"), usage.code, "exec")


@pytest.mark.parametrize(
    ("outcome", "expects_error", "as_expected"),
    [
        (Outcome.RUNS, False, True),
        (Outcome.RUNS, True, False),
        (Outcome.CLEAR_ERROR, True, True),
        (Outcome.CLEAR_ERROR, False, False),
        (Outcome.DIED, True, False),
        (Outcome.UNSERVED, True, False),
    ],
)
def test_what_is_as_expected(outcome: Outcome, expects_error: bool, as_expected: bool) -> None:
    assert Result(Usage("g", "c", expects_error), outcome).as_expected is as_expected


def test_markdown_counts_and_escapes() -> None:
    page = markdown(
        [
            Result(Usage("a", "x | y"), Outcome.RUNS),
            Result(Usage("b", "z", expects_error=True), Outcome.CLEAR_ERROR, "E: a | b"),
        ]
    )
    assert "1 runs, 1 clear error; 2 in all." in page
    assert "## a\n\n| usage | result |\n|---|---|\n| `x \\| y` | runs |" in page
    assert "| `z` | clear error: E: a \\| b |" in page


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("all", [0, 1, 2, 3]), ("0", [0]), ("3,0", [0, 3]), ("1-3", [1, 2, 3]), ("0,2-3,2", [0, 2, 3])],
)
def test_ranks_parse(text: str, ranks: list[int]) -> None:
    assert parse_ranks(text, 4) == ranks


@pytest.mark.parametrize("text", ["", "4", "a", "-1", "1-", "0,,1", "3-1", "0-4", "1.5"])
def test_ranks_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--ranks"):
        parse_ranks(text, 4)


def test_the_table_of_generic_symbols_knows_names_endings_and_comments() -> None:
    table = "# all of this is a comment aclFree\naclInit   # start\naclopSetAttr*\n\n"
    names = {"aclInit", "aclInitExtra", "aclopSetAttrBool", "aclopSetAttr", "aclFree", "AclInit"}
    assert served_generically(names, table) == {"aclInit", "aclopSetAttrBool", "aclopSetAttr"}


def test_generated_code_has_one_function_a_symbol_and_no_assembly() -> None:
    code = generated_source({"aclInit"}, {"_ZN2ge3FooC1Ev", "HcclSend"})
    assert '__asm__("aclInit"); long generic_0(void) { return 0; }' in code
    assert code.count("hyper_repro_unserved(") == 2
    assert 'hyper_repro_unserved("_ZN2ge3FooC1Ev");' in code


def test_the_environment_of_a_rank() -> None:
    given = environment(512, 11, RUNTIME, base={"LD_LIBRARY_PATH": "/lib/a", "PYTHONPATH": ""})
    assert given["LD_LIBRARY_PATH"] == "/cache/key/Ascend/ascend-toolkit/latest/lib64:/lib/a"
    assert given["PYTHONPATH"].endswith("opp/built-in/op_impl/ai_core/tbe")
    assert given["ASCEND_HOME_PATH"] == "/cache/key/Ascend/ascend-toolkit/latest"
    assert (given["RANK_SIZE"], given["RANK_ID"], given["DEVICE_ID"]) == ("512", "11", "3")
    assert given["MS_SIMULATION_LEVEL"] == "1"
    assert given[PRELOAD] == "/cache/key/libhyper_repro_quiet.so"


@pytest.mark.parametrize(("world_size", "rank"), [(8, 8), (8, -1), (0, 0)])
def test_a_rank_outside_its_world_is_refused(world_size: int, rank: int) -> None:
    with pytest.raises(ValueError, match="is not one of a world of"):
        environment(world_size, rank, RUNTIME, base={})
