"""Guest: prints what decides whether this interpreter loads bytecode.

    PYTHON -B facts.py SAMPLE

The last line on stdout is "importaudit-facts " and a JSON object, the fields of
``importaudit.record.Facts``; SAMPLE is what ``hash_sample`` is the hash of. The interpreter starts
as it always does, site and PYTHON* variables included, but for -B: asking must not write the very
bytecode that is asked about. Nothing but its own library is imported.
"""

import sys

if sys.path and sys.path[0] == __file__.rpartition("/")[0]:  # not so under PYTHONSAFEPATH
    del sys.path[0]


def facts(sample: str) -> "dict[str, object]":
    import _imp
    import importlib.util
    import os

    site = sys.modules.get("site")  # not there under -S
    sites = list(site.getsitepackages()) if site is not None else []
    if site is not None and site.ENABLE_USER_SITE:
        sites.append(site.getusersitepackages())
    magic = importlib.util.MAGIC_NUMBER
    return {
        "executable": sys.executable,
        "version": sys.version.split()[0],
        "magic": magic.hex(),
        "cache_tag": sys.implementation.cache_tag,
        "optimize": sys.flags.optimize,
        "pycache_prefix": sys.pycache_prefix,
        "check_hash": _imp.check_hash_based_pycs,
        "dont_write": bool(os.environ.get("PYTHONDONTWRITEBYTECODE")),
        "hash_sample": _imp.source_hash(int.from_bytes(magic, "little"), sample.encode()).hex(),
        "path": [os.path.join(os.getcwd(), entry) for entry in sys.path],
        "sites": sites,
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "platlibdir": sys.platlibdir,
    }


if __name__ == "__main__":
    import json

    sys.stdout.write("\nimportaudit-facts %s\n" % json.dumps(facts(sys.argv[1])))
