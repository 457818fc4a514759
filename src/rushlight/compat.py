"""Let programs that say `import torch` run on rushlight.

While installed, `torch` and every `torch.x.y` are the modules `rushlight` and `rushlight.x.y`
themselves (the same objects, not copies). Only `cli` and user programs import this file.

>>> import rushlight
>>> from rushlight import compat
>>> with compat.install():
...     import torch
...     import torch.autograd as autograd
>>> torch is rushlight and autograd is rushlight.autograd
True
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType, TracebackType
from typing import Any

from rushlight import absent
from rushlight.missing import advice, stand_ins

_THEIRS, _OURS = "torch", "rushlight"
_BESIDE = "functorch"  # the library that became torch.func: PyTorch still brings its names


class Installation:
    """What `install` returns: a context manager that takes its own installation back on leaving."""

    def __init__(self, fresh: bool) -> None:
        self._fresh = fresh

    def __enter__(self) -> Installation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        # Nested: the inner `with` found it installed, and leaves it so for the outer one.
        if self._fresh:
            uninstall()


# Libraries walk through `vars` of these, where rushlight imports much when it is first used.
_FILLED = ("torch.optim", "torch.distributions")


class _Loader(Loader):
    """Hands out a module of rushlight's under torch's name."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system made an empty module and takes back whatever is in sys.modules
        # afterwards. Handing ours over in create_module would have it overwrite our __spec__.
        name = module.__name__
        ours = importlib.import_module(_our_name(name))
        sys.modules[name] = ours
        if name in absent.MODULES and not hasattr(ours, "__path__"):
            ours.__path__ = []  # a package: modules in it only say what they lack
        if name in _FILLED:
            for late in ours.__all__:
                getattr(ours, late)
        for child, inner in _shadowed_modules(ours, _our_name(name)).items():
            sys.modules.setdefault(f"{name}.{child}", inner)

    def get_code(self, fullname: str) -> CodeType | None:
        """The program of a module that is run: `python -m torch.distributed.run`."""
        ours = _our_name(fullname)
        spec = importlib.util.find_spec(ours)
        if spec is None or not isinstance(spec.loader, InspectLoader):
            return None
        return spec.loader.get_code(ours)


def _shadowed_modules(package: ModuleType, name: str) -> dict[str, ModuleType]:
    """The modules of a package whose names it gives to something else: `autograd.gradcheck` is a
    function, and a module next to it. The import system sets the attribute whenever it loads a
    module, and would put the module in the function's place; what it finds loaded it leaves alone.
    """
    found: dict[str, ModuleType] = {}
    for child, value in vars(package).items():
        inner = sys.modules.get(f"{name}.{child}")
        if inner is not None and inner is not value:
            found[child] = inner
    return found


class _AbsentLoader(Loader):
    """Makes a module of what rushlight has not, and libraries import: see `absent`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return absent.module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


def _stand_in(name: str) -> ModuleType | None:
    """A module of what rushlight has not, as an attribute of its package."""
    return None if absent.why(name) is None else importlib.import_module(name)


class _Finder(MetaPathFinder):
    """Answers for `torch` and all that begins with `torch.`, before any installed torch is seen;
    for `functorch` too."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _SPAWN:
            return _spawn_spec(path)
        if fullname.startswith(_NAMED):
            return _named_spec(fullname, path)
        if not _is_theirs(fullname):
            return None
        ours = _our_name(fullname)
        if not _exists(ours):
            if absent.why(fullname) is not None:
                return ModuleSpec(fullname, _AbsentLoader(), is_package=True)
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: rushlight stands in for torch in this program, "
                f"and has no module {ours!r}{_advice(fullname)}",
                name=fullname,
            )
        return ModuleSpec(fullname, _Loader(), origin=ours)


_finder = _Finder()


# Note [Processes that start afresh]
# `multiprocessing` may start processes as new interpreters, in which nothing is installed. They are
# first sent what the parent's are like, `sys.argv` among it, and then import its main module. So
# the argument list that is sent installs rushlight where it is unpickled.
_SPAWN = "multiprocessing.spawn"


class _Arguments(list[str]):
    """`sys.argv` on its way to a child process."""

    def __reduce__(self) -> Any:
        return _arrive, (list(self),)


def _arrive(arguments: list[str]) -> list[str]:
    install()
    return arguments


def _send_installation(module: Any) -> None:
    """Have `multiprocessing.spawn` install rushlight in children while it is installed here."""
    prepare = module.get_preparation_data
    if isinstance(prepare, _Preparation):
        return
    module.get_preparation_data = _Preparation(prepare)


class _Preparation:
    def __init__(self, prepare: Any) -> None:
        self.prepare = prepare

    def __call__(self, name: str) -> Any:
        data = self.prepare(name)
        if installed():
            data["sys_argv"] = _Arguments(data["sys_argv"])
        return data


