"""Arguments of the wrong type are refused in PyTorch's words; insides do not show."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.ops.registry import functions, methods, namespaces

F: Any = torch.nn.functional
WRONG = ("a", None, [1.0], np.ones(2), 1.5, object())


def names(x: object) -> str:
    return "numpy.ndarray" if isinstance(x, np.ndarray) else type(x).__name__


@pytest.mark.parametrize("wrong", WRONG, ids=names)
@pytest.mark.parametrize(
    "name", ["sum", "sin", "relu", "mean", "sort", "cumsum", "mm", "exp", "neg", "argmax"]
)
def test_tensor_expected(name: str, wrong: Any) -> None:
    args = {"mm": (torch.ones(2, 2),), "cumsum": (0,)}.get(name, ())
    text = rf"^{name}\(\): argument 'input' \(position 1\) must be Tensor, not {names(wrong)}"
    with pytest.raises(TypeError, match=text):
        getattr(torch, name)(wrong, *args)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: torch.mm(x, "a"), "mm(): argument 'mat2' (position 2) must be Tensor, not str"),
        (lambda x: F.linear("a", x), "linear(): argument 'input' (position 1) must be Tensor, not"),
        (lambda x: F.gelu("a"), "gelu(): argument 'input' (position 1) must be Tensor, not str"),
        (lambda x: torch.cat("a"), "cat(): argument 'tensors' (position 1) must be tuple of"),
        (lambda x: torch.gather(x, 0, "a"), "gather(): argument 'index' (position 3) must be"),
        (lambda x: torch.softmax(x, "a"), "softmax(): argument 'dim' (position 2) must be int"),
        (lambda x: x.unsqueeze(torch.tensor(0.5)), "unsqueeze(): argument 'dim'"),
        (lambda x: torch.sum(x, dtype=x), "sum() received an invalid combination of arguments"),
        (lambda x: torch.tril(x, 1.5), "tril(): argument 'diagonal' (position 2) must be int"),
        (lambda x: x.fill_("a"), "fill_() received an invalid combination of arguments"),
        (lambda x: torch.clamp(x, "a"), "clamp() received an invalid combination of arguments"),
        (lambda x: torch.linalg.pinv(x, atol="a"), "pinv() received an invalid combination of"),
        (lambda x: torch.optim.lr_scheduler.LambdaLR(x, len), "Tensor is not an Optimizer"),
        (lambda x: torch.Tensor([1], [2]), "new(): argument 'size' (position 1) must be tuple of"),
        (lambda x: torch.promote_types([], x), "promote_types(): argument 'type1' (position 1)"),
        (lambda x: torch.func.debug_unwrap("a"), "debug_unwrap(): expected a Tensor"),
        (lambda x: torch.nn.HuberLoss(delta=x), "delta must be a float or int, got:"),
        (lambda x: torch.frobenius_norm(x, 1.5), "frobenius_norm(): argument 'dim' (position 2)"),
    ],
)  # fmt: skip
def test_texts_of_wrong_types(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)) as caught:
        call(torch.ones(2, 2))
    assert caught.value.__cause__ is None


# what these are for is to fail in other ways: a file that is not there, what does not hold
MEANT: dict[str, type[Exception]] = {"from_file": FileNotFoundError, "_assert": AssertionError}


def test_no_function_tells_of_attributes() -> None:
    """Every function of the table, called with things that are no tensors."""
    told = []
    for space, table in (("", functions), ("Tensor.", methods), *namespaces.items()):
        for name, fn in table.items():
            if isinstance(fn, property) or name.startswith("__") or name == "cuda":
                continue
            for args in (("a",), (None, None), ([], {}), (object(), 1), (np.ones(2),), (b"", 1.5)):
                try:
                    fn(*args)
                except (TypeError, ValueError, RuntimeError, IndexError, Warning):
                    continue
                except Exception as error:
                    if not space and type(error) is MEANT.get(name):
                        continue
                    told.append(f"{space}{name}{args}: {type(error).__name__}: {error}")
    assert not told, "\n".join(told[:10])


def test_errors_of_users_pass() -> None:
    """An error of a function of the user's is not taken for one of ours."""

    def fails(x: float) -> float:
        return x.nothing  # type: ignore[attr-defined,no-any-return]

    with pytest.raises(AttributeError, match="'float' object has no attribute 'nothing'"):
        torch.ones(2).apply_(fails)


