"""`opcheck`: whether an operator does what it was registered to do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from rushlight.autograd.api import grad
from rushlight.autograd.gradcheck import gradcheck
from rushlight.core.grad_mode import within
from rushlight.core.graph import TensorBase
from rushlight.dtypes import complex128, float64
from rushlight.library.custom import CustomOpDef, share_memory
from rushlight.library.operator import RECORDED, OpOverload, OpOverloadPacket
from rushlight.library.schema import Alias
from rushlight.library.values import Arguments, bind, convert_result, tensors_among


class OpCheckError(Exception):
    """An operator is not what it says."""


def opcheck(
    op: OpOverload | OpOverloadPacket | CustomOpDef, args: Sequence[Any],
    kwargs: dict[str, Any] | None = None, *, test_utils: str | Sequence[str] | None = None,
    raise_exception: bool = True, rtol: float | None = None, atol: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Test an operator on some arguments: what it writes, returns and differentiates.

    `test_schema`                  it writes what its schema says, and returns new tensors
    `test_autograd_registration`   its derivative was registered where it belongs
    `test_faketensor`              `register_fake` says what its results look like
    `test_backward`                its derivative runs, where an argument wants gradients
    `test_gradcheck`               its derivative is right (in float64; only if asked for)

    >>> @torch.library.custom_op("doc::sneaky", mutates_args=())
    ... def sneaky(x: torch.Tensor) -> torch.Tensor:
    ...     return x.mul_(2) + 1
    >>> torch.library.opcheck(sneaky, (torch.ones(2),), test_utils="test_schema")
    Traceback (most recent call last):
    rushlight.library.check.OpCheckError: opcheck(op, ...): test_schema failed with Argument x is \
not defined as mutable but was mutated
    """
    if (rtol is None) is not (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    target = tested_overload(op)
    names = chosen_tests(test_utils)
    found: dict[str, Any] = {}
    for name in names:
        try:
            bound = bind(target.schema, tuple(args), kwargs or {})
            if name == "test_gradcheck":
                test_gradcheck(target, bound, rtol, atol)
            else:
                TESTS[name](target, bound)
            found[name] = "SUCCESS"
        except Exception as error:  # whatever the operator raises is what is reported
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            found[name] = error
    return found


def tested_overload(op: Any) -> OpOverload:
    """The one operator that is meant."""
    if isinstance(op, CustomOpDef):
        op = op._opoverload
    if isinstance(op, OpOverloadPacket):
        names = [each.schema.overload_name for each in op.defined()]
        if len(names) != 1:
            raise RuntimeError(
                "opcheck can only test operators without overloads. Got the following overloads "
                f"for {op._qualified_op_name}: {names}"
            )
        op = op.defined()[0]
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
            f"torch.ops.aten.sin.default, got {type(op)}"
        )
    return op


def chosen_tests(test_utils: Any) -> tuple[str, ...]:
    if test_utils is None:
        return tuple(TESTS)
    if test_utils == "ALL":
        return (*TESTS, "test_gradcheck")
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(names) <= {*TESTS, "test_gradcheck"}:
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of "
            f"{(*TESTS, 'test_gradcheck')} but it was not"
        )
    return names


# --- copies of the arguments ----------------------------------------------------------------------
def copy_arguments(values: Any, asking: bool) -> Any:
    """Arguments with copies of their tensors; with `asking`, asking for gradients as they do."""
    if isinstance(values, TensorBase):
        t = values.detach().clone()  # type: ignore[attr-defined]
        return t.requires_grad_(asking and values.requires_grad)  # type: ignore[attr-defined]
    if isinstance(values, (list, tuple)):
        return type(values)([copy_arguments(x, asking) for x in values])
    return values


def results_of(result: Any) -> list[Any]:
    return tensors_among(result if isinstance(result, tuple) else (result,))


# --- the tests ------------------------------------------------------------------------------------
def test_schema(op: OpOverload, bound: Arguments) -> None:
    """What is written and what is shared, as the schema says."""
    args, kwargs = (
        copy_arguments(bound[0], True),
        {k: copy_arguments(x, True) for k, x in bound[1].items()},
    )
    schema = op.schema
    given = dict(zip([a.name for a in schema.positional], args, strict=True)) | kwargs
    before = {name: copy_arguments(x, False) for name, x in given.items()}
    with within(False, False):  # its kernel alone: a leaf may be written
        result = op.run(args, kwargs)
    results = result if isinstance(result, tuple) else (result,)
    for a in schema.arguments:
        after = tensors_among([given[a.name]])
        for r, out in zip(schema.returns, results, strict=False):
            shared = any(share_memory(t, x) for t in tensors_among([out]) for x in after)
            if shared and not may_share(a.alias_info, r.alias_info):
                raise RuntimeError(
                    f"Argument {a.name} is not defined to alias output but was aliasing"
                )
        old = tensors_among([before[a.name]])
        if not a.is_write and any(map(values_differ, old, after)):
            raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated")
    for i, j in combinations(range(len(results)), 2):
        pairs = [(x, y) for x in tensors_among([results[i]]) for y in tensors_among([results[j]])]
        same = may_share(schema.returns[i].alias_info, schema.returns[j].alias_info)
        if not same and any(share_memory(x, y) for x, y in pairs):
            raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")


