"""Build rushlight: metadata is in pyproject.toml; this file compiles the hot modules with mypyc.

Compiled are the files of `COMPILED`, into one shared library (calls between them are direct) and
one small loader a module. Without a working C compiler, or with RUSHLIGHT_PURE=1, the same sources
are installed to be interpreted. RUSHLIGHT_PURE=0 makes a missing compiler an error.

`python setup.py build_ext --inplace` recompiles a checkout (`make build`): the extension modules
land beside their sources, with `_build.json`, which records what they were compiled from.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from glob import glob

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

# How mypy reads them. What a module that stays interpreted gets wrong must not stop a build: that
# is for `make types` to say.
MYPY = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]

# What mypyc compiles: the one list there is. Packages' __init__.py files stay interpreted, and so
# do files that no ordinary step goes through, for the size of the wheel.
COMPILED = ["src/rushlight/core/**/*.py", "src/rushlight/arrays/norms.py"]
INTERPRETED = {
    "__init__.py", "saved_names.py", "output_meta.py", "hooks.py", "errors.py", "elementwise.py",
    "histories.py", "inplace_tangents.py", "overwritten.py", "packed.py", "lift.py", "vmap.py",
}  # fmt: skip

RECORD = "rushlight/_build.json"


def sources() -> list[str]:
    """The files that COMPILED names, as mypyc wants them: relative to this file's folder."""
    found = {path for pattern in COMPILED for path in glob(pattern, recursive=True)}
    return sorted(path for path in found if os.path.basename(path) not in INTERPRETED)


def why_pure() -> str:
    """The reason not to compile; empty where there is none."""
    wish = os.environ.get("RUSHLIGHT_PURE", "")
    if wish == "1":
        return "RUSHLIGHT_PURE=1"
    trouble = compiler_trouble()
    if trouble and wish == "0":
        raise SystemExit(f"rushlight: RUSHLIGHT_PURE=0 asks for compiled modules, but {trouble}")
    return trouble


def compiler_trouble() -> str:
    """Compile a line of C against Python's headers; what went wrong, or an empty string."""
    from distutils.ccompiler import new_compiler  # setuptools brings it where Python no longer does
    from distutils.sysconfig import customize_compiler, get_python_inc

    with tempfile.TemporaryDirectory() as folder:
        probe = os.path.join(folder, "probe.c")
        with open(probe, "w", encoding="ascii") as file:
            file.write(
                "#include <Python.h>\nint rushlight_probe(void) { return PY_MAJOR_VERSION; }\n"
            )
        stderr = os.dup(2)
        with open(os.path.join(folder, "errors"), "w+b") as errors:
            os.dup2(errors.fileno(), 2)  # the compiler's complaint becomes part of our one line
            try:
                compiler = new_compiler()
                customize_compiler(compiler)
                compiler.compile([probe], output_dir=folder, include_dirs=[get_python_inc()])
            except Exception as error:  # whatever stops it, there is no compiler to be had
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip().splitlines()
                return f"no working C compiler ({said[0] if said else error})"
            finally:
                os.dup2(stderr, 2)
                os.close(stderr)
    return ""


# An instance of a class holds a reference to the class. The code that mypyc 2.4 writes to free an
# instance forgets to give it back, and so does the code that shows it to the garbage collector:
# each tensor of a class made at run time would keep that class alive for ever.
FREED = "    Py_TYPE(self)->tp_free((PyObject *)self);\n"
FREED_WITH_TYPE = """    {
        PyTypeObject *its_type = Py_TYPE(self);
        its_type->tp_free((PyObject *)self);
        Py_DECREF(its_type);
    }
"""
SHOWN = re.compile(r" \*self, visitproc visit, void \*arg\)\n\s*{\n")
SHOWN_WITH_TYPE = r"\g<0>    Py_VISIT(Py_TYPE(self));\n"
# Ordinary programs run a third of the core, by size: `tools/find_hot.py` writes the list. It is
# compiled for speed and the rest for size, which takes a fifth from the library.
HOT_LIST = "setup_hot.txt"
HOT = """#if defined(__GNUC__) && !defined(__clang__)
#define RUSHLIGHT_HOT __attribute__((hot, optimize("O2")))
#else
#define RUSHLIGHT_HOT
#endif
"""
DEFINITION = re.compile(
    r"^[A-Za-z_][\w \*]*?[ \*](?:CPyDef|CPyPy)_(\w+)\([^;{]*\)\s*\{", re.MULTILINE
)
# Where a frame in a traceback says that it is: from the folder of the package, which is on
# `sys.path` wherever rushlight is installed, so that Python finds the line's text.
PLACES = '"src/rushlight/', '"rushlight/'


