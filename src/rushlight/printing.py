"""The printed form of tensors, letter for letter PyTorch's: `repr`, `str` and `format`.

Works on Python numbers only: the few elements that are shown are taken out of the array by
`arrays.hostformat`, so that printing costs the same for a thousand elements as for a billion, and
reads the tensor without changing anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from math import floor, isfinite, prod
from textwrap import indent
from typing import Any, Protocol

from . import dtypes
from .arrays.hostformat import edges, python_numbers


class Printable(Protocol):
    """What printing asks of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> dtypes.dtype: ...
    @property
    def device(self) -> Any: ...
    @property
    def requires_grad(self) -> bool: ...
    @property
    def grad_fn(self) -> Any: ...
    def item(self) -> Any: ...
    def _host_array(self) -> Any: ...


class _Options:
    """What `set_printoptions` sets."""

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000
        self.edgeitems: int = 3
        self.linewidth: int = 80
        self.sci_mode: bool | None = None


_options = _Options()

_PROFILES: dict[str, tuple[int, float, int, int]] = {
    "default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, float("inf"), 3, 80),
}  # fmt: skip


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Sets how tensors print: digits after the point, the number of elements from which the middle
    is left out, how many are left at each end, columns in a line. `profile` ("default", "short",
    "full") sets these four at once, before the others apply. `sci_mode` forces (True) or forbids
    (False) powers of ten; a call that does not name it gives the choice back to each tensor.

    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.12345])
    tensor([1.12])
    >>> torch.set_printoptions(profile="default")
    """
    if profile in _PROFILES:
        _options.precision, _options.threshold, *sizes = _PROFILES[profile]
        _options.edgeitems, _options.linewidth = sizes
    if precision is not None:
        _options.precision = precision
    if threshold is not None:
        _options.threshold = threshold
    if edgeitems is not None:
        _options.edgeitems = edgeitems
    if linewidth is not None:
        _options.linewidth = linewidth
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as a dictionary that `set_printoptions` takes back.

    >>> get_printoptions()["linewidth"]
    80
    """
    return {
        "precision": _options.precision, "threshold": _options.threshold,
        "edgeitems": _options.edgeitems, "linewidth": _options.linewidth,
        "sci_mode": _options.sci_mode,
    }  # fmt: skip


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Sets options, as `set_printoptions` does, for the length of a `with` block.

    >>> with printoptions(precision=1):
    ...     print(torch.tensor([1.12345]))
    tensor([1.1])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


# ---- numbers ---------------------------------------------------------------------------------
# Each function below gives the text of every number, and the width to which they are padded.

_SMALLEST_SCALE = 2.0**-127  # of float8_e8m0fnu


def _write_plain(values: list[Any]) -> tuple[list[str], int]:
    """Integers and booleans."""
    texts = [str(v) for v in values]
    return texts, max(map(len, texts))


def _write_real(values: list[float], scales: bool = False) -> tuple[list[str], int]:
    """Floats: as `1.` if all are whole, as `1.5000`, or as `1.5000e+00` if they are far apart.

    Zeros, infinities and nans decide neither the form nor the width. `scales` is for the type of
    scale factors, float8_e8m0fnu, which has no zero: PyTorch takes its smallest number for one, and
    its nan for a finite number (that rules out `1.` and powers of ten).
    """
    if scales:
        counted = [i for i, v in enumerate(values) if v != _SMALLEST_SCALE]
    else:
        counted = [i for i, v in enumerate(values) if v and isfinite(v)]
    if not counted:
        return [_write_whole(v) for v in values], 1
    sizes = [abs(values[i]) for i in counted]
    whole = all(map(float.is_integer, sizes))
    powers = _options.sci_mode
    if powers is None:
        powers = _needs_powers(sizes)
    if powers or not whole:
        spec = f".{_options.precision}{'e' if powers else 'f'}"
        texts = [format(v, spec) for v in values]
    else:
        texts = [_write_whole(v) for v in values]
    return texts, max(len(texts[i]) for i in counted)


def _write_whole(v: float) -> str:
    return f"{v:.0f}." if isfinite(v) else str(v)


