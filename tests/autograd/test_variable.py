"""What a backward pass calls when it is over: callbacks that were queued."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch


class TestQueuedCallbacks:
    engine: Any = torch.autograd.Variable._execution_engine

    def test_outside_a_pass_there_is_nothing_to_wait_for(self) -> None:
        with pytest.raises(RuntimeError, match="Final callbacks can only be installed during"):
            self.engine.queue_callback(print)

    @pytest.mark.parametrize("create_graph", [False, True])
    def test_they_see_all_gradients(self, create_graph: bool) -> None:
        x, log = torch.ones(2, requires_grad=True), []
        y = x * 2

        def over() -> None:
            log.append((x.grad.tolist(), torch.is_grad_enabled()))
            self.engine.queue_callback(lambda: log.append("and then"))

        y.register_hook(lambda g: self.engine.queue_callback(over))
        y.sum().backward(create_graph=create_graph)
        assert log == [([2.0, 2.0], create_graph), "and then"]
        x.grad = None

    def test_each_pass_has_its_own(self) -> None:
        x, log = torch.ones(2, requires_grad=True), []

        def hook(g: Any) -> None:
            self.engine.queue_callback(lambda: log.append("outer"))
            with torch.enable_grad():
                inner = x * 3
                inner.register_hook(
                    lambda g: self.engine.queue_callback(lambda: log.append("inner"))
                )
                inner.sum().backward()
            log.append("end of hook")

        y = x * 2
        y.register_hook(hook)
        torch.autograd.grad(y.sum(), x)
        assert log == ["inner", "end of hook", "outer"]

    def test_their_errors_reach_the_caller(self) -> None:
        x, log = torch.ones(2, requires_grad=True), []

        def hook(g: Any) -> None:
            self.engine.queue_callback(lambda: 1 / 0)
            self.engine.queue_callback(lambda: log.append("after"))

        y = x * 2
        y.register_hook(hook)
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
        assert log == [] and x.grad.tolist() == [2, 2]

    def test_they_are_not_called_after_a_failure(self) -> None:
        x, log = torch.ones(2, requires_grad=True), []

        def hook(g: Any) -> None:
            self.engine.queue_callback(lambda: log.append("over"))
            raise KeyError("x")

        y = x * 2
        y.register_hook(hook)
        with pytest.raises(KeyError):
            y.sum().backward()
        assert log == [] and self.engine.is_checkpoint_valid()
