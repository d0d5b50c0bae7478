"""Guest: hashes or recompiles sources, as the interpreter that runs it would.

    PYTHON -I -S -B -W ignore recompile.py hash LIST
    PYTHON -I -S -B -W ignore recompile.py compile LIST OPTIMIZE

LIST is a file of paths, each ended by a NUL byte: sources for ``hash``; for ``compile`` each source
followed by its bytecode, which is empty where there is none that would be loaded. One line on
stdout for each source, in order, written at once, so that the host knows what a crash was about:

    hash        the hash in hexadecimal, or "-" where the source cannot be read
    compile     "same", "differs", "compiles" (no bytecode to compare with), "fails REASON",
                "damaged REASON" (the bytecode cannot be unmarshalled), or "unread"
"""

import marshal
import sys
from types import CodeType

# co_filename is not among them: importlib replaces it by the path of the source.
FIELDS = (
    *("co_name", "co_qualname", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount"),
    *("co_flags", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars"),
    *("co_firstlineno", "co_linetable", "co_exceptiontable", "co_stacksize"),
)


def same(one: object, other: object) -> bool:
    """Whether two constants or code objects are alike.

    Not by their marshalled bytes, which differ with reference counts and interning
    (cpython#129724), and not by ``==`` alone, for which 1, 1.0 and True are the same.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        fields = (getattr(one, f, None) == getattr(other, f, None) for f in FIELDS)
        return all(fields) and same(one.co_consts, other.co_consts)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    if isinstance(one, (float, complex)):  # -0.0 and nan
        return repr(one) == repr(other)
    return one == other


def read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def compared(source: bytes, bytecode: bytes, optimize: int) -> str:
    """The answer for one source; see above."""
    import os

    try:
        code = compile(read(source), os.fsdecode(source), "exec", 0, True, optimize)
    except OSError:
        return "unread"
    except Exception as error:  # MemoryError and RecursionError among them
        return "differs" if bytecode else "fails %s: %s" % (type(error).__name__, error)
    if not bytecode:
        return "compiles"
    try:
        loaded = marshal.loads(read(bytecode)[16:])
    except Exception as error:
        return "damaged %s: %s" % (type(error).__name__, error)
    return "same" if same(code, loaded) else "differs"


def hashed(source: bytes) -> str:
    """The hash that a checked bytecode file of SOURCE must hold."""
    import _imp
    import importlib.util

    try:
        data = read(source)
    except OSError:
        return "-"
    return _imp.source_hash(int.from_bytes(importlib.util.MAGIC_NUMBER, "little"), data).hex()


def main() -> None:
    paths = read(sys.argv[2].encode("utf-8", "surrogateescape")).split(b"\0")[:-1]
    compiling = sys.argv[1] == "compile"
    for at in range(0, len(paths), 2 if compiling else 1):
        if compiling:
            answer = compared(paths[at], paths[at + 1], int(sys.argv[3]))
        else:
            answer = hashed(paths[at])
        line = " ".join(answer.split())  # an error's text may have lines
        sys.stdout.buffer.write(line.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
