"""What a target that is lazy itself puts off: modules that its packages name and have not loaded.

Read from the source of the target and the packages above it: import statements that did not
run (inside functions such as a PEP 562 ``__getattr__``, or under TYPE_CHECKING) and strings
that name a module, as lazy-import helpers take them. Only modules of the target's own
top-level package count, and only those that exist.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from importaudit.files import LOCAL, Files

LARGEST = 200  # modules listed; a registry of thousands is not "what first use would add"


def known_not_loaded(
    targets: Collection[str],
    origins: Mapping[str, str],
    loaded: Collection[str],
    files: Files = LOCAL,
) -> list[str]:
    """The modules that TARGETS name in their source and that are not in LOADED.

    ORIGINS maps loaded modules to the files they came from.
    """
    found: set[str] = set()
    for target in targets:
        file = origins.get(target, "")
        if not file.endswith(".py"):
            continue
        try:
            tree = ast.parse(files.read(file), file)
        except (OSError, SyntaxError, ValueError):
            continue
        top = target.partition(".")[0]
        package = target if Path(file).name == "__init__.py" else target.rpartition(".")[0]
        above = package.count(".") + 1 if package else 0
        root = str(Path(file).parents[above])  # where the top-level package lies
        if not is_lazy(tree):
            continue
        for name in named_modules(tree, package):
            if name.partition(".")[0] == top and name not in loaded and exists(name, root, files):
                found.add(name)
    return sorted(found)[:LARGEST]


def is_lazy(tree: ast.Module) -> bool:
    """Whether a module puts imports off: a module ``__getattr__``, or a helper that says lazy."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            return True
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any("lazy" in ast.unparse(function).lower() for function in calls)


def named_modules(tree: ast.Module, package: str) -> Iterator[str]:
    """Names in TREE that may be modules: imported somewhere, or written as a dotted string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node.module or "", node.level, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
            level = len(name) - len(name.lstrip("."))
            if name and all(part.isidentifier() for part in name[level:].split(".")):
                yield absolute(name[level:], level, package)
                if not level:
                    yield f"{package}.{name}"


def absolute(name: str, level: int, package: str) -> str:
    """The absolute name of a relative import (``importlib.util.resolve_name``)."""
    if not level:
        return name
    base = package.rsplit(".", level - 1)[0] if level > 1 else package
    return f"{base}.{name}" if name else base


def exists(name: str, root: str, files: Files) -> bool:
    """Whether NAME is a module or a package below ROOT."""
    path = "/".join([root, *name.split(".")])
    return bool(files.existing([f"{path}.py", f"{path}/__init__.py"]))
