"""What a library says of its data types, sizes and devices.

`describe` asks any namespace shaped like PyTorch's, so that the tests put the same questions to
rushlight and compare.
"""

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

NAMES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu"
).split()
ALIASES = "double float half short int long cfloat cdouble chalf".split()
NUMBERS = {"True": True, "2": 2, "2.5": 2.5, "2.5j": 2.5j}
DEFAULTS = ("float32", "float64", "float16", "bfloat16")

# One expression a line: T is the namespace, s a Size.
EXPRESSIONS = """
T.finfo()
T.finfo(3)
T.finfo(np.float32)
T.finfo(np.float32(1))
T.finfo(T.Size())
T.finfo(T.device('cpu'))
T.finfo(T.strided)
T.finfo(type=T.half)
T.finfo(T.float32) == T.finfo(T.complex64)
T.finfo(T.float32) == T.finfo(T.float64)
T.finfo(T.float32) == 3
T.iinfo('a')
T.iinfo(T.int8) == T.iinfo(T.int8)
T.iinfo(T.int8) == T.iinfo(T.int16)
T.set_default_dtype(T.int32)
T.set_default_dtype(T.complex64)
T.set_default_dtype(T.float8_e5m2)
T.set_default_dtype(3)
T.set_default_dtype(None)
T.set_default_dtype(float)
T.get_default_dtype()
setattr(T.float32, 'x', 1)
setattr(T.float32, 'itemsize', 1)
delattr(T.float32, 'itemsize')
T.dtype()
T.layout()
T.memory_format()
T.float32 == 3
T.float32 == 'torch.float32'
T.promote_types(T.float32, 3)
T.promote_types(3, T.float32)
T.promote_types(3, 3)
T.can_cast(1, 2)
T.can_cast(T.int8, np.int8)
T.strided
T.contiguous_format
T.preserve_format
T.channels_last
T.channels_last_3d
pickle.loads(pickle.dumps(T.strided)) is T.strided
copy.deepcopy(T.channels_last) is T.channels_last

T.Size()
T.Size([2, 3])
T.Size((2, 3))
T.Size(range(3))
T.Size(i for i in range(2))
T.Size({1, 2})
T.Size([-1, 2])
T.Size([True])
T.Size([np.int64(3)])
T.Size(np.array([2, 3]))
T.Size(4)
T.Size(None)
T.Size('ab')
T.Size([1.0])
T.Size(['a'])
T.Size([2, None])
T.Size([1, [2]])
T.Size([T.Size([1])])
T.Size([np.float64(3)])
str(s)
f'{s}'
s + (1,)
s + s
(1,) + s
s + [1]
s + 1
s + np.array([1, 1, 1])
np.array([1, 1, 1]) + s
(1.5,) + s
s + ('a',)
s * 2
2 * s
s * 0
s * 1.5
s[0]
s[-1]
s[9]
s[1.5]
s[1:]
s[:0]
s[::-1]
s.numel()
T.Size().numel()
T.Size([3, 0]).numel()
T.Size([-1, 3]).numel()
s == (2, 3, 4)
s == [2, 3, 4]
s != (2, 3, 4)
s < (2, 4)
hash(s) == hash((2, 3, 4))
isinstance(s, tuple)
s.index(3)
s.count(3)
max(s)
tuple(s)
list(s)
copy.copy(s)
copy.deepcopy(s)
pickle.loads(pickle.dumps(s))
pickle.loads(pickle.dumps(s, 0))

T.device('cpu')
T.device('cpu:0')
T.device('cpu', 3)
T.device('cuda')
T.device('cuda:1')
T.device('cuda', 1)
T.device('cuda', None)
T.device('cuda', np.int64(1))
T.device('cuda', index=1)
T.device(type='cuda')
T.device(type='cuda', index=0)
T.device(type='cuda', index=None)
T.device(index=1, type='cpu')
T.device(device='cuda')
T.device(device='cuda:1')
T.device(T.device('cuda:1'))
T.device(device=T.device('cuda:1'))
T.device(b'cpu')
T.device(np.str_('cuda'))
T.device('cuda:127')
T.device('meta')
T.device('xla')
T.device('xpu:3')
T.device('maia')
T.device('privateuseone')
str(T.device('cuda:0'))
str(T.device('cuda'))
f"{T.device('cuda:1')}"
T.device('cuda').type
T.device('cuda').index
T.device('cuda:1').index
T.device('cuda') == T.device('cuda')
T.device('cuda') == T.device('cuda:0')
T.device('cuda') == 'cuda'
hash(T.device('cuda', 1)) == hash(T.device('cuda:1'))
copy.deepcopy(T.device('cuda:2'))
pickle.loads(pickle.dumps(T.device('cuda:2')))
pickle.loads(pickle.dumps(T.device('cpu')))
setattr(T.device('cpu'), 'x', 1)
setattr(T.device('cpu'), 'type', 'b')
T.device('foo')
T.device('foo:1')
T.device('msnpu')
T.device('CUDA')
T.device('cuda1')
T.device('_')
T.device('a_b:3')
T.device('')
T.device(':1')
T.device('cuda:')
T.device('cuda:x')
T.device('cuda:-1')
T.device('cuda:+1')
T.device('cuda:01')
T.device('cuda:1:2')
T.device('cuda:1 ')
T.device(' cuda')
T.device('cuda 1')
T.device('a:b:c')
T.device('cuda:99999999999999')
T.device('cuda', 99999999999999999999)
T.device('cuda', -1)
T.device('cpu', -1)
T.device(-1)
T.device('cuda:0', 1)
T.device(type='cuda:1')
T.device(type='foo', index=1)
T.device('cuda', 'a')
T.device('cuda', 1.0)
T.device('cuda', True)
T.device('cuda', [1])
T.device(T.device('cuda:1'), 0)
T.device()
T.device(None)
T.device(1.5)
T.device(True)
T.device(np.float32(1))
T.device(device=None)
T.device(index=1)
T.device(x=1)
T.device(type=1)
T.device(type=T.device('cpu'))
T.device('cpu', 0, 1)
T.device('cpu', x=1)
T.device('cpu', type='cpu')
T.device('cuda', device='cuda')
T.device(device='cuda', index=1)
T.set_default_device('foo')
T.set_default_device(1.5)
T.get_default_device()
"""