def _needs_powers(sizes: list[float]) -> bool:
    # max() and min() pass over a nan or keep it, depending on where it stands: look first.
    if any(size != size for size in sizes):
        return False
    high, low = max(sizes), min(sizes)
    return high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4


def _write_complex(values: list[complex]) -> tuple[list[str], int]:
    """Complex numbers: each part in its own form; the second follows its sign, so is not padded."""
    reals, real_width = _write_real([z.real for z in values])
    imags, imag_width = _write_real([z.imag for z in values])
    texts = [
        f"{re:>{real_width}}{im}j" if im[0] == "-" else f"{re:>{real_width}}+{im}j"
        for re, im in zip(reals, imags)
    ]
    return texts, real_width + imag_width + 1


def _write(values: list[Any], dtype: dtypes.dtype) -> tuple[list[str], int]:
    if dtype.is_complex:
        return _write_complex(values)
    if dtype.is_floating_point:
        return _write_real(values, scales=dtype is dtypes.float8_e8m0fnu)
    return _write_plain(values)


# ---- layout ----------------------------------------------------------------------------------


def _contents(t: Printable, indent: int) -> str:
    """The numbers in their brackets, the lines after the first indented by `indent`."""
    array = t._host_array()
    shape, count = array.shape, _options.edgeitems
    gaps: list[int | None] = [None] * len(shape)
    if shape and prod(shape) > _options.threshold:
        if count == 0:
            return "[...]"
        array, gaps = edges(array, count)
    texts, width = _write(python_numbers(array), t.dtype)
    if not shape:
        return texts[0]
    if not t.dtype.is_complex:  # of those, the real parts are padded already, and nothing else is
        texts = [text.rjust(width) for text in texts]
    return _block(iter(texts), array.shape, gaps, indent, width)


def _block(
    texts: Iterator[str], shape: tuple[int, ...], gaps: list[int | None], indent: int, width: int
) -> str:
    """One bracketed block: rows of numbers, or blocks of one dimension less."""
    gap, margin = gaps[0], " " * (indent + 1)
    if len(shape) == 1:
        row = list(islice(texts, shape[0]))
        if gap is not None:
            row.insert(gap, " ...")
        step = max(1, floor((_options.linewidth - indent) / (width + 2)))
        lines = [", ".join(row[i : i + step]) for i in range(0, len(row), step)]
        return "[" + (",\n" + margin).join(lines) + "]"
    blocks = [_block(texts, shape[1:], gaps[1:], indent + 1, width) for _ in range(shape[0])]
    if gap is not None:
        blocks.insert(gap, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + margin).join(blocks) + "]"


def _suffixes(t: Printable, tangent: object) -> list[str]:
    """What follows the numbers: where PyTorch's defaults would not tell it."""
    shape, dtype, device = tuple(t.shape), t.dtype, t.device
    meta, empty = device.type == "meta", 0 in t.shape
    found = []
    if device.type != "cpu":
        found.append(f"device='{device}'")
    if meta or (len(shape) != 1 if empty else _options.edgeitems == 0):
        found.append(f"size={shape}")
    if dtype is not dtypes.default and (meta or empty or not _goes_without_saying(dtype)):
        found.append(f"dtype={dtype}")
    history = _history(t)
    if history:
        found.append(history)
    if tangent is not None:
        found.append(f"tangent={tangent}")
    return found


def _goes_without_saying(dtype: dtypes.dtype) -> bool:
    """Whether the numbers alone tell the type. A half-precision default leaves complex64 implied,
    though Python's complex numbers then make complex32."""
    double = dtypes.default is dtypes.float64
    implied = dtypes.complex128 if double else dtypes.complex64
    return dtype is dtypes.int64 or dtype is dtypes.bool_ or dtype is implied


def _history(t: Printable) -> str:
    try:
        node = t.grad_fn
    except RuntimeError:  # a view whose history an in-place write made meaningless: still printable
        return "grad_fn=<Invalid>"
    if node is not None:
        return f"grad_fn=<{node.name().rpartition('::')[2]}>"
    return "requires_grad=True" if t.requires_grad else ""


def _append(text: str, suffixes: list[str], indent: int, column: int | None = None) -> str:
    """Adds the suffixes, each on the current line where it fits; `column` is where that ends."""
    # A line that holds numbers is counted two columns longer than it is, a line of suffixes as is.
    if column is None:
        column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text