# --- memory that may not be written ---------------------------------------------------------------
@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.index_put_((torch.tensor([0]),), torch.ones(3, dtype=torch.float64)),
        lambda x: x.__setitem__((torch.tensor([0]),), 1.0),
        lambda x: x.__setitem__(x > 0, 1.0),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.add_(1),
        lambda x: x.fill_(1),
        lambda x: x.copy_(x + 1),
        lambda x: x.scatter_(0, torch.tensor([[0, 0, 0]]), 1.0),
        lambda x: x.index_add_(0, torch.tensor([0]), x[:1].clone()),
        lambda x: x[0].exp_(),
        lambda x: torch.add(x, 1, out=x),
        lambda x: x.uniform_(),
        lambda x: x.apply_(lambda number: number + 1),
        lambda x: F.relu(x, inplace=True),
    ],
)
def test_read_only_memory(write: Any) -> None:
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writ"):
        x = torch.from_numpy(array)
    with pytest.raises(RuntimeError, match="the memory that would be written is read-only"):
        write(x)
    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: torch.ones(1, 1, 1).map_(torch.ones(0), lambda a, b: a), RuntimeError,
         "The expanded size of the tensor (1) must match the existing size (0)"),
        (lambda: torch.ones(3) in torch.ones(2), RuntimeError,
         "The size of tensor a (3) must match the size of tensor b (2)"),
        (lambda: torch.broadcast_shapes(np.float32(2.0)), RuntimeError,
         "Input shapes should be of type ints, a tuple of ints, or a list of ints, got 2.0"),
        (lambda: torch.arange(2**70), OverflowError, "int too big to convert"),
        (lambda: torch.tensor_split(torch.ones(3), 2**70), ValueError,
         "Overflow when unpacking long long"),
        (lambda: torch._neg_view(torch.tensor([True])), NotImplementedError,
         "\"neg_cpu\" not implemented for 'Bool'"),
    ],
)  # fmt: skip
def test_texts_of_other_errors(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


# --- forms, lists and words -----------------------------------------------------------------------
def test_one_tolerance_or_two() -> None:
    s = torch.eye(2)
    for function, name in ((torch.linalg.matrix_rank, "tol"), (torch.linalg.pinv, "rcond")):
        for args, named in (
            ((s, None), {}), ((s,), {name: None}), ((s, None, True), {}),
            ((s, 0.1), {"atol": 0.1}), ((s, 0.1), {"rtol": 0.1}),
        ):  # fmt: skip
            with pytest.raises(TypeError, match="received an invalid combination of arguments"):
                function(*args, **named)
        function(s), function(s, 0.1), function(s, atol=None, rtol=None)


def test_normalize_takes_the_words_of_norm() -> None:
    x = torch.tensor([[3.0, 4.0]])
    for p in ("fro", None, 2):
        assert F.normalize(x, p).tolist() == F.normalize(x).tolist()
    for call in (lambda: F.normalize(x, "3"), lambda: x.norm("3", 1), lambda: x.norm("3")):
        with pytest.raises(RuntimeError, match=r"^linalg\.matrix_norm: Order 3 not supported\."):
            call()
    with pytest.raises(RuntimeError, match="dim must be a 2-tuple. Got 1"):
        F.normalize(x, "nuc")


@pytest.mark.parametrize("wrong", [np.int64(1), 3, None])
def test_lists_that_are_none(wrong: Any) -> None:
    said = re.escape("numpy.int64" if isinstance(wrong, np.int64) else type(wrong).__name__)
    with pytest.raises(TypeError, match=rf"argument 'tensors' \(position 1\) .*, not {said}"):
        torch.linalg.multi_dot(wrong)
    with pytest.raises(TypeError, match=rf"must be a list of ints, not {said}"):
        torch.einsum(torch.ones(2), wrong)
    with pytest.raises(TypeError, match="must be tuple of ints, not float"):
        torch.unsafe_split_with_sizes(torch.ones(2), 2.0)
    for s in ("a", 1.0, np.float64(1)):
        with pytest.raises(TypeError, match="a subscript must be an int or `...`, not "):
            torch.einsum(torch.ones(2), [s])


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.kron(torch.ones(2, 3), torch.ones(2), out={}),
        lambda: torch.repeat_interleave(torch.ones(2), np.array(["a"])),
        lambda: torch.split_with_sizes(torch.ones(1), np.int64(1)),
        lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2), out="a"),
        lambda: torch.matmul(torch.ones(2), None),
    ],
)
def test_later_arguments_are_told_too(call: Any) -> None:
    with pytest.raises(TypeError, match=r"\w+\(\)[: ]") as caught:
        call()
    assert "ufunc" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["tril", "triu", "abs", "sum", "cumsum", "zeros_like", "numel"])
