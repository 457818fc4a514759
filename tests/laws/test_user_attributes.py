"""Attributes that users put on tensors, on `ctx` and on nodes never touch rushlight's own."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function

# Words that programs put on a context or a tensor, and those that rushlight's own fields had
WORDS = """
    alpha args arguments array arrays axis base batch bias check checked cleared code count data
    device dim dims dims_ dtype dtypes duals edge edges extra first flag freed fn held hidden hooks
    id idx index indices info inner inputs input_shape inside keep keepdim kept kind kwargs label
    last layer leaf length level like mask materialised memory meta mode module n name_ ndim next
    nexts node nodes nrs number offset only op ops order other others out outs output outputs owner
    packed padding params parent plain position positions probability ratio record records release
    result rng rule run saved saved_shapes scale second seed shape_ shapes size sizes sorted_out
    source stamp start state step stop storage stride tag tangent tensor tensors total training
    value values version versions view wanted wants weight where x x_shape y
""".split()
# What PyTorch's contexts have. Anything else on ours begins with an underscore.
OF_PYTORCH = """
    apply apply_boxed apply_jvp dirty_tensors mark_dirty mark_non_differentiable
    mark_shared_storage materialize_grads maybe_clear_saved_tensors metadata name needs_input_grad
    next_functions non_differentiable register_hook register_prehook requires_grad
    save_for_backward save_for_forward saved_for_forward saved_tensors saved_variables
    set_materialize_grads to_save
""".split()
# Methods of tensors that PyTorch had once, which the tutorials list
OF_PYTORCH_1_0_1 = """
    btrifact btrifact_with_info btrisolve fft gels gesv ifft irfft potrf potri potrs pstrf rfft
    trtrs
""".split()


def product_with(**attributes: Any) -> type[Any]:
    """A function that puts these attributes on its context and reads them in backward."""

    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            for name, value in attributes.items():
                setattr(ctx, name, value)
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            for name, value in attributes.items():
                assert getattr(ctx, name) is value
                setattr(ctx, name, None)
                setattr(ctx, name, value)
            x, y = ctx.saved_tensors
            return g * y, g * x

    return Product


@pytest.mark.parametrize(
    "value", [None, (None, None), 3, "text", object()], ids=lambda x: type(x).__name__
)
def test_contexts_take_any_name(value: Any) -> None:
    attributes = dict.fromkeys(WORDS, value)
    cls = product_with(**attributes)
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = torch.tensor([5.0, 7.0], requires_grad=True)
    seen: list[Any] = []
    z = cls.apply(x * 1, y)
    z.grad_fn.register_hook(lambda gs, outs: seen.append(len(gs)))
    gx, gy = torch.autograd.grad(z.sum(), (x, y), create_graph=True)
    assert gx.tolist() == [5, 7] and gy.tolist() == [2, 3] and seen == [2]
    gx.sum().backward()
    assert y.grad.tolist() == [1, 1]
    for name in WORDS:
        assert getattr(z.grad_fn, name) is value
    assert [n.name() for n, _ in z.grad_fn.next_functions] == [
        "MulBackward0", "torch::autograd::AccumulateGrad",
    ]  # fmt: skip
    assert repr(z).endswith("grad_fn=<ProductBackward>)")


def test_edges_stay_when_a_context_gets_nexts() -> None:
    x = torch.ones(2, requires_grad=True)
    product_with(nexts=(None, None)).apply(x, x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_context_says_where_unless_told_otherwise() -> None:
    x = torch.ones(2, requires_grad=True)
    y = product_with().apply(x, x)
    assert y.grad_fn.where.source == "y = product_with().apply(x, x)"
    assert product_with(where="here").apply(x, x).grad_fn.where == "here"


def test_names_of_contexts() -> None:
    x = torch.ones(2, requires_grad=True)
    node = product_with().apply(x, x).grad_fn
    names = {name for name in dir(node) if not name.startswith("_")}
    assert names == {*OF_PYTORCH, "where"}


def test_tensors_take_any_name() -> None:
    names = [w for w in WORDS if not hasattr(torch.Tensor, w)]
    assert {"node", "memory", "extra", "leaf", "array", "held", "dims", "tangent"} <= set(names)
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    for t in (x, y):
        for name in names:
            setattr(t, name, (None, None))
    z = (y[0:1] * y).sum()
    z.backward()
    assert x.grad.tolist() == [68, 24] and x.is_leaf and not y.is_leaf
    assert str(x) == "tensor([2., 3.], requires_grad=True)"
    y.detach().add_(1)
    assert y.tolist() == [5, 10] and y._version == 1
    for name in names:
        assert getattr(y, name) == (None, None)


def test_no_internals_show_on_tensors() -> None:
    ours = "array memory node leaf held as_view extra tangent dims sized"
    assert not [name for name in ours.split() if hasattr(torch.ones(1), name)]


def test_names_of_tensors_are_pytorchs() -> None:
    theirs = pytest.importorskip("torch").Tensor
    ours = {n for n in dir(torch.Tensor) if not n.startswith("_") and not hasattr(theirs, n)}
    assert ours == set(OF_PYTORCH_1_0_1)
