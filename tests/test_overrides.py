"""`__torch_function__`: what holds of PyTorch's classes that take over functions, holds here."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from importlib import import_module
from typing import Any, ClassVar

import pytest


def logging_tensor(torch: Any) -> Any:
    class Logged(torch.Tensor):
        seen: ClassVar[list[str]] = []

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func.__name__ != "__get__":
                cls.seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    return Logged


CALLS = {
    "operator": ("x + 1", "add"),
    "operator, on the right": ("1 * x", "mul"),
    "operator, a tensor on the left": ("torch.ones(2) + x", "add"),
    "minus": ("-x", "neg"),
    "difference": ("x - 2", "sub"),
    "quotient": ("x / x", "div"),
    "product of matrices": ("x @ x", "matmul"),
    "method": ("x.exp()", "exp"),
    "function": ("torch.exp(x)", "exp"),
    "function, second argument": ("torch.add(torch.ones(2), x)", "add"),
    "function, keyword": ("torch.add(torch.ones(2), other=x)", "add"),
    "list": ("torch.stack([torch.ones(2), x])", "stack"),
    "index": ("x[0]", "__getitem__"),
    "slice": ("x[:1]", "__getitem__"),
    "view": ("x.reshape(2, 1)", "reshape"),
    "reduction": ("x.sum()", "sum"),
    "in place": ("x.mul_(2)", "mul_"),
    "functional": ("torch.nn.functional.relu(x)", "relu"),
    "linear": ("torch.nn.functional.linear(x, torch.ones(3, 2))", "linear"),
    "namespace": ("torch.linalg.norm(x)", "linalg_norm norm"),
    "factory": ("torch.zeros_like(x)", "zeros_like"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_subclass_sees_each_call_once_and_keeps_its_class(torch: Any, case: str) -> None:
    cls = logging_tensor(torch)
    x = cls([1.0, 2.0])
    code, name = CALLS[case]
    y = eval(code, {"torch": torch, "x": x})
    assert len(cls.seen) == 1 and cls.seen[0] in name.split()
    assert type(y) is cls


def test_results_of_several_parts(torch: Any) -> None:
    cls = logging_tensor(torch)
    found = torch.max(cls([[1.0, 2.0]]), 1)
    assert type(found.values) is cls and type(found.indices) is cls
    assert all(type(y) is cls for y in cls([1.0, 2.0]).split(1))


def test_a_subclass_that_says_nothing_keeps_its_class(torch: Any) -> None:
    class Plain(torch.Tensor):
        pass

    x = Plain([[1.0, 2.0]])
    for y in (x + 1, x.T, x[0], torch.exp(x), x.sum(), -x, 2 - x):
        assert type(y) is Plain
    assert type(torch.ones(2) + 1) is torch.Tensor
    assert repr(Plain([1.0])) == "Plain([1.])"


def test_derivatives_go_through(torch: Any) -> None:
    cls = logging_tensor(torch)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x.as_subclass(cls) ** 2).sum()
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert type(x.grad) is torch.Tensor


def test_metadata_travels_with_results(torch: Any) -> None:
    class Metadata:
        def __init__(self, data: Any, note: str) -> None:
            self._t, self.note = torch.as_tensor(data), note

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            notes = tuple(a.note for a in args if hasattr(a, "note"))
            plain = [getattr(a, "_t", a) for a in args]
            return cls(func(*plain, **(kwargs or {})), notes[0])

    m = Metadata([[1.0], [2.0]], "metres")
    found = torch.add(m, torch.tensor([[1.0]]))
    assert found.note == "metres" and found._t.tolist() == [[2.0], [3.0]]
    assert torch.sum(m).note == "metres"


HANDLED: dict[Any, Any] = {}


class Diagonal:
    """`n` times `value` on a diagonal: no tensor, and nothing of it is stored."""

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in HANDLED:
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


def test_a_class_that_is_no_tensor(torch: Any) -> None:
    HANDLED[torch.mean] = lambda input: input.value / input.n
    d = Diagonal(5, 2.0)
    assert torch.mean(d) == 0.4
    with pytest.raises(TypeError, match="^Multiple dispatch failed for 'torch.exp'"):
        torch.exp(d)
    with pytest.raises(TypeError, match="unsupported operand"):
        torch.ones(2) + d


def test_such_a_class_works_in_a_fresh_process() -> None:
    program = (
        "import rushlight as torch\n"
        "class D:\n    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None): return func.__name__\n"
        "assert torch.exp(D()) == 'exp' and torch.stack([D(), torch.ones(1)]) == 'stack'\n"
        "assert torch.mm(D(), D()) == 'mm'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_subclasses_of_subclasses_answer_first(torch: Any) -> None:
    class Base(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "base", tuple(t.__name__ for t in types)

    class Derived(Base):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "derived", tuple(t.__name__ for t in types)

    a, b = Base([1.0]), Derived([1.0])
    assert torch.add(a, b) == ("derived", ("Derived", "Base"))
    assert a + b == ("derived", ("Derived", "Base"))


def test_switched_off(torch: Any) -> None:
    cls = logging_tensor(torch)
    x = cls([1.0])
    with torch._C.DisableTorchFunctionSubclass():
        y = torch.exp(x) + x
    assert cls.seen == [] and type(y) is torch.Tensor


def test_parameters_take_no_part(torch: Any) -> None:
    p = torch.nn.Parameter(torch.ones(2))
    assert type(p * 2) is torch.Tensor
    assert not torch.overrides.has_torch_function((p,))

    class Mine(torch.nn.Parameter):
        pass

    assert type(Mine(torch.ones(2)) * 2) is torch.Tensor


def test_modes_see_everything(torch: Any) -> None:
    import_module(f"{torch.__name__}.overrides")
    seen = []

    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Names():
        y = torch.ones(2) * 3
        y = torch.nn.functional.relu(y - 1)
        y.add_(1)
    torch.ones(2) * 3
    assert seen == ["ones", "mul", "sub", "relu", "add_"]


def test_modes_nest(torch: Any) -> None:
    order = []

    def mode(name: str) -> Any:
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                order.append(name)
                return func(*args, **(kwargs or {}))

        return Mode()

    x = torch.ones(1)
    with mode("outer"), mode("inner"):
        torch.exp(x)
    assert order == ["inner", "outer"]


def test_a_mode_is_of_one_thread(torch: Any) -> None:
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    with Mode():
        other = threading.Thread(target=lambda: torch.exp(x) + 1)
        other.start()
        other.join()
    assert seen == []


def test_helpers(torch: Any) -> None:
    o = import_module(f"{torch.__name__}.overrides")
    assert o.resolve_name(torch.add) == "torch.add"
    assert o.is_tensor_like(torch.ones(1)) and o.is_tensor_like(Diagonal(1, 1.0))
    assert not o.is_tensor_like([1.0])
    assert o.is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert torch.nn.functional.relu in o.get_overridable_functions()[torch.nn.functional]

    @o.wrap_torch_function(lambda a, b=None: (a, b))
    def mine(a: Any, b: Any = None) -> Any:
        return "plain"

    HANDLED[mine] = lambda a, b=None: "taken over"
    assert mine(torch.ones(1)) == "plain"
    assert mine(torch.ones(1), Diagonal(1, 1.0)) == "taken over"


class Kept(import_module("rushlight").Tensor):  # type: ignore[misc]
    pass


def test_subclasses_are_pickled_and_weak() -> None:
    import rushlight as torch

    x = torch.tensor([1.0, 2.0]).as_subclass(Kept)
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Kept and y.tolist() == [1.0, 2.0]


def test_functions_look_the_same_afterwards() -> None:
    """Code is exchanged; names, defaults, signatures and sources stay."""
    program = (
        "import inspect, rushlight as torch\n"
        "fns = [torch.mm, torch.sum, torch.nn.functional.relu, torch.cat, torch.Tensor.permute]\n"
        "def facts(f): return str(inspect.signature(f)), f.__doc__, inspect.getsource(f)\n"
        "before = [facts(f) for f in fns]\n"
        "class T(torch.Tensor): pass\n"
        "assert [facts(f) for f in fns] == before\n"
        "x = torch.ones(2, 2, requires_grad=True)\n"
        "torch.sum(torch.mm(x, x), 0, keepdim=True).sum().backward()\n"
        "assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]\n"
        "try: torch.mm(x, 1)\n"
        "except TypeError as e: assert str(e).startswith('mm(): argument'), e\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_frames_can_be_looked_at_afterwards() -> None:
    """A debugger reads the local names of every frame that an error went through."""
    program = (
        "import rushlight as torch\n"
        "class T(torch.Tensor): pass\n"
        "for fn, x in (torch.mm, 1), (torch.sum, torch.ones(2)), (torch.from_file, ''):\n"
        "    try: fn(x, 'no dimension')\n"
        "    except (TypeError, OSError) as error: trace = error.__traceback__\n"
        "    while trace is not None:\n"
        "        frame, trace = trace.tb_frame, trace.tb_next\n"
        "        while frame is not None: frame.f_locals, (frame := frame.f_back)\n"
        "for fn in torch.mm, torch.sum: assert fn.__code__.co_freevars or not fn.__closure__\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_library_itself_switches_nothing_on() -> None:
    program = (
        "import rushlight.nn, rushlight.optim\n"
        "from rushlight.ops import fill_rest, overriding\n"
        "fill_rest()\n"
        "assert not overriding._switched\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_operands_of_einsum_are_shown_one_by_one(torch: Any) -> None:
    seen: list[Any] = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.einsum:
                seen.append(len(args))
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2, 2).as_subclass(Seen)
    torch.einsum("ij,jk->ik", [x, x])
    torch.einsum("ij,jk->ik", x, x)
    assert seen == [3, 3]
