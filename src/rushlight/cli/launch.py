"""`rushlight run`: a program runs as under Python itself, with torch being rushlight.

`command` reads the options; `_run` finds the program; `_launch` runs it, and is the only frame of
ours that a traceback would show: `_users` takes it out.
"""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, cast

from rushlight import compat
from rushlight.cli import refuse, show_help
from rushlight.cli.options import USAGE, Options, Wrong, parse

if TYPE_CHECKING:
    from rushlight.cli.watch import Watch


def command(arguments: list[str]) -> int:
    """Run a program, and tell about the run what the options ask for."""
    if arguments[:1] in (["-h"], ["--help"]):
        return show_help(USAGE)
    try:
        options = parse(arguments)
    except Wrong as trouble:
        return refuse(str(trouble), USAGE)
    if options.seed is not None:
        compat.seed(options.seed)
    _tell_rank()
    if not (options.looks_at_passes or options.profile):
        return _run(options)
    return _run_watched(options)


def _tell_rank() -> None:
    """Under `mpiexec`: set RANK and the others, which programs for torchrun read."""
    if "PMI_RANK" in os.environ or "OMPI_COMM_WORLD_RANK" in os.environ:
        from rushlight.distributed.rendezvous import place_by_mpi, tell_environment

        if (place := place_by_mpi()) is not None:
            tell_environment(place)


def _run_watched(options: Options) -> int:
    """Run it while someone looks on, who reports when it is over, however it ended."""
    from rushlight.cli.watch import Watch

    watch = Watch(options)
    complete = True
    try:
        status = _run(options, watch)
    finally:
        if watch.started:
            complete = watch.report()
    return status or (not complete)


def _run(options: Options, watch: Watch | None = None) -> int:
    """Run a program as Python would; its exit status and its traceback are Python's own."""
    if not options.program:
        return refuse("run wants a script, -m module or -c code", USAGE)
    first, *rest = options.program
    if first in ("-m", "-c"):
        if not rest:
            return refuse(f"run {first} wants an argument", USAGE)
        what, *rest = rest
        if first == "-c":
            return _launch(lambda: _execute(what, "<string>", None), ["-c", *rest], "", watch)
        return _launch(
            lambda: runpy.run_module(what, run_name="__main__", alter_sys=True),
            ["-m", *rest],  # run_module puts the module's file in the place of -m
            os.getcwd(),
            watch,
        )
    if first.startswith("-") and first != "-":
        return refuse(f"unknown option of run: {first}", USAGE)
    return _run_script(first, rest, watch)


def _run_script(path: str, rest: list[str], watch: Watch | None) -> int:
    argv = [path, *rest]
    if path == "-":
        return _launch(lambda: _execute(sys.stdin.read(), "<stdin>", None), argv, "", watch)
    full = os.path.join(os.getcwd(), path)  # what Python makes of it for __file__ and tracebacks
    if pkgutil.get_importer(full) is not None:  # a folder or an archive, with a __main__ in it
        spec = PathFinder.find_spec("__main__", [full])
        if spec is None or spec.loader is None:
            print(f"rushlight: can't find '__main__' module in {full!r}", file=sys.stderr)
            return 1
        # Loaders of folders and of archives have get_code, but share no class that says so.
        code = cast(CodeType, cast(InspectLoader, spec.loader).get_code("__main__"))
        origin = spec.origin
        return _launch(lambda: _execute(code, "", origin), argv, full, watch)
    try:
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        trouble = f"can't open file {full!r}: [Errno {error.errno}] {error.strerror}"
        print(f"rushlight: {trouble}", file=sys.stderr)
        return 2
    folder = os.path.dirname(os.path.realpath(full))
    return _launch(lambda: _execute(source, full, full), argv, folder, watch)


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


def _launch(
    program: Callable[[], object], argv: list[str], folder: str, watch: Watch | None
) -> int:
    sys.argv[:] = argv
    if not sys.flags.safe_path:  # with -P, Python puts no folder first, and so do we
        sys.path[0] = folder
    compat.install()
    if watch is not None:
        watch.start()
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
    folder = os.path.dirname(__file__)
    ours = {os.path.join(folder, name) for name in ("__init__.py", "launch.py")}
    ours |= {os.path.join(os.path.dirname(folder), "__main__.py"), runpy.__file__}
    launched = False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name in ours or name.startswith("<frozen "):
            launched = True
        elif launched:
            return trace
        trace = trace.tb_next
    return None
