"""A tree of source files that is edited in memory, and the complaint of an edit that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import libcst as cst

from repro.errors import ReproError

PACKAGE = "hyper_parallel"


class MisfitError(ReproError):
    """A codemod does not fit: its target is not there, or has another shape."""

    exit_code = 5


class Tree:
    """Files below a root, with what was changed of them; nothing is written.

    Attributes:
        changed: New text by path; of a file that was not there before, too.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.changed: dict[str, str] = {}

    def has(self, path: str) -> bool:
        """True if the file is there."""
        return path in self.changed or (self._root / path).is_file()

    def first(self, fault: str, *paths: str) -> str:
        """The first of the files that is there.

        Raises:
            MisfitError: None is.
        """
        found = next((path for path in paths if self.has(path)), None)
        if found is None:
            raise misfit(fault, " and ".join(paths), "a file of one of these names", "found neither")
        return found

    def module(self, path: str, fault: str) -> cst.Module:
        """The file, parsed.

        Raises:
            MisfitError: It is not there or not Python.
        """
        if not self.has(path):
            raise misfit(fault, path, "the file", "found nothing")
        try:
            module = cst.parse_module(self.changed.get(path) or (self._root / path).read_bytes())
        except cst.ParserSyntaxError as error:
            raise misfit(fault, path, "Python", f"line {error.raw_line}: {error.message}") from error
        except (UnicodeDecodeError, SyntaxError) as error:
            raise misfit(fault, path, "text in UTF-8", f"found other bytes: {error}") from error
        if module.encoding.lower() not in ("utf-8", "utf8", "ascii"):
            raise misfit(fault, path, "text in UTF-8", f"found {module.encoding}")
        return module

    def put(self, path: str, module: cst.Module | str) -> None:
        """Replace or add a file."""
        self.changed[path] = module if isinstance(module, str) else module.code

    def before(self, path: str) -> bytes | None:
        """What stands in the checkout; None for a new file."""
        file = self._root / path
        return file.read_bytes() if file.is_file() else None


def misfit(fault: str, path: str, expected: str, found: str) -> MisfitError:
    """The refusal, with file, expectation and what was found."""
    return MisfitError(
        f"export of {fault} does not fit {path}: it expects {expected} there, {found}",
        "docs/mends.md says which layouts are known",
    )


def functions(body: cst.BaseSuite | cst.Module) -> Mapping[str, cst.FunctionDef]:
    """The functions that stand directly in a class or module, by name."""
    return {node.name.value: node for node in body.body if isinstance(node, cst.FunctionDef)}


def classes(module: cst.Module) -> Mapping[str, cst.ClassDef]:
    """The classes that stand directly in a module, by name."""
    return {node.name.value: node for node in module.body if isinstance(node, cst.ClassDef)}


def parameters(function: cst.FunctionDef) -> list[str]:
    """Names of a function's parameters, in order."""
    params = function.params
    return [param.name.value for param in (*params.posonly_params, *params.params, *params.kwonly_params)]


def method(module: cst.Module, path: str, fault: str, name: str, needed: tuple[str, ...] = ()) -> cst.FunctionDef:
    """A method of a class, such as ``DeviceMesh.concatenate``.

    Raises:
        MisfitError: It is not there, or lacks a parameter.
    """
    holder, _, last = name.partition(".")
    owner = classes(module).get(holder)
    found = functions(owner.body).get(last) if owner is not None else None
    expected = f"{name}({', '.join(needed)})"
    if found is None:
        raise misfit(fault, path, expected, "found nothing")
    if not set(needed) <= set(parameters(found)):
        raise misfit(fault, path, expected, f"found {name}({', '.join(parameters(found))})")
    return found


def replaced(module: cst.Module, old: cst.CSTNode, new: object) -> cst.Module:
    """The module with one node in place of another; a visitor may say that a node is to be removed, ours never do."""
    if not isinstance(new, type(old)):
        raise TypeError(f"an edit made {type(new).__name__} of {type(old).__name__}")
    return cst.ensure_type(module.deep_replace(old, new), cst.Module)


def with_body(function: cst.FunctionDef, source: str) -> cst.FunctionDef:
    """The function with other statements after its docstring."""
    statements = cst.parse_module(source).body
    kept = []
    if isinstance(function.body, cst.IndentedBlock) and function.get_docstring() is not None:
        kept = [function.body.body[0]]
    return function.with_changes(body=cst.IndentedBlock([*kept, *statements]))


def before_definitions(module: cst.Module, source: str) -> cst.Module:
    """The module with statements put in front of its first function or class."""
    added = _statements(source)
    at = next(
        (i for i, node in enumerate(module.body) if isinstance(node, cst.FunctionDef | cst.ClassDef)), len(module.body)
    )
    first = module.body[at] if at < len(module.body) else None
    if isinstance(first, cst.FunctionDef | cst.ClassDef):
        blank = [cst.EmptyLine(indent=False)] * 2
        comments = [line for line in first.leading_lines if line.comment is not None]
        module = module.with_deep_changes(first, leading_lines=[*blank, *comments])
    return module.with_changes(body=[*module.body[:at], *added, *module.body[at:]])


def after_imports(module: cst.Module, source: str) -> cst.Module:
    """The module with a statement put behind its last import."""
    added = _statements(source)
    at = max((i for i, node in enumerate(module.body) if _is_import(node)), default=-1) + 1
    return module.with_changes(body=[*module.body[:at], *added, *module.body[at:]])


def _statements(source: str) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """The statements, with the empty lines before the first, which a module has for itself."""
    module = cst.parse_module(source)
    first, *others = module.body
    return [first.with_changes(leading_lines=[*module.header, *first.leading_lines]), *others]


def _is_import(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Import | cst.ImportFrom)
