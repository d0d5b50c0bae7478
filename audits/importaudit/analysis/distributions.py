"""Which distribution a module came from, by the file it was loaded from.

Uses importlib-metadata in our own interpreter over the target's ``sys.path``, so nothing more
is imported in the target.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import importlib_metadata
import msgspec

from importaudit.files import LOCAL, Files

STDLIB = "(standard library)"
UNKNOWN = "(no distribution)"
MAIN = "(the command itself)"


class DirectUrl(msgspec.Struct):
    """The part of direct_url.json (PEP 610) that says where a project was installed from."""

    url: str = ""
    dir_info: dict[str, bool] = {}


class Distributions:
    """The installed distributions on a search path."""

    def __init__(self, path: Iterable[str], stdlib: Iterable[str], files: Files = LOCAL) -> None:
        self.source = files
        # Not resolved: a virtual environment may be a link, and origins are below it.
        self.path = [str(Path(entry).absolute()) for entry in path if entry]
        self.stdlib = tuple(f"{folder}{os.sep}" for folder in stdlib)
        self.tops: dict[tuple[str, str], dict[str, str]] = {}
        self.files: dict[tuple[str, str], dict[str, str]] = {}
        self.editable: dict[str, str] = {}
        for distribution in installed(self.path, files):
            self.add(distribution)

    def add(self, distribution: Any) -> None:
        """Note the top-level names of DISTRIBUTION, and the folder of an editable one."""
        try:
            name = f"{distribution.metadata['Name']} {distribution.version}"
        except (OSError, TypeError, KeyError):  # a folder without METADATA, left by an uninstall
            return
        base = str(distribution.locate_file(""))
        record = distribution.read_text("RECORD") or ""
        for line in record.splitlines():
            file = line[1:].partition('"')[0] if line.startswith('"') else line.partition(",")[0]
            top, slash, rest = file.partition("/")
            top = top if slash else top.partition(".")[0]
            owners = self.tops.setdefault((base, top), {})
            owners.setdefault(name, "")
            if len(owners) > 1 or rest.count("/"):
                self.files.setdefault((base, top), {}).setdefault(file, name)
        direct = distribution.read_text("direct_url.json")
        if direct:
            self.add_editable(name, direct)

    def add_editable(self, name: str, text: str) -> None:
        try:
            direct = msgspec.json.decode(text, type=DirectUrl)
        except msgspec.DecodeError:
            return
        if direct.dir_info.get("editable") and direct.url.startswith("file:"):
            self.editable[unquote(urlparse(direct.url).path).rstrip("/") + "/"] = name

    def of_file(self, file: str) -> str:
        """The distribution that FILE belongs to, as "name version", or a word in brackets."""
        for entry in self.path:
            if file.startswith(entry + os.sep):
                relative = file[len(entry) + 1 :]
                top = relative.partition("/")[0]
                owners = self.tops.get((entry, top)) or self.tops.get(
                    (entry, top.partition(".")[0])
                )
                if owners:
                    if len(owners) == 1:
                        return next(iter(owners))
                    return self.files.get((entry, top), {}).get(relative, next(iter(owners)))
        for folder, name in self.editable.items():
            if file.startswith(folder):
                return name
        if file.startswith(self.stdlib) and f"{os.sep}site-packages{os.sep}" not in file:
            return STDLIB
        return UNKNOWN


def installed(path: Sequence[str], files: Files) -> Iterator[Any]:
    """The distributions on PATH, as importlib-metadata has them."""
    if files is LOCAL:
        yield from importlib_metadata.distributions(path=path)
        return
    for entry in path:
        with suppress(OSError):
            for name in files.names(entry):
                if name.endswith((".dist-info", ".egg-info")):
                    place: Any = Place(files, f"{entry}/{name}")
                    yield importlib_metadata.PathDistribution(place)


@dataclass(frozen=True)
class Place:
    """A path of FILES, as far as importlib-metadata's PathDistribution uses one."""

    files: Files
    path: str

    def __str__(self) -> str:
        return self.path

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Place:
        return Place(self.files, self.path.rpartition("/")[0])

    def joinpath(self, *parts: str) -> Place:
        return Place(self.files, "/".join([self.path, *filter(None, parts)]))

    __truediv__ = joinpath

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.files.read(self.path).decode(encoding)


def assign(
    modules: Mapping[str, str],
    path: Iterable[str],
    base_prefix: str,
    platlibdir: str,
    version: str,
    files: Files = LOCAL,
) -> dict[str, list[str]]:
    """Group MODULES (name to file, "" where there is none) by distribution.

    A module without a file is builtin, frozen, a namespace package or made by hand: it goes
    with its nearest parent package, or else to the standard library if it is a top-level
    builtin.
    """
    libraries = [
        f"{base_prefix}/lib/python{version}",
        f"{base_prefix}/{platlibdir}/python{version}",
    ]
    finder = Distributions(path, [*libraries, *map(files.real, libraries)], files)
    found = {m: finder.of_file(f) for m, f in modules.items() if f.startswith(os.sep)}
    groups: dict[str, list[str]] = {}
    for module, file in modules.items():
        name = found.get(module) or without_file(module, file, found)
        groups.setdefault(name, []).append(module)
    return groups


def without_file(module: str, origin: str, found: Mapping[str, str]) -> str:
    """Where a module goes that was not loaded from a file."""
    if module == "__main__":
        return MAIN
    package = module.rpartition(".")[0]
    while package:
        if package in found:
            return found[package]
        package = package.rpartition(".")[0]
    below = {name for m, name in found.items() if m.startswith(f"{module}.")}
    if len(below) == 1:
        return below.pop()
    return STDLIB if origin in ("built-in", "frozen") else UNKNOWN


def version_text(version: str) -> str:
    """ "3.11" from a ``sys.version``."""
    return ".".join(version.split(maxsplit=1)[0].split(".")[:2])