def tensor_str(
    t: Printable, contents: str | None = None, *, name: str = "tensor", tangent: object = None
) -> str:
    """A tensor as PyTorch prints it.

    `contents` takes the place of the numbers, `name` that of the word before the parenthesis (the
    class of a tensor subclass); `tangent` is the forward-mode derivative to be shown, if any.

    >>> tensor_str(torch.tensor([1.0, 2.5], dtype=torch.float64))
    'tensor([1.0000, 2.5000], dtype=torch.float64)'
    >>> tensor_str(torch.ones(2), "?", name="Weights")
    'Weights(?)'
    """
    indent = len(name) + 1
    if getattr(t, "layout", dtypes.strided) is not dtypes.strided:
        return _sparse_str(t, contents, name, tangent)
    if contents is None:
        if t.device.type == "meta":
            contents = "..."
        elif 0 in t.shape:
            contents = "[]"
        else:
            contents = _contents(t, indent)
    return _append(f"{name}({contents}", _suffixes(t, tangent), indent) + ")"


def _sparse_str(t: Any, contents: str | None, name: str, tangent: object) -> str:
    """A sparse tensor: its parts, each as a tensor, then its size."""
    indent, plain = len(name) + 1, t.detach()
    if t.is_sparse:
        parts = {"indices": plain._indices(), "values": plain._values()}
    else:
        rows = t.layout in (dtypes.sparse_csr, dtypes.sparse_bsr)
        names = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        parts = {part: getattr(plain, part)() for part in (*names, "values")}
    if contents is None:
        contents = (",\n" + " " * indent).join(_part_str(*part, indent) for part in parts.items())
    found = [] if t.device.type == "cpu" else [f"device='{t.device}'"]
    found += [f"size={tuple(t.shape)}", f"nnz={t._nnz()}"]
    if t.dtype is not dtypes.default and not _goes_without_saying(t.dtype):
        found.append(f"dtype={t.dtype}")
    found.append(f"layout={t.layout}")
    history = _history(t)
    if history:
        found.append(history)
    if tangent is not None:
        found.append(f"tangent={tangent}")
    text = f"{name}({contents}"
    if t.is_sparse:  # the size begins a line
        first, *found = found
        text += ",\n" + " " * indent + first
        return _append(text, found, indent, indent + len(first)) + ")"
    return _append(text, found, indent) + ")"


def _part_str(name: str, part: Any, indent: int) -> str:
    empty = 0 in part.shape
    before = f"{name}=tensor("
    inside = "[]" if empty else _contents(part, indent + len(before))
    return before + inside + (f", size={tuple(part.shape)}" if empty else "") + ")"


def parameter_str(t: Printable, contents: str | None = None, *, name: str = "tensor") -> str:
    """A parameter as PyTorch prints it; `name` is the class's, if it is a subclass of Parameter.

    >>> print(parameter_str(torch.ones(2, requires_grad=True)))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """
    inner = tensor_str(t, contents, name=name)
    return "Parameter containing:\n" + (inner if name == "tensor" else f"Parameter({inner})")


def wrapper_str(name: str, value: object, **fields: object) -> str:
    """A tensor inside a transform as PyTorch prints it: the fields, then the wrapped value.

    >>> print(wrapper_str("BatchedTensor", torch.ones(2, 2), lvl=1, bdim=0))
    BatchedTensor(lvl=1, bdim=0, value=
        tensor([[1., 1.],
                [1., 1.]])
    )
    """
    head = "".join(f"{key}={field}, " for key, field in fields.items())
    return f"{name}({head}value=\n" + indent(repr(value), "    ") + "\n)"


def tensor_format(t: Printable, spec: str, *, plain: bool = True) -> str:
    """`format(t, spec)`: a tensor without dimensions formats as its number, any other only as text.

    `plain` says that the class is Tensor itself: PyTorch gives no number for subclasses.

    >>> f"{torch.tensor(1.5):.2f}"
    '1.50'
    """
    if plain and not t.shape and t.device.type != "meta":
        return format(t.item(), spec)
    return object.__format__(t, spec)
