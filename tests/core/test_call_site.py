"""Errors in a backward pass name lines of the user's program, with no mode switched on.

The lines in question end in a comment, `# made: name`; an error must name the file, the number and
the text of each that it is about.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function
from rushlight.utils.checkpoint import checkpoint

SOURCE = Path(__file__).read_text("utf-8").splitlines()


def line(mark: str) -> str:
    """The marked line, as errors name it."""
    (found,) = [i for i, text in enumerate(SOURCE, 1) if text.endswith(f"# {mark}")]
    return f"test_call_site.py:{found}     {SOURCE[found - 1].strip()}"


def said(error: BaseException) -> str:
    """All that a traceback would show of an error."""
    return "".join(traceback.format_exception_only(error))


def ones(n: int = 3) -> Any:
    return torch.ones(n, requires_grad=True)


class Square(Function):
    """x², the plain way."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


# --- graphs that are gone -------------------------------------------------------------------------
def test_a_freed_graph_names_the_call_that_freed_it() -> None:
    y = ones().exp().sum()  # made: freed
    y.backward()  # freed by: backward
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second") as e:
        y.backward()
    assert f"ExpBackward0 was made at {line('made: freed')}" in str(e.value)
    assert f"freed by {line('freed by: backward')}" in str(e.value)


def test_grad_frees_too() -> None:
    x = ones()
    y = (x * x).sum()
    torch.autograd.grad(y, x)  # freed by: grad
    with pytest.raises(RuntimeError) as e:
        torch.autograd.grad(y, x)
    assert line("freed by: grad") in str(e.value)


def free(y: Any) -> None:
    y.backward()  # freed by: a function of mine


def test_the_line_is_the_innermost_of_the_users() -> None:
    y = ones().exp().sum()
    free(y)
    with pytest.raises(RuntimeError) as e:
        y.backward()
    assert line("freed by: a function of mine") in str(e.value)


@pytest.mark.parametrize("kind", ["function", "view", "several", "packed"])
def test_every_kind_of_node_knows_who_freed_it(kind: str) -> None:
    x = ones()
    if kind == "function":
        y = Square.apply(x)  # made: function
    elif kind == "view":
        y = x * 1
        y[0] *= 2  # made: view
    elif kind == "several":
        y = x.sort()[0]  # made: several
    else:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x.square()  # made: packed
    y.sum().backward()  # freed by: any
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second") as e:
        y.sum().backward()
    assert line(f"made: {kind}") in str(e.value) and line("freed by: any") in str(e.value)


def test_a_saved_value_that_is_gone() -> None:
    y = ones().exp()
    y.sum().backward()  # freed by: before reading
    with pytest.raises(RuntimeError) as e:
        y.grad_fn._saved_result
    assert line("freed by: before reading") in str(e.value)


def test_a_pass_inside_a_pass_frees() -> None:
    x = ones()
    inner = x.exp().sum()
    y = x * 2
    y.register_hook(lambda g: inner.backward())  # freed by: a hook
    y.sum().backward()
    with pytest.raises(RuntimeError) as e:
        inner.backward()
    assert line("freed by: a hook") in str(e.value)


def test_another_thread_frees() -> None:
    y = ones().exp().sum()

    def work() -> None:
        y.backward()  # freed by: a thread

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError) as e:
        y.backward()
    assert line("freed by: a thread") in str(e.value)


# --- values that were overwritten -----------------------------------------------------------------
def check_overwritten(error: Any, mark: str, node: str) -> None:
    text = str(error.value)
    assert text.startswith("one of the variables needed for gradient computation has been modified")
    assert f"saved for {node} at {line(f'saved: {mark}')}" in text
    assert f"overwritten at {line(f'written: {mark}')}" in text


def test_an_overwritten_value_names_both_lines() -> None:
    h = ones() * 1
    y = h.exp() * h  # saved: value
    h += 1  # written: value
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    check_overwritten(e, "value", "MulBackward0")
    assert (
        "[torch.FloatTensor [3]], which is output 0 of Mul, is at version 1; expected version 0"
        in (str(e.value))
    )


def test_a_value_saved_twice_has_one_version() -> None:
    h = ones() * 1
    y = h * h
    h += 1
    h += 1
    with pytest.raises(RuntimeError, match="is at version 2; expected version 0 instead"):
        y.sum().backward()


def test_of_two_overwritten_values_the_first_read_is_named() -> None:
    a, b = ones() * 1, ones() * 1
    y = a * b
    b += 1
    b += 1
    a += 1
    with pytest.raises(RuntimeError, match="is at version 2; expected version 0 instead"):
        y.sum().backward()


def test_an_overwritten_result() -> None:
    y = ones().exp()  # saved: result
    y.mul_(2)  # written: result
    with pytest.raises(RuntimeError, match="which is output 0 of Exp,") as e:
        y.sum().backward()
    check_overwritten(e, "result", "ExpBackward0")


def test_written_through_a_view() -> None:
    h = ones() * 1
    y = h.square()  # saved: view
    h[1:].zero_()  # written: view
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    check_overwritten(e, "view", "PowBackward0")


def test_written_by_an_optimiser() -> None:
    layer = torch.nn.Linear(3, 1)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
    y = layer(ones()).sum()  # saved: optimiser
    y.backward(retain_graph=True)
    optimiser.step()  # written: optimiser
    with pytest.raises(RuntimeError) as e:
        y.backward()
    text = str(e.value)
    assert line("saved: optimiser") in text and line("written: optimiser") in text


