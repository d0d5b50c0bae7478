"""Building tiny extension modules for a target interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ASK = (
    "import sysconfig as s;print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'), sep='\\n')"
)

# Loading it takes DLOPEN milliseconds (its constructor sleeps), executing it BODY.
SLOW = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

static void wait_for(long milliseconds) {
    struct timespec left = {milliseconds / 1000, milliseconds %% 1000 * 1000000};
    while (nanosleep(&left, &left)) {}
}

__attribute__((constructor)) static void loaded(void) { wait_for(%(dlopen)d); }

static int execute(PyObject *module) { wait_for(%(body)d); return 0; }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "%(name)s", .m_slots = slots};

PyMODINIT_FUNC PyInit_%(name)s(void) { return PyModuleDef_Init(&definition); }
"""


def build(python: Path, folder: Path, name: str, *, dlopen: int = 0, body: int = 0) -> Path:
    """Build the extension module NAME for PYTHON in FOLDER; skips where that cannot be done."""
    include, suffix = subprocess.check_output([python, "-c", ASK], text=True).splitlines()
    compiler = shutil.which("cc")
    if compiler is None or not Path(include, "Python.h").exists():
        reason = f"no C compiler, or no headers of {python} in {include}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    source = folder / f"{name}.c"
    source.write_text(SLOW % {"name": name, "dlopen": dlopen, "body": body})
    built = folder / f"{name}{suffix}"
    command = [compiler, "-shared", "-fPIC", "-I", include, str(source), "-o", str(built)]
    subprocess.run(command, check=True)
    source.unlink()
    return built
