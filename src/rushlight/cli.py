"""The `rushlight` command: run programs written for torch, say what is installed.

    rushlight run script.py [args…]     as `python script.py [args…]`, with torch being rushlight
    rushlight run -m module [args…]     as `python -m module [args…]`
    rushlight run -c code [args…]       as `python -c code [args…]`
    rushlight info                      versions, and what is compiled
    rushlight kernels                   the names of the kernels that rushlight writes
    rushlight kernels show softmax      the C of those whose name has this in it
    rushlight --version

The entry point of the installed command.
"""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable, Sequence
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import cast

from rushlight import __config__, compat
from rushlight._version import __version__

USAGE = """\
usage: rushlight run script.py [args...]    run a script in which `import torch` means rushlight
       rushlight run -m module [args...]    the same for a module
       rushlight run -c code [args...]      the same for code given here
       rushlight info                       versions of everything, and what is compiled
       rushlight kernels [show NAME]        the kernels that rushlight writes, or the C of some
       rushlight --version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; the result is the exit status.

    >>> main(["--version"])
    rushlight 0.1.0
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        return _usage("")
    command, *rest = arguments
    if command in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if command in ("-V", "--version"):
        print(f"rushlight {__version__}")
        return 0
    if command == "info":
        if rest:
            return _usage("info takes no arguments")
        print(__config__.show())
        return 0
    if command == "kernels":
        return _kernels(rest)
    if command == "run":
        if rest[:1] in (["-h"], ["--help"]):
            print(USAGE, end="")
            return 0
        return _run(rest)
    return _usage(f"unknown command: {command}")


def _kernels(arguments: list[str]) -> int:
    """Print the names of the kernels, or the C of some."""
    from rushlight.codegen.build import show

    if arguments and (arguments[0] != "show" or len(arguments) != 2):
        return _usage("kernels takes nothing, or show and a name")
    found = show(arguments[1] if arguments else None)
    if not found:
        print(f"rushlight: no kernel has {arguments[1]!r} in its name", file=sys.stderr)
        return 1
    print(found)
    return 0


def _usage(trouble: str) -> int:
    if trouble:
        print(f"rushlight: {trouble}", file=sys.stderr)
    print(USAGE, end="", file=sys.stderr)
    return 2


def _run(arguments: list[str]) -> int:
    """Run a program as Python would; its exit status and its traceback are Python's own."""
    if not arguments:
        return _usage("run wants a script, -m module or -c code")
    first, *rest = arguments
    if first in ("-m", "-c"):
        if not rest:
            return _usage(f"run {first} wants an argument")
        what, *rest = rest
        if first == "-c":
            return _launch(lambda: _execute(what, "<string>", None), ["-c", *rest], "")
        return _launch(
            lambda: runpy.run_module(what, run_name="__main__", alter_sys=True),
            ["-m", *rest],  # run_module puts the module's file in the place of -m
            os.getcwd(),
        )
    if first.startswith("-") and first != "-":
        return _usage(f"unknown option of run: {first}")
    return _run_script(first, rest)


def _run_script(path: str, rest: list[str]) -> int:
    argv = [path, *rest]
    if path == "-":
        return _launch(lambda: _execute(sys.stdin.read(), "<stdin>", None), argv, "")
    full = os.path.join(os.getcwd(), path)  # what Python makes of it for __file__ and tracebacks
    if pkgutil.get_importer(full) is not None:  # a folder or an archive, with a __main__ in it
        spec = PathFinder.find_spec("__main__", [full])
        if spec is None or spec.loader is None:
            print(f"rushlight: can't find '__main__' module in {full!r}", file=sys.stderr)
            return 1
        # Loaders of folders and of archives have get_code, but share no class that says so.
        code = cast(CodeType, cast(InspectLoader, spec.loader).get_code("__main__"))
        origin = spec.origin
        return _launch(lambda: _execute(code, "", origin), argv, full)
    try:
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        trouble = f"can't open file {full!r}: [Errno {error.errno}] {error.strerror}"
        print(f"rushlight: {trouble}", file=sys.stderr)
        return 2
    folder = os.path.dirname(os.path.realpath(full))
    return _launch(lambda: _execute(source, full, full), argv, folder)


def _execute(program: str | bytes | CodeType, name: str, path: str | None) -> None:
    """Run source or code as the module __main__, which stays: atexit and pickle look for it."""
    if not isinstance(program, CodeType):
        program = compile(program, name, "exec", dont_inherit=True)
    module = ModuleType("__main__")
    if path is not None:
        module.__file__ = path
        module.__loader__ = SourceFileLoader("__main__", path)
        vars(module)["__cached__"] = None
    vars(module)["__builtins__"] = builtins
    vars(module)["__annotations__"] = {}
    _retired.append(sys.modules["__main__"])
    sys.modules["__main__"] = module
    exec(program, vars(module))


# The launcher's own __main__, kept alive: its globals are those of running frames.
_retired: list[ModuleType] = []


def _launch(program: Callable[[], object], argv: list[str], folder: str) -> int:
    sys.argv[:] = argv
    if not sys.flags.safe_path:  # with -P, Python puts no folder first, and so do we
        sys.path[0] = folder
    compat.install()
    try:
        program()
    except SystemExit:
        raise
    except BaseException:
        # Let Python itself report the error and choose the exit status (130 after Ctrl-C);
        # only the frames between it and the user's program are taken out of the report.
        report = sys.excepthook

        def report_without_us(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            report(kind, error.with_traceback(_users(trace)), _users(trace))

        sys.excepthook = report_without_us
        raise
    return 0


def _users(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that is neither this file's nor the import machinery's."""
    ours = {__file__, os.path.join(os.path.dirname(__file__), "__main__.py"), runpy.__file__}
    launched = False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in ours or name.startswith("<frozen "):
            launched = True
        elif launched:
            return trace
        trace = trace.tb_next
    return None