def may_share(a: Alias | None, b: Alias | None) -> bool:
    return a is not None and b is not None and bool((a.before_set | a.after_set) & b.before_set)


def values_differ(old: Any, new: Any) -> bool:
    if old.shape != new.shape:
        return True
    same = (old == new.detach()) | ((old != old) & (new.detach() != new.detach()))
    return not bool(same.all())


def test_autograd_registration(op: OpOverload, bound: Arguments) -> None:
    """A history that no formula made was made by the kernel, which is no place for it."""
    args = copy_arguments(bound[0], True)
    if op.derivative is not None or "Autograd" in op.kernels:
        return
    tensors = tensors_among(args)
    if not any(t.requires_grad for t in tensors):
        return
    key = op.key_of(tensors, args)
    if key == RECORDED:
        return
    result = op.computed(args, bound[1], key)
    made = [t for t in results_of(result) if not any(t is x for x in tensors)]
    if any(t.requires_grad for t in made):
        raise AssertionError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the "
            "operator does not have an autograd kernel defined at an autograd key (e.g. "
            "DispatchKey::Autograd). This could mean that you have incorrectly registered an "
            "autograd kernel to a non-Autograd DispatchKey, which may lead to silently incorrect "
            "results. If your operator consists of regular PyTorch operations, consider not using "
            "an operator at all or registering your operator as CompositeImplicitAutograd. If you "
            "have an autograd.Function registered to a backend (CPU/CUDA/XPU) key, the correct "
            "location for it is the Autograd key."
        )


def test_faketensor(op: OpOverload, bound: Arguments) -> None:
    """What `register_fake` returns looks like what the kernel does: it is run on other numbers."""
    schema = op.schema
    if op.fake is None:
        if RECORDED in op.kernels or (schema.is_mutable and not schema.returns):
            return
        raise RuntimeError(
            f"There was no fake impl registered for {operator_name(op)}. This is necessary for "
            "torch.compile/export/fx tracing to work. Please use "
            "`torch.library.register_fake` to add an fake impl."
        )
    with within(False, False):
        real = results_of(op.run(copy_arguments(bound[0], False), bound[1]))
        blank = [replace_numbers(x) for x in bound[0]]
        fake = results_of(convert_result(schema, op.fake(*blank, **bound[1])))
    for a, b in zip(real, fake, strict=True):
        for what in mismatches(a, b):
            raise AssertionError(
                f"When comparing the output of {op} on FakeTensor and concrete Tensors, found "
                f"mismatched tensor metadata: {what}"
            )


def operator_name(op: OpOverload) -> str:
    return f"<CustomOpDef({op.name()})>" if op.check is not None else op.name()


def replace_numbers(value: Any) -> Any:
    """An argument that looks the same and holds other numbers."""
    if isinstance(value, TensorBase):
        return copy_arguments(value, False).zero_()
    return [replace_numbers(x) for x in value] if isinstance(value, list) else value


def mismatches(a: Any, b: Any) -> list[str]:
    """In what two tensors look different."""
    found: list[str] = []
    if a.shape != b.shape:
        found.append(f"Shapes {a.shape} and {b.shape} are not equal!")
    elif a.dtype != b.dtype:
        found.append(f"Dtypes {a.dtype} and {b.dtype} are not equal!")
    elif a.stride() != b.stride() and a.numel() > 1:
        found.append(f"Stride mismatch! Strides are {a.stride()} and {b.stride()}")
    elif a.device != b.device:
        found.append(f"Devices {a.device} and {b.device} are not equal!")
    return found


def test_backward(op: OpOverload, bound: Arguments) -> None:
    """The derivative runs, and gives gradients in the shapes of the arguments."""
    args = copy_arguments(bound[0], True)
    asking = [t for t in tensors_among(args) if t.requires_grad]
    results = [t for t in results_of(op.run(args, bound[1])) if t.requires_grad]
    if asking and results:
        grad(results, asking, [t.new_ones(t.shape) for t in results], allow_unused=True)


def test_gradcheck(
    op: OpOverload, bound: Arguments, rtol: float | None, atol: float | None
) -> None:
    """The derivative agrees with differences."""
    args = to_double(bound[0])
    asking = [t for t in tensors_among(args) if t.requires_grad]
    if not asking:
        return

    def outputs(*_: Any) -> Any:
        return tuple([t for t in results_of(op.run(args, bound[1])) if t.requires_grad])

    limits: dict[str, Any] = {} if rtol is None else {"rtol": rtol, "atol": atol}
    gradcheck(outputs, tuple(asking), **limits)


def to_double(values: Any) -> Any:
    """Arguments with their real and complex tensors in twice the precision."""
    if isinstance(values, TensorBase):
        t: Any = copy_arguments(values, False)
        if t.is_complex():
            t = t.to(complex128)
        elif t.is_floating_point():
            t = t.to(float64)
        return t.requires_grad_(values.requires_grad)  # type: ignore[attr-defined]
    if isinstance(values, (list, tuple)):
        return type(values)([to_double(x) for x in values])
    return values


TESTS: dict[str, Any] = {
    "test_schema": test_schema, "test_autograd_registration": test_autograd_registration,
    "test_faketensor": test_faketensor, "test_backward": test_backward,
}  # fmt: skip