def test_written_by_what_autograd_cannot_see() -> None:
    h = ones() * 1
    y = h.square()  # saved: unseen
    torch.autograd.graph.increment_version(h)  # written: unseen
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    check_overwritten(e, "unseen", "PowBackward0")


def test_saved_by_a_function() -> None:
    h = ones() * 1
    y = Square.apply(h)  # saved: function
    with torch.no_grad():
        h.zero_()  # written: function
    with pytest.raises(RuntimeError) as e:
        y.sum().backward()
    check_overwritten(e, "function", "SquareBackward")


# --- errors of one's own --------------------------------------------------------------------------
class Fails(Function):
    """Its backward raises whatever `error` makes."""

    error: Callable[[], BaseException]

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise Fails.error()


@pytest.mark.parametrize(
    "error", [lambda: ValueError("mine"), lambda: KeyError(3), ZeroDivisionError]
)
def test_an_error_in_a_function_names_the_forward_line(error: Any) -> None:
    Fails.error = error
    y = Fails.apply(ones())  # made: fails
    with pytest.raises((ValueError, KeyError, ZeroDivisionError)) as e:
        y.sum().backward()
    assert f"in the backward of FailsBackward, made at {line('made: fails')}" in said(e.value)
    assert str(e.value) == str(error())  # what handlers see is what was raised


def test_an_error_of_ones_own_keeps_its_type() -> None:
    Fails.error = lambda: ValueError("operands could not be broadcast together: (2,) (3,)")
    with pytest.raises(ValueError, match="^operands could not be broadcast together"):
        Fails.apply(ones()).sum().backward()


def test_leaving_the_program_is_no_error_of_a_node() -> None:
    Fails.error = KeyboardInterrupt
    y = Fails.apply(ones())
    with pytest.raises(KeyboardInterrupt) as e:
        y.sum().backward()
    assert said(e.value) == "KeyboardInterrupt\n"


class Misfit(Function):
    """Its backward returns a gradient of another shape."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g[:2]


def test_a_gradient_that_does_not_fit() -> None:
    y = Misfit.apply(ones())  # made: misfit
    with pytest.raises(RuntimeError, match="returned an invalid gradient at index 0") as e:
        y.sum().backward()
    assert line("made: misfit") in said(e.value)


@pytest.mark.parametrize("kind", ["tensor", "pre", "post", "result"])
def test_an_error_in_a_hook_names_the_forward_line(kind: str) -> None:
    y = ones() * 2  # made: hooked

    def fail(*args: Any) -> None:
        raise LookupError("mine")

    if kind == "tensor":
        y.register_hook(fail)
    elif kind == "pre":
        y.grad_fn.register_prehook(fail)
    elif kind == "post":
        y.grad_fn.register_hook(fail)
    else:
        y.register_hook(lambda g: g.double())
    with pytest.raises((LookupError, RuntimeError)) as e:
        y.sum().backward()
    assert f"in the backward of MulBackward0, made at {line('made: hooked')}" in said(e.value)


def test_an_error_in_a_hook_of_a_leaf_says_which() -> None:
    x = ones()
    x.register_hook(lambda g: [][1])
    with pytest.raises(IndexError) as e:
        (x * 2).sum().backward()
    assert "in giving a leaf of shape [3] its gradient, or in its hooks" in said(e.value)


def test_an_error_in_unpacking_names_the_forward_line() -> None:
    def fail(t: Any) -> None:
        raise OSError("gone")

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, fail):
        y = ones().exp()  # made: packed away
    with pytest.raises(OSError, match="gone") as e:
        y.sum().backward()
    assert line("made: packed away") in said(e.value)


def test_a_value_unpacked_in_another_shape() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: torch.ones(2)):
        y = ones().square()  # made: misshapen
    with pytest.raises(RuntimeError, match="^The size of tensor a .3. must match") as e:
        y.sum().backward()
    assert line("made: misshapen") in said(e.value)


def test_passes_inside_passes_tell_the_whole_way() -> None:
    Fails.error = lambda: ValueError("deep")
    inner = Fails.apply(ones())  # made: inner
    y = ones() * 2  # made: outer
    y.register_hook(lambda g: inner.backward(g))
    with pytest.raises(ValueError, match="deep") as e:
        y.sum().backward()
    text = said(e.value)
    assert text.index(line("made: inner")) < text.index(line("made: outer"))


def test_second_derivatives_name_the_call_that_recorded_them() -> None:
    x = ones()
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)  # made: recorded
    h = g.sum()
    h.backward()
    with pytest.raises(RuntimeError, match="second time") as e:
        h.backward()
    assert line("made: recorded") in str(e.value)


def test_inside_a_checkpoint() -> None:
    def part(x: Any) -> Any:
        return Fails.apply(x.exp())  # made: checkpointed

    Fails.error = lambda: ValueError("mine")
    y = checkpoint(part, ones(), use_reentrant=False)
    with pytest.raises(ValueError, match="mine") as e:
        y.sum().backward()
    assert line("made: checkpointed") in said(e.value)


def test_code_without_a_file() -> None:
    names: dict[str, Any] = {"torch": torch, "Fails": Fails, "x": ones()}
    Fails.error = lambda: ValueError("mine")
    exec("y = Fails.apply(x)", names)
    with pytest.raises(ValueError, match="mine") as e:
        names["y"].sum().backward()
    assert "made at <string>:1" in said(e.value)


def test_inputs_that_were_not_used_say_where_they_were_made() -> None:
    x = ones()
    other = ones() * 2  # made: unused
    with pytest.raises(RuntimeError, match="^The differentiated Tensor at index 1 appears") as e:
        torch.autograd.grad((x * 2).sum(), [x, other])
    assert line("made: unused") in str(e.value)