class _SpawnLoader(Loader):
    """Loads `multiprocessing.spawn` as it is, and changes that one function."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        _send_installation(module)


def _spawn_spec(path: Sequence[str] | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(_SPAWN, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _SpawnLoader(spec.loader)
    return spec


# Note [Who we are]
# Libraries look at `torch.__version__` for what PyTorch can do, and at `torch.__name__` and
# `Tensor.__module__` for whose tensors they are given. While installed we answer as PyTorch would:
# the version is the one we follow, and names rushlight in its local part. Classes of `nn` and
# `optim` say `torch.nn.modules.linear`, because programs tell PyTorch's layers from their own by
# how that begins. Most are imported later, so the import system tells us of each file.
_NAMED = ("rushlight.nn", "rushlight.optim", "rushlight.utils.data")
_own_names: list[tuple[Any, str, Any]] = []  # what was there before


def _take_names() -> None:
    import rushlight
    from rushlight import torch_version, version

    for owner, name, value in (
        (rushlight, "__version__", torch_version.__version__),
        (version, "__version__", torch_version.__version__),
        (rushlight, "__name__", _THEIRS),
        (rushlight.Tensor, "__module__", _THEIRS),
    ):
        _rename(owner, name, value)
    for home, module in list(sys.modules.items()):
        if home.startswith(_NAMED):
            _name_classes(module)


def _rename(owner: Any, name: str, value: Any) -> None:
    _own_names.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def _name_classes(module: ModuleType) -> None:
    """Let the classes of a file of ours say where PyTorch has them."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__.startswith(_NAMED):
            _rename(value, "__module__", _THEIRS + value.__module__.removeprefix(_OURS))


class _NamingLoader(Loader):
    """Loads a file of ours as ever, and names its classes."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # the file's own loader from here on, for those who ask how it was loaded
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        if installed():
            _name_classes(module)


def _named_spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _NamingLoader(spec.loader)
    return spec


def _give_names_back() -> None:
    while _own_names:
        setattr(*_own_names.pop())


def _advice(name: str) -> str:
    home, _, last = name.rpartition(".")
    more = advice(home, last, ())
    return f"\n{more}" if more else ""


def _is_theirs(name: str) -> bool:
    return name.partition(".")[0] in (_THEIRS, _BESIDE)


def _our_name(name: str) -> str:
    if name.partition(".")[0] == _BESIDE:
        return f"{_OURS}.{name}"
    return _OURS + name.removeprefix(_THEIRS)


def _exists(ours: str) -> bool:
    if ours in sys.modules:
        return True
    try:
        return importlib.util.find_spec(ours) is not None
    except ModuleNotFoundError as error:  # the parent is missing, or is no package
        if error.name is None or not (ours == error.name or ours.startswith(error.name + ".")):
            raise
        return False


def install() -> Installation:
    """Make `import torch` mean rushlight, until `uninstall` or the end of a `with` over the result.

    Raises RuntimeError where the real torch is already imported: two libraries under one name in
    one program would mix their tensors.

    >>> from rushlight import compat
    >>> with compat.install():
    ...     from torch import tensor
    >>> tensor([1.0, 2.0]) * 3
    tensor([3., 6.])
    """
    if installed():
        return Installation(fresh=False)
    real = sys.modules.get(_THEIRS)
    if real is not None:
        file = getattr(real, "__file__", None) or "an unknown file"
        raise RuntimeError(
            f"torch is already imported, from {file}\n"
            "Call rushlight.compat.install() before anything imports torch, "
            "or write `import rushlight as torch`."
        )
    sys.meta_path.insert(0, _finder)
    stand_ins.append(_stand_in)
    _take_names()
    if _SPAWN in sys.modules:
        _send_installation(sys.modules[_SPAWN])
    return Installation(fresh=True)


def uninstall() -> None:
    """Give the name `torch` back; modules that already imported it keep what they have.

    >>> from rushlight import compat
    >>> installation = compat.install()
    >>> compat.uninstall()
    >>> compat.installed()
    False
    """
    if not installed():
        return
    sys.meta_path.remove(_finder)
    stand_ins.remove(_stand_in)
    _give_names_back()
    for name in [n for n in sys.modules if _is_theirs(n)]:
        del sys.modules[name]


def installed() -> bool:
    """Whether `import torch` means rushlight now.

    >>> from rushlight import compat
    >>> compat.installed()
    False
    """
    return _finder in sys.meta_path


def seed(number: int) -> None:
    """Seed all that a program may draw random numbers from: torch, Python's random and NumPy.

    >>> from rushlight import compat
    >>> compat.seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    import random

    import numpy as np

    import rushlight

    rushlight.manual_seed(number)
    random.seed(number)
    np.random.seed(number % 2**32)
