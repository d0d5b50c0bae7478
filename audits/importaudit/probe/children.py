"""Following child processes: forked ones go on tracing, spawned ones are started like the target.

A forked child inherits the tracer and gets a file of its own. A spawned one (multiprocessing's
spawn and forkserver methods, ``subprocess`` with this interpreter) is followed when its command
is ``PYTHON [options] -c CODE``: CODE is put inside the same line that started the target. Other
commands (``-m``, scripts, other programs) are started untouched.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def follow(tracer: "dict[str, Any]", output: "Any", config: "dict[str, Any]") -> None:
    """Arrange for the children of this process to be traced into files of their own."""
    parent = os.getpid()

    def in_child() -> None:
        nonlocal parent
        output.restart()
        output.put("V", 2)
        output.put("P", os.getpid(), parent, 0, 0)
        output.put("F", "started_by", "fork")
        parent = os.getpid()
        tracer["restart_in_child"]()

    os.register_at_fork(after_in_child=in_child)

    def patch(module: "Any") -> None:
        original = module.fork_exec

        def fork_exec(arguments: "Any", executables: "Any", *rest: "Any") -> "Any":
            return original(rewrite(arguments, executables, config), executables, *rest)

        module.fork_exec = fork_exec
        if "subprocess" in sys.modules:  # it has taken the function over by name
            sys.modules["subprocess"].__dict__["_fork_exec"] = fork_exec

    def patch_spawn(_: "Any") -> None:  # which subprocess prefers since 3.13
        original = os.posix_spawn

        def posix_spawn(path: "Any", arguments: "Any", *rest: "Any", **options: "Any") -> int:
            return original(path, rewrite(arguments, [path], config), *rest, **options)

        os.posix_spawn = posix_spawn

    for name, act in (("_posixsubprocess", patch), ("subprocess", patch_spawn)):
        if name in sys.modules:
            act(sys.modules[name])
        else:
            tracer["on_load"][name] = act


def rewrite(arguments: "Any", executables: "Any", config: "dict[str, Any]") -> "Any":
    """ARGUMENTS with the code of ``-c`` traced, when they start this very interpreter."""
    try:
        if os.fsencode(executables[0]) != os.fsencode(sys.executable):
            return arguments
        if not os.path.exists(config["code"]):  # the audit is over, and we have been left behind
            return arguments
        words = [os.fsdecode(word) for word in arguments]
        place = 1
        while words[place] != "-c":
            if not words[place].startswith("-") or words[place] in ("-m", "-"):
                return arguments
            place += 2 if words[place] in ("-X", "-W") else 1
        words[place + 1] = command_line(config, os.getpid(), words[place + 1])
    except (IndexError, TypeError, ValueError):
        return arguments
    return [os.fsencode(word) for word in words]


def command_line(config: "dict[str, Any]", parent: int, code: str) -> str:
    """The ``-c`` argument that runs CODE under the probe."""
    statement = 'exec(compile(%r,"<string>","exec"))' % code
    child = dict(config, parent=parent, script=None, detail=False, statement=statement)
    return str(config["line"] % (child, statement))