# Functions with an underscore are called by their module alone, directly, unless it uses them as
# values. What reads arguments that come from elsewhere is left out: a thirtieth of the library.
NAMED = re.compile(r"^ *\{\"(_[a-z]\w*)\", \(PyCFunction\)CPyPy_.*\},\n", re.MULTILINE)
# What loads a module: the library of all compiled ones makes it. mypyc's own asks besides for what
# libraries that depend on each other need, and is twice as large, 38 times.
LOADER = """#include <Python.h>
PyMODINIT_FUNC PyInit_{name}(void) {{
    PyObject *library = PyImport_ImportModule("{library}");
    PyObject *capsule = library ? PyObject_GetAttrString(library, "{init}") : NULL;
    void *make = capsule ? PyCapsule_GetPointer(capsule, "{library}.{init}") : NULL;
    Py_XDECREF(library);
    Py_XDECREF(capsule);
    return make ? ((PyObject *(*)(void))make)() : NULL;
}}
"""


class Generated:
    """The C files of mypyc's, with the references to types counted, what is hot marked, private
    functions without a name, files named as installed, and loaders that do no more than load."""

    def __init__(self) -> None:
        self.before: dict[str, tuple[str, float]] = {}
        for path in glob("build/**/*.c", recursive=True):
            with open(path, encoding="utf-8") as file:
                self.before[os.path.abspath(path)] = file.read(), os.path.getmtime(path)
        with open(HOT_LIST, encoding="utf-8") as file:
            self.hot = set(file.read().split())

    def mark(self, definition: re.Match[str]) -> str:
        """The head of a function, marked if it is on the list."""
        hot = definition[1].replace("___", ".") in self.hot
        return f"RUSHLIGHT_HOT {definition[0]}" if hot else definition[0]

    def mend(self, path: str) -> int:
        """Write the missing lines into one file; how many classes it has."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        classes = text.count(FREED)
        text = SHOWN.sub(SHOWN_WITH_TYPE, text.replace(FREED, FREED_WITH_TYPE))
        text = HOT + DEFINITION.sub(self.mark, text.replace(*PLACES))
        values = set(re.findall(r"/\* '(_\w+)' \*/", text))
        text = NAMED.sub(lambda entry: entry[0] if entry[1] in values else "", text)
        self.write(path, text)
        return classes

    def write(self, path: str, text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        old, when = self.before.get(os.path.abspath(path), ("", 0.0))
        if old == text:  # nothing to compile again
            os.utime(path, (when, when))

    def shorten(self, path: str) -> bool:
        """Write a loader that does no more than load; False if the file is none of mypyc's."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        found = re.search(r'PyCapsule_GetPointer\(capsule, "(\w+)\.(init_\w+)"\)', text)
        name = re.search(r"\bPyInit_(\w+)\(void\)", text)
        if found is None or name is None or "__native" in path:
            return False
        self.write(path, LOADER.format(name=name[1], library=found[1], init=found[2]))
        return True


# For GCC: what is not hot is compiled for size. Nothing to unwind by (no exception passes through
# C), no gaps between functions and loops, no symbols but the one that Python looks for (a call
# inside the library is then direct, which is also faster), and nothing of mypyc's that is not used.
SMALLER = [
    "-Os", "-fvisibility=hidden", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
    "-fno-align-functions", "-fno-align-jumps", "-fno-align-labels", "-fno-align-loops",
    "-ffunction-sections", "-fdata-sections", "-fmerge-all-constants",
]  # fmt: skip
if platform.machine() in ("x86_64", "AMD64"):
    SMALLER.append("-fcf-protection=none")
# Of loaders, besides: nothing of the C library, which they do not use, and no tables to call by.
LOADS = ["-fno-plt"], ["-Wl,-z,norelro", "-nostdlib"]
# No symbol table, no code that would run at the load, the parts of the file without gaps.
PACKED = [
    "-Wl,-s", "-Wl,--gc-sections", "-Wl,-z,noseparate-code", "-Wl,--build-id=none",
    "-Wl,--hash-style=gnu", "-nostartfiles",
]  # fmt: skip


def extensions() -> list[Extension]:
    with ThreadPoolExecutor() as pool:  # the kernels' C is written meanwhile
        written = pool.submit(kernels)
        made = core()
        return [*made, written.result()]


def core() -> list[Extension]:
    """The modules of the core, which mypyc turns into C."""
    from mypyc.build import mypycify

    generated = Generated()
    made = mypycify(
        [*MYPY, *sources()],
        opt_level="2",
        debug_level="0",
        group_name="rushlight",
        strip_asserts=False,
    )
    native = {path for extension in made for path in extension.sources if "__native" in path}
    if not sum(generated.mend(path) for path in sorted(native)):
        # Perhaps it counts the references itself by now: tests/laws/test_lifetimes.py knows.
        print("rushlight: no C of mypyc's that setup.py would mend", file=sys.stderr)
    if sys.platform.startswith("linux"):
        for extension in made:
            extension.extra_link_args = [*extension.extra_link_args, *PACKED]
            extension.extra_compile_args = [*extension.extra_compile_args, *SMALLER]
            if generated.shorten(extension.sources[0]):
                extension.extra_compile_args += LOADS[0]
                extension.extra_link_args += LOADS[1]
    return list(made)


# --- kernels --------------------------------------------------------------------------------------
KERNELS = "build/kernels/_kernels.c"
# Not -ffast-math, which gets NaN, infinities and signed zeros wrong, and no contraction, which
# would round otherwise than NumPy does: see `rushlight.codegen`.
# Loops that are to be SIMD say so themselves: -O3 would but make the rest larger.
EXACT = [
    "-O2", "-ftree-vectorize", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
    "-fopenmp-simd",
]  # fmt: skip
WRITE = "import sys; from rushlight.codegen.build import write; write(sys.argv[1])"