def test_a_module_is_no_tensor(name: str) -> None:
    """Its own error, for an attribute it has not, is not what the user should read."""
    with pytest.raises(TypeError, match=r"must be Tensor, not Linear|\(Linear"):
        getattr(torch, name)(torch.nn.Linear(3, 2), *([0] if name == "cumsum" else []))


def cell(name: str, **other: Any) -> Any:
    """A step of a recurrent cell of 3 inputs and 4 hidden numbers, with some arguments replaced."""
    gates = {"lstm_cell": 4, "gru_cell": 3}.get(name, 1)
    h = torch.ones(2, 4)
    made = {
        "input": torch.ones(2, 3), "hx": (h, h) if gates == 4 else h,
        "w_ih": torch.ones(4 * gates, 3), "w_hh": torch.ones(4 * gates, 4), "b_ih": None,
        "b_hh": None, **other,
    }  # fmt: skip
    return getattr(torch, name)(*made.values())


H = torch.ones(2, 4)
CELLS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"input": 3}, TypeError, "argument 'input' (position 1) must be Tensor, not int"),
    ({"hx": 0.5}, TypeError, "argument 'hx' (position 2) must be {hx}, not float"),
    ({"w_ih": []}, TypeError, "argument 'w_ih' (position 3) must be Tensor, not list"),
    ({"w_hh": None}, TypeError, "argument 'w_hh' (position 4) must be Tensor, not NoneType"),
    ({"b_ih": 3}, TypeError, "argument 'b_ih' (position 5) must be Tensor, not int"),
    ({"b_hh": "a"}, TypeError, "argument 'b_hh' (position 6) must be Tensor, not str"),
    ({"input": torch.ones(3)}, IndexError, "Dimension out of range (expected to be in range of"),
    ({"input": torch.ones(2, 5)}, RuntimeError, "input has inconsistent input_size: got 5 expe"),
    ({"w_ih": torch.ones(5, 3)}, RuntimeError, "weight_ih first dim must be "),
    ({"w_hh": torch.ones(5, 4)}, RuntimeError, "weight_hh first dim must be "),
    ({"input": torch.ones(3, 3)}, RuntimeError, "Input batch size 3 doesn't match hidden0 batch"),
]


@pytest.mark.parametrize("name", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
@pytest.mark.parametrize(("wrong", "kind", "text"), CELLS)
def test_cells_refuse_what_does_not_fit(name: str, wrong: Any, kind: Any, text: str) -> None:
    text = text.format(hx="tuple of Tensors" if name == "lstm_cell" else "Tensor")
    with pytest.raises(kind, match=re.escape(text)):
        cell(name, **wrong)


@pytest.mark.parametrize(
    ("hx", "kind", "text"),
    [
        (H, TypeError, "argument 'hx' (position 2) must be tuple of Tensors, not Tensor"),
        ((H,), RuntimeError, "lstm_cell expects two hidden states"),
        ((H, 3), TypeError, "expected Tensor as element 1 in argument 1, but got int"),
        ((H, torch.ones(3, 4)), RuntimeError, "Input batch size 2 doesn't match hidden1 batch siz"),
        ((H, torch.ones(2, 5)), RuntimeError, "hidden1 has inconsistent hidden_size: got 5, expec"),
    ],
)
def test_an_lstm_cell_has_two_states(hx: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        cell("lstm_cell", hx=hx)
