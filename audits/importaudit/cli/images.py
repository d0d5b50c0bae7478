"""Where the target lives, on the command line: on this machine, or in an image (``--image``)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from importaudit.errors import ContainerError, InterpreterError, UsageError

if TYPE_CHECKING:
    from importaudit.measure.machine import Machine
    from importaudit.plan import Container, Mount

OPTIONS = (
    click.option("--image", metavar="REF", help="Look inside a container of this image, without"
                 " a network; all paths are the image's."),
    click.option("--env", "variables", metavar="NAME=VALUE", multiple=True,
                 help="Set a variable in the container; NAME alone takes ours."),
    click.option("--mount", "mounts", metavar="SOURCE:TARGET[:ro]", multiple=True,
                 help="Mount a folder or file in the container; also as docker run --mount has"
                 " it."),
    click.option("--read-only", is_flag=True, help="Run it with a read-only root file system."),
    click.option("--read-iops", metavar="N", type=click.IntRange(1),
                 help="Hold its disk to N reads a second."),
    click.option("--keep", is_flag=True, help="Leave the container running, to look into it."),
)  # fmt: skip


def image_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give COMMAND the options of containers, and the argument ``container``."""

    def in_image(*arguments: Any, **options: Any) -> int:
        names = ("variables", "mounts", "read_only", "read_iops", "keep")
        asked = {name: options.pop(name) for name in names}
        container = container_of(options.pop("image"), **asked)
        return command(*arguments, **options, container=container)

    in_image.__doc__ = command.__doc__
    in_image.__dict__.update(command.__dict__)  # the options it has already
    for option in reversed(OPTIONS):
        in_image = option(in_image)
    return in_image


def container_of(
    image: str | None,
    variables: Sequence[str],
    mounts: Sequence[str],
    read_only: bool,
    read_iops: int | None,
    keep: bool,
) -> Container | None:
    """The container that the options ask for, if they do; raises UsageError."""
    from importaudit.plan import Container

    if image is None:
        given = {"--env": variables, "--mount": mounts, "--read-only": read_only,
                 "--read-iops": read_iops, "--keep": keep}  # fmt: skip
        if stray := [name for name, value in given.items() if value]:
            raise UsageError(f"{stray[0]} is for containers", "name an image: --image REF")
        return None
    environment = dict(variable(words) for words in variables)
    made = tuple(mount(words) for words in mounts)
    return Container(image, environment, made, keep, read_only, read_iops or 0)


def variable(words: str) -> tuple[str, str]:
    """The name and value of NAME=VALUE, or of our own variable NAME; raises UsageError."""
    name, given, value = words.partition("=")
    if not name or (not given and name not in os.environ):
        raise UsageError(f"--env {words}: no such variable here", "--env NAME=VALUE")
    return name, value if given else os.environ[name]


def mount(words: str) -> Mount:
    """A mount as ``docker run`` takes it with -v or with --mount; raises UsageError."""
    from importaudit.plan import Mount

    hint = "--mount /here:/there, --mount /here:/there:ro, or type=bind,source=…,target=…,readonly"
    if "=" in words.partition(",")[0]:
        fields = {name: value for name, _, value in (w.partition("=") for w in words.split(","))}
        source = fields.get("source", fields.get("src", ""))
        target = fields.get("target", fields.get("destination", fields.get("dst", "")))
        read_only = any(fields.get(name, "false") in ("", "true", "1") for name in READ_ONLY)
        unknown = set(fields) - {"type", "source", "src", "target", "dst", "destination"}
        kind, faults = fields.get("type", "volume"), sorted(unknown - set(READ_ONLY))
    else:
        source, _, rest = words.partition(":")
        target, _, mode = rest.partition(":")
        read_only, faults = mode == "ro", [mode] if mode not in ("", "ro", "rw") else []
        kind = "bind" if "/" in source or source in (".", "..") else "volume"
    if faults or not source or not target.startswith("/") or kind not in ("bind", "volume"):
        what = f" ({faults[0]})" if faults else ""
        raise UsageError(f"--mount {words}: not understood{what}", hint)
    if kind == "volume":
        return Mount(source, target, read_only, "volume")
    source = str(Path(source).absolute())
    if not Path(source).exists():
        raise UsageError(f"--mount {words}: no file or folder at {source}", hint)
    return Mount(source, target, read_only)


READ_ONLY = ("readonly", "ro")


@contextmanager
def place(container: Container | None, python: str | None) -> Iterator[tuple[Machine, Path]]:
    """The machine that the target lives on, and its interpreter; raises AuditError."""
    from importaudit.measure import interpreter
    from importaudit.measure.machine import HERE

    if container is None:
        yield HERE, interpreter.find(python, os.environ)
        return
    with sdk().started(container, python, choose) as started:
        if container.keep:
            click.echo(
                f"importaudit: the container {started.name} stays: docker exec -it {started.name}"
                f" {started.python}; docker rm -fv {started.name} removes it",
                err=True,
            )
        yield started.machine, Path(started.python)


def sdk() -> Any:
    """The module that talks to container engines; raises ContainerError where it cannot."""
    try:
        from importaudit.measure import container
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("importaudit"):
            raise
        raise ContainerError(
            f"--image needs the Docker SDK for Python: no module {error.name}",
            "pip install 'importaudit[docker]'",
        ) from error
    return container


def choose(found: Sequence[str]) -> str:
    """Ask on a terminal which interpreter to audit; raises InterpreterError elsewhere."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InterpreterError(
            f"the image has {len(found)} Pythons: {', '.join(found)}",
            f"say which: --python {found[0]}",
        )
    click.echo("The image has several Pythons:", err=True)
    for number, path in enumerate(found, 1):
        click.echo(f"  {number}  {path}", err=True)
    kind = click.IntRange(1, len(found))
    number = click.prompt("Which one is to be audited?", type=kind, default=1, err=True)
    return found[number - 1]