# Array types that from_numpy refuses, or takes under another name.
ARRAY_TYPES = "object >f4 >i8 >c8 U3 >U3 S3 M8[s] V3 i4,i4 g G q i b ?".split()


def attempt(ask: Callable[..., object], *about: object) -> str:
    """The printed answer, or the error: type and text."""
    try:
        return repr(ask(*about))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def describe(
    T: Any,
    result_type: Callable[[tuple[str, str], tuple[str, str]], object],
    from_numpy: Callable[[np.dtype[Any]], object],
) -> dict[str, Any]:
    """Every answer of a namespace. `result_type` is asked about pairs of (name, category)."""
    dtypes = {name: getattr(T, name) for name in NAMES}
    operands = [(name, kind) for name in NAMES for kind in ("dim", "zero")]
    operands += [(name, "number") for name in NUMBERS]
    results = {}
    for default in DEFAULTS:
        T.set_default_dtype(dtypes[default])
        try:
            for a in operands:
                results[" ".join((default, *a))] = [attempt(result_type, a, b) for b in operands]
        finally:
            T.set_default_dtype(T.float32)
    return {
        "facts": {name: _facts(T, d) for name, d in dtypes.items()},
        "aliases": {name: repr(getattr(T, name)) for name in ALIASES},
        "promote_types": {
            f"{a} {b}": attempt(T.promote_types, d, e)
            for a, d in dtypes.items()
            for b, e in dtypes.items()
        },
        "can_cast": {a: [T.can_cast(d, e) for e in dtypes.values()] for a, d in dtypes.items()},
        "result_type": results,
        "from_numpy": {t: attempt(from_numpy, np.dtype(t)) for t in ARRAY_TYPES},
        "expressions": {
            line: attempt(_evaluate, line, T) for line in filter(None, EXPRESSIONS.splitlines())
        },
    }


def _facts(T: Any, d: Any) -> dict[str, str]:
    fields = ("itemsize", "is_floating_point", "is_complex", "is_signed", "abbr")
    facts = {name: repr(getattr(d, name)) for name in fields}
    facts["repr"] = repr(d)
    facts["to_complex"] = attempt(d.to_complex)
    facts["to_real"] = attempt(d.to_real)
    for info, names in (
        ("finfo", ("bits", "eps", "max", "min", "smallest_normal", "tiny", "resolution", "dtype")),
        ("iinfo", ("bits", "max", "min", "dtype")),
    ):
        facts[info] = attempt(getattr(T, info), d)
        if "Error" not in facts[info]:
            made = getattr(T, info)(d)
            facts |= {f"{info}.{name}": repr(getattr(made, name)) for name in names}
    return facts


def _evaluate(line: str, T: Any) -> object:
    names = {"T": T, "s": T.Size([2, 3, 4]), "np": np, "pickle": pickle, "copy": copy}
    return eval(line, names)


def results(torch: Any) -> dict[str, Any]:
    """What PyTorch says."""

    def operand(name: str, kind: str) -> Any:
        if kind == "number":
            return NUMBERS[name]
        return torch.empty(() if kind == "zero" else 2, dtype=getattr(torch, name))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex32 is "experimental"
        return describe(
            torch,
            lambda a, b: torch.result_type(operand(*a), operand(*b)),
            lambda t: torch.from_numpy(np.zeros(2, t)).dtype,
        )
