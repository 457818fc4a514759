"""`__config__`: what is compiled, and what is stale."""

from __future__ import annotations

import importlib
import sys
import types

import pytest

from rushlight import __config__


def test_config_tells_what_is_compiled() -> None:
    modules = __config__.compiled()
    out = __config__.show()  # text, as in PyTorch, that libraries look into
    assert ("compiled   yes: arrays.norms, core." in out) == bool(modules)
    assert ("compiled   no: " in out) == (not modules)
    for name in modules:
        assert not str(importlib.import_module(name).__file__).endswith(".py")


def test_an_edited_source_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.import_module("rushlight.compat")
    assert __config__.stale() == []
    monkeypatch.setattr(__config__, "compiled", lambda: ["rushlight.compat"])
    monkeypatch.setattr(__config__, "_record", lambda: {"compiled": {"rushlight.compat": "0"}})
    assert __config__.stale() == ["rushlight.compat"]
    monkeypatch.setattr(__config__.os.path, "exists", lambda path: True)
    __config__.check_fresh()  # not written since it was compiled: nobody reads it
    monkeypatch.setattr(__config__.os.path, "getmtime", lambda path: path.endswith("compat.py"))
    module = types.SimpleNamespace(__file__="cli.so")
    monkeypatch.setitem(sys.modules, "rushlight.compat", module)
    with pytest.warns(RuntimeWarning, match=r"rushlight\.compat is older than its source"):
        __config__.check_fresh()
