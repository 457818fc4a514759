"""Compiling hands back what it was given; what programs set of the compiler is remembered."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch


def double(x: Any) -> Any:
    return 2 * x


def test_compile() -> None:
    net = torch.nn.Linear(2, 1)
    assert torch.compile(double) is double and torch.compile(net) is net
    assert torch.compile(net, fullgraph=True, dynamic=False, backend="eager") is net
    assert torch.compile(mode="reduce-overhead")(double) is double
    assert torch.compiler.compile is torch.compile

    @torch.compile(options={"trace.enabled": True})
    def f(x: Any) -> Any:
        return x + 1

    assert f(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        torch.compile(double, mode="default", options={})


def test_decorators() -> None:
    compiler = torch.compiler
    for fn in (compiler.disable, compiler.disable(), compiler.disable(reason="x"),
               compiler.allow_in_graph, compiler.assume_constant_result, torch._dynamo.disable,
               torch._dynamo.optimize("inductor"), compiler.nested_compile_region,
               compiler.substitute_in_graph(len)):  # fmt: skip
        assert fn(double) is double
    with compiler.set_stance("force_eager"):
        assert not compiler.is_compiling() and not torch._dynamo.is_compiling()


def test_settings_are_remembered() -> None:
    assert torch.compiler.get_default_backend() == "inductor"
    torch._dynamo.config.suppress_errors = True
    assert torch._dynamo.config.suppress_errors
    torch._dynamo.config.suppress_errors = False
    torch._inductor.config.max_autotune = False
    torch._dynamo.reset()
    torch.compiler.reset()


def test_export_and_package_say_that_they_cannot() -> None:
    with pytest.raises(RuntimeError, match="rushlight makes no exported programs"):
        torch.export.export(torch.nn.Linear(1, 1), (torch.ones(1),))
    with pytest.raises(RuntimeError, match="rushlight has no torch.package archives"):
        torch.package.PackageExporter("file")
    with pytest.raises(torch.onnx.OnnxExporterError, match="rushlight cannot export to ONNX"):
        torch.onnx.export(torch.nn.Linear(1, 1), torch.ones(1), "file.onnx")
