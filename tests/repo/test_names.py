"""Names: what programs and other people's test helpers look up, copy and probe."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import pickle
from typing import Any

import pytest

import rushlight as torch
from tests import harness


@torch.library.custom_op("tests_names::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def named() -> dict[str, Any]:
    """One of each kind of object that stands for a name of an op."""
    aten = torch.ops.aten
    mine = torch.ops.tests_names
    return {
        "aten packet": aten.slice,
        "aten overload": aten.slice.Tensor,
        "namespace": mine,
        "packet": mine.twice,
        "overload": mine.twice.default,
    }


@pytest.mark.parametrize("kind", named())
def test_names_of_ops_are_copied_and_pickled_by_name(kind: str) -> None:
    one = named()[kind]
    assert copy.deepcopy(one) is one
    assert copy.copy(one) is one
    assert copy.deepcopy({"op": [one]}) == {"op": [one]}
    assert pickle.loads(pickle.dumps(one)) is one


@pytest.mark.parametrize("kind", [*named(), "ops", "aten"])
def test_probing_names_of_ops_ends(kind: str) -> None:
    one = {**named(), "ops": torch.ops, "aten": torch.ops.aten}[kind]
    for probe in ("__wrapped__", "__array_interface__", "__array_struct__", "_ipython_display_"):
        assert not hasattr(one, probe)
        # one whose `__init__` has not run, as copying and unpickling make it
        if not inspect.ismodule(one):
            assert not hasattr(object.__new__(type(one)), probe)
    assert inspect.unwrap(one) is one


# --- the order of arguments before PyTorch 1.5 ----------------------------------------------------
ONE, M, B = (2,), (2, 2), (1, 2, 2)
OLD: list[tuple[str, tuple[Any, ...], Any]] = [
    ("add", (ONE, 2, ONE), 3.0), ("sub", (ONE, 2, ONE), -1.0), ("add_", (ONE, 2, ONE), 3.0),
    ("sub_", (ONE, 2, ONE), -1.0), ("addcmul", (ONE, 2, ONE, ONE), 3.0),
    ("addcdiv", (ONE, 2, ONE, ONE), 3.0), ("addcmul_", (ONE, 2, ONE, ONE), 3.0),
    ("addcdiv_", (ONE, 2, ONE, ONE), 3.0), ("addmm", (2, M, 3, M, M), 8.0),
    ("addmm", (2, M, M, M), 4.0), ("addmv", (2, ONE, 3, M, ONE), 8.0),
    ("addmv", (2, ONE, M, ONE), 4.0), ("addr", (2, M, 3, ONE, ONE), 5.0),
    ("addr", (2, M, ONE, ONE), 3.0), ("addbmm", (2, M, 3, B, B), 8.0),
    ("addbmm", (2, M, B, B), 4.0), ("baddbmm", (2, B, 3, B, B), 8.0),
    ("baddbmm", (2, B, B, B), 4.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "each"), OLD)
def test_arguments_in_their_old_order(
    name: str, given: tuple[Any, ...], each: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rushlight.ops.old_forms import warned

    def drawn() -> list[Any]:
        return [torch.ones(x) if isinstance(x, tuple) else x for x in given]

    plain = name.removesuffix("_")
    monkeypatch.setattr(warned, "already", False)
    args = drawn()
    with pytest.warns(UserWarning, match=rf"This overload of {plain} is deprecated:\n\t{plain}\("):
        y = args[0].sub_(*args[1:]) if name == "sub_" else getattr(torch.Tensor, name)(*args)
    assert set(y.flatten().tolist()) == {each}
    if name.endswith("_"):
        assert y is args[0]
    args = drawn()  # as a method the tensor comes first; PyTorch has warned already
    first = next(i for i, x in enumerate(args) if isinstance(x, torch.Tensor))
    self = args.pop(first)
    assert set(getattr(self, name)(*args).flatten().tolist()) == {each}


def test_old_order_warns_as_pytorch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight.ops.old_forms import warned

    monkeypatch.setattr(warned, "already", False)
    with pytest.warns(UserWarning) as seen:
        torch.add(torch.ones(2), 2, torch.ones(2))
        torch.addcmul(torch.ones(2), 2, torch.ones(2), torch.ones(2))  # once in a program
    assert [str(w.message) for w in seen] == [
        "This overload of add is deprecated:\n"
        "\tadd(Tensor input, Number alpha, Tensor other, *, Tensor out = None)\n"
        "Consider using one of the following signatures instead:\n"
        "\tadd(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)"
    ]
    assert seen[0].filename == __file__
    for args in ((2, torch.ones(2), torch.ones(2)), (torch.ones(2), 2, torch.ones(2), 3)):
        with pytest.raises(TypeError, match=r"add\(\) takes 2 positional arguments but"):
            torch.add(*args)
    with pytest.raises(TypeError, match=r"addmm\(\) takes 3 positional arguments but 4 were given"):
        torch.addmm(*[torch.ones(2, 2)] * 4)


# --- small names that programs and test helpers touch ---------------------------------------------
def test_levels_of_forward_mode_are_shown() -> None:
    forward_ad = torch.autograd.forward_ad
    assert forward_ad._current_level == -1
    with forward_ad.dual_level():
        assert forward_ad._current_level == 0
    assert forward_ad._current_level == -1
    assert not hasattr(forward_ad, "_no_such_name")


def test_types_and_version() -> None:
    assert isinstance(1.5, torch.types.Number) and isinstance("cpu", torch.types.Device)
    assert isinstance(torch.Size([1]), torch.types._size)
    assert torch.types._int is int and torch.types._dtype is torch.dtype
    assert torch.types.Storage is torch.TypedStorage
    assert torch.version.__version__ == torch.__version__
    assert torch.version.cuda is None and torch.version.hip is None and not torch.version.debug
    with torch.utils._mode_utils.no_dispatch():
        assert torch.utils._mode_utils.all_same_mode([1, 1])


def test_all_modules_are_listed() -> None:
    modules, module = torch.nn.modules, torch.nn.Module
    there = {n for n, x in vars(modules).items() if isinstance(x, type) and issubclass(x, module)}
    assert set(modules.__all__) == there and len(modules.__all__) == len(there)


def test_settings_are_remembered() -> None:
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.get_deterministic_debug_mode() == 0
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 1
        torch.set_deterministic_debug_mode("error")
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 2
        torch.set_warn_always(True)
        assert torch.is_warn_always_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_warn_always(False)
    with pytest.raises(RuntimeError, match="invalid value of debug_mode, expected one of"):
        torch.set_deterministic_debug_mode("loud")


def test_broadcast_shapes() -> None:
    assert torch.broadcast_shapes() == torch.Size([])
    assert torch.broadcast_shapes((1, 3), (0, 1, 1), torch.Size([])) == torch.Size([0, 1, 3])
    assert torch.broadcast_shapes(2, [1, 2]) == torch.Size([1, 2])
    with pytest.raises(RuntimeError) as error:
        torch.broadcast_shapes((2, 3), (2,))
    assert str(error.value) == (
        "Attempting to broadcast a dimension of length 2 at -1! Mismatching argument at index 1 "
        "had (2,); but expected shape should be broadcastable to [2, 3]"
    )
    with pytest.raises(ValueError, match="Attempting to broadcast a dimension with negative"):
        torch.broadcast_shapes((-1,))


# --- what a backward pass calls when it is over ---------------------------------------------------
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


# --- functorch ------------------------------------------------------------------------------------
class TestFunctorch:
    def test_a_module_with_buffers(self) -> None:
        from rushlight import functorch

        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        with pytest.warns(FutureWarning, match="`functorch.make_functional_with_buffers` is dep"):
            f, params, buffers = functorch.make_functional_with_buffers(net)
        assert f.param_names == ("0.weight", "0.bias", "1.weight", "1.bias")
        assert f.buffer_names == ("1.running_mean", "1.running_var", "1.num_batches_tracked")
        assert all(p.requires_grad for p in params) and params[0] is not net[0].weight
        x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
        y = f(params, buffers, x)
        assert torch.equal(y, net(x))
        zeros = [torch.zeros_like(p) for p in params]
        assert f(zeros, buffers, x).tolist() == [[0.0] * 3] * 2
        with (
            pytest.warns(FutureWarning, match="Please use `torch.func.functional_call` instead"),
            pytest.raises(RuntimeError, match="`model` has buffers"),
        ):
            functorch.make_functional(net)

    def test_parameters_that_are_one_stay_one(self) -> None:
        from rushlight import functorch

        net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2))
        net[1].weight = net[0].weight
        with pytest.warns(FutureWarning):
            f, params = functorch.make_functional(net, disable_autograd_tracking=True)
        assert len(params) == 2 and not any(p.requires_grad for p in params)
        eye = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        assert f((eye, torch.zeros(2)), torch.tensor([[3.0, 4.0]])).tolist() == [[3.0, 4.0]]

    def test_an_ensemble(self) -> None:
        from rushlight import functorch

        models = [torch.nn.Linear(2, 1) for _ in range(3)]
        with pytest.warns(FutureWarning, match="`torch.func.stack_module_state` instead"):
            f, params, buffers = functorch.combine_state_for_ensemble(models)
        assert [p.shape for p in params] == [(3, 1, 2), (3, 1)] and buffers == ()
        assert not any(p.requires_grad for p in params)
        x = torch.ones(4, 2)
        with pytest.warns(FutureWarning, match="`torch.vmap` instead"):
            y = functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
        want = torch.stack([m(x) for m in models])
        assert torch.allclose(y, want)
        with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="at least one model"):
            functorch.combine_state_for_ensemble([])

    def test_derivatives(self) -> None:
        from rushlight import functorch

        x = torch.tensor(2.0)
        for name, want in (("grad", 12.0), ("jacrev", 12.0), ("jacfwd", 12.0), ("hessian", 12.0)):
            with pytest.warns(FutureWarning, match=f"Please use `torch.func.{name}` instead"):
                f = getattr(functorch, name)(lambda x: x**3)
            assert f(x).item() == want


# --- nodes of custom functions inside transforms --------------------------------------------------
class Double(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_nodes_of_custom_functions_are_named_as_in_pytorch() -> None:
    x = torch.ones(3, requires_grad=True)
    seen: list[str] = []

    def f(x: Any) -> Any:
        y = Double.apply(x)
        seen.append(y.grad_fn.name())
        return y.sum()

    assert Double.apply(x).grad_fn.name() == "DoubleBackward"
    batch = torch.func.vmap(Double.apply)(x)
    assert batch.grad_fn.name() == "VmappedDoubleBackward"
    assert torch.autograd.grad(batch.sum(), x)[0].tolist() == [2, 2, 2]
    assert torch.func.grad(f)(torch.ones(3)).tolist() == [2, 2, 2]
    assert torch.func.vmap(torch.func.grad(f))(torch.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    assert seen == ["DoubleGeneratedBackward"] * 2
    twice = torch.func.vmap(torch.func.vmap(Double.apply))(torch.ones(2, 3, requires_grad=True))
    assert twice.grad_fn.name() == "VmappedVmappedDoubleBackward"


def test_a_checkpoint_in_debug_mode_says_where_to_look() -> None:
    from rushlight.utils.checkpoint import CheckpointError, checkpoint

    calls: list[int] = []

    def fn(x: Any) -> Any:
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x.sin()

    y = checkpoint(fn, torch.ones(2, requires_grad=True), use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError) as error:
        y.sum().backward()
    assert str(error.value).startswith(
        " An error happened while unpacking tensors; dumping logs of latest computation\n"
        "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
        "Scroll all the way down for guidance on how to navigate these logs.\n"
    )


# --- names that PyTorch has and rushlight lacks ---------------------------------------------------
LACKING = {
    "torch.fft": "torch.stft",
    "torch.compile": "the function itself",
    "torch.cond": "torch.",
    "torch.nn.Conv2d": "unfold",
    "torch.nn.LazyLinear": "torch.nn.Linear",
    "torch.nn.functional.conv2d": "unfold",
    "torch.nn.init.orthogonal_": "torch.nn.init.",
    "torch.nn.utils.weight_norm": "torch.nn.utils.",
    "torch.optim.NAdam": "torch.optim.Adam",
    "torch.optim.lr_scheduler.CyclicLR": "torch.optim.lr_scheduler.",
    "torch.linalg.vecdot": "(x * y).sum(-1)",
    "torch.special.airy_ai": "torch.special.",
    "torch.func.functionalize": "torch.func.",
    "torch.utils.data": "torch.randperm",
    "torch.testing.assert_allclose": "torch.testing.assert_close",
    "torch.Tensor.fill_diagonal_": "x.diagonal().fill_(value)",
}


def module_of(name: str) -> Any:
    home: Any = torch
    for part in name.split(".")[1:-1]:
        home = getattr(home, part)
    return home


@pytest.mark.parametrize(("name", "near"), LACKING.items())
def test_a_missing_name_says_so(name: str, near: str) -> None:
    home, last = module_of(name), name.rpartition(".")[2]
    for owner in (home, torch.ones(2)) if home is torch.Tensor else (home,):
        assert not hasattr(owner, last)
        assert getattr(owner, last, None) is None
        with pytest.raises(AttributeError) as error:
            getattr(owner, last)
        first, *rest = str(error.value).split("\n")
        assert f"has no attribute '{last}'" in first
        text = "\n".join(rest)
        assert f"PyTorch has {name}, rushlight has not" in text
        assert f"Nearest to it: {near}" in text or near in text
        assert "docs/missing.md" in text
        assert last not in dir(owner)


def test_a_name_that_nobody_has_says_less() -> None:
    for owner in (torch, torch.nn, torch.linalg, torch.optim, torch.ones(1)):
        with pytest.raises(AttributeError) as error:
            owner.no_such_name
        assert "rushlight has not" not in str(error.value)
        assert not hasattr(owner, "__no_such_name__")


def test_missing_names_can_be_given_by_users() -> None:
    class Mine(torch.Tensor):
        def fill_diagonal_(self, value: float) -> str:
            return "mine"

    assert Mine([1.0]).fill_diagonal_(1) == "mine"


def tool() -> Any:
    path = harness.ROOT / "tools" / "make_missing.py"
    spec = importlib.util.spec_from_file_location("make_missing", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_page_of_what_is_missing_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool().main(["--check"]) == 0, capsys.readouterr().out


def test_hints_are_for_missing_names() -> None:
    from rushlight.missing import HINTS, is_missing

    assert [n for n in HINTS if not is_missing(*n.rpartition(".")[::2])] == []


if harness.LIVE:

    def test_stored_names_are_pytorchs() -> None:
        stored = harness.stored("repo/names")
        theirs = importlib.import_module("torch")
        for title, names in stored.items():
            home = theirs.Tensor if title == "torch.Tensor" else importlib.import_module(title)
            assert [n for n in names if not hasattr(home, n)] == []