def kernels() -> Extension:
    """The module of kernels, whose C the package itself writes: run from a copy of its sources,
    since compiled modules of an earlier build may lie beside them."""
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            "src/rushlight",
            os.path.join(folder, "rushlight"),
            ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "_build.json"),
        )
        path = os.pathsep.join([folder, *filter(None, sys.path)])  # a build's own packages too
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run(
            [sys.executable, "-c", WRITE, os.path.abspath(KERNELS)], env=environment, check=True
        )
    made = Extension("rushlight._kernels", [KERNELS], include_dirs=[numpy.get_include()])
    if sys.platform != "win32":
        made.extra_compile_args = [*EXACT, "-fvisibility=hidden", "-pthread"]
        made.extra_link_args = ["-pthread"]
    if sys.platform.startswith("linux"):
        made.extra_compile_args += [flag for flag in SMALLER if flag.startswith("-f")]
        made.extra_link_args += ["-Wl,-s", "-Wl,-z,noseparate-code", "-Wl,--build-id=none"]
    return made


def digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def write_record(root: str) -> None:
    """Say under `root` which modules were compiled from which text, or why none was."""
    modules = {
        path.removeprefix("src/").removesuffix(".py").replace("/", "."): digest(path)
        for path in (sources() if not PURE else ())
    }
    target = os.path.join(root, RECORD)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        json.dump({"compiled": modules, "pure_because": PURE}, file, indent=1)
        file.write("\n")


def settle_checkout(keep: set[str]) -> None:
    """Leave in src/ the extension modules `keep` and no other: Python prefers any it finds."""
    for pattern in ("src/rushlight__mypyc.*", "src/rushlight/**/*.so", "src/rushlight/**/*.pyd"):
        for path in glob(pattern, recursive=True):
            if os.path.abspath(path) not in keep:
                os.remove(path)
    write_record("src")


class BuildExt(build_ext):
    """Compile, on all cores; in a checkout also record what was compiled, and remove what no longer
    belongs."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count()

    def run(self) -> None:
        super().run()
        if self.inplace:
            keep = {
                os.path.abspath(self.get_ext_fullpath(ext.name)) for ext in self.extensions or ()
            }
            settle_checkout(keep)


PAGE = "rushlight/viz/page_files"


def join_page(root: str) -> list[str]:
    """Put the style and the scripts of the page under `root` into it: one file packs smaller than
    many. Gives those that are gone."""
    home = os.path.join(root, PAGE)
    gone: list[str] = []

    def read(mark: re.Match[str]) -> str:
        path = os.path.join(home, mark[1])
        gone.append(path)
        with open(path, encoding="utf-8") as file:
            return file.read()

    with open(os.path.join(home, "page.html"), encoding="utf-8") as file:
        text = re.sub(r"@FILE:([\w.]+)@", read, file.read())
    with open(os.path.join(home, "page.html"), "w", encoding="utf-8") as file:
        file.write(text)
    for path in gone:
        os.remove(path)
    return gone


class BuildPy(build_py):
    """Copy the sources, then put the record beside them."""

    joined: tuple[str, ...] = ()

    def run(self) -> None:
        super().run()
        # An editable install leaves the sources in place, and build_ext records what it put there.
        if not self.editable_mode:
            write_record(self.build_lib)
            self.joined = tuple(join_page(self.build_lib))
        elif PURE:
            settle_checkout(set())

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs: list[str] = super().get_outputs(include_bytecode)
        if self.editable_mode:
            return outputs
        kept = [path for path in outputs if path not in self.joined]
        return [*kept, os.path.join(self.build_lib, RECORD)]


class Wheel(bdist_wheel):
    """A wheel packed as tightly as the format allows, which setuptools does not offer."""

    def run(self) -> None:
        super().run()
        for _, _, path in self.distribution.dist_files:
            if path.endswith(".whl"):
                repack(path)


def repack(path: str) -> None:
    """Write an archive anew, with the same files in the same order."""
    tight = path + ".tight"
    with zipfile.ZipFile(path) as loose, zipfile.ZipFile(tight, "w") as archive:
        for entry in loose.infolist():
            archive.writestr(entry, loose.read(entry), zipfile.ZIP_DEFLATED, 9)
    os.replace(tight, path)


BUILDS = {"build", "build_ext", "build_py", "bdist_wheel", "editable_wheel", "develop", "install"}
os.chdir(os.path.dirname(os.path.abspath(__file__)))
# An sdist, or a question about the metadata, needs no compiler.
PURE = why_pure() if BUILDS.intersection(sys.argv) else "nothing is being built"
if PURE and BUILDS.intersection(sys.argv):
    print(f"rushlight: the core stays interpreted, and is slower for it: {PURE}", file=sys.stderr)

setup(
    ext_modules=[] if PURE else extensions(),
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy, "bdist_wheel": Wheel},
)
