"""`torch.fft`: every transform with its sizes, dimensions and norms; gradients; errors."""

from __future__ import annotations

from typing import Any

from tests.ops.expressions import Expressions


def names(torch: Any) -> dict[str, Any]:
    x = torch.arange(12, dtype=torch.float64).reshape(3, 4).mul(0.7).sin()
    z = torch.complex(x, x.flip(0).cos())
    return {
        "F": torch.fft, "x": x.clone().requires_grad_(), "z": z.clone().requires_grad_(),
        "s": x.to(torch.float32), "e": torch.empty(0),
        "c": torch.empty(0, dtype=torch.complex128), "t": x.reshape(2, 2, 3),
    }  # fmt: skip


ONE = "fft ifft rfft irfft hfft ihfft".split()
_lines = []
for _name in ONE:
    _real_only = _name in ("rfft", "ihfft")
    _of = "x" if _real_only else "z"
    _lines += [
        f"F.{_name}({_of})", f"F.{_name}({_of}, dim=0)", f"F.{_name}({_of}, 5)",
        f"F.{_name}({_of}, n=3)", f"F.{_name}({_of}, 6, 0, 'ortho')",
        f"F.{_name}({_of}, norm='forward')", f"F.{_name}({_of}, norm='backward')", f"F.{_name}(s)",
        f"F.{_name}(torch.arange(4))", f"F.{_name}({_of}, n=0)", f"F.{_name}({_of}, dim=2)",
        f"F.{_name}({_of}, norm='what')", f"F.{_name}(torch.tensor(1.))", f"F.{_name}(s.half())",
        f"F.{_name}(s, out=e)", f"F.{_name}([1.0])", f"F.{_name}({_of}, 2.5)",
        f"F.{_name}2({_of})", f"F.{_name}2({_of}, (2, 5))", f"F.{_name}2(t)",
        f"F.{_name}2(t, dim=(0, 2))", f"F.{_name}2(t).stride()", f"F.{_name}n({_of})",
        f"F.{_name}n({_of}, (4, 3), norm='ortho')", f"F.{_name}n({_of}, dim=(1, 0))",
        f"F.{_name}n(t, (2,), (1,), 'forward')", f"F.{_name}n(t, s=(3, 2)).stride()",
        f"F.{_name}n(t, dim=(0, 1)).stride()", f"F.{_name}(t, dim=0).stride()",
        f"F.{_name}n({_of}, dim=(0, 0))", f"F.{_name}n({_of}, (1, 2, 3))",
        f"F.{_name}n({_of}, (1, 2), (0,))", f"F.{_name}n({_of}, dim=())", f"F.{_name}2(t[0, 0])",
        f"torch.func.vmap(F.{_name})({_of}.detach())",
        f"torch.func.jvp(F.{_name}n, ({_of}.detach(),), ({_of}.detach(),))",
    ]  # fmt: skip
    _lines += [f"F.{_name}(z)", f"F.{_name}n(z)"] if _real_only else [f"F.{_name}(x)"]
TEXT = (
    "\n".join(_lines)
    + """
F.fftfreq(5)
F.fftfreq(4, 0.5, dtype=torch.float64)
F.fftfreq(0)
F.fftfreq(4, dtype=torch.int64)
F.rfftfreq(5)
F.rfftfreq(4, d=2)
F.fftshift(x)
F.fftshift(x, 1)
F.fftshift(torch.arange(5))
F.ifftshift(x)
F.ifftshift(torch.arange(5), dim=(0,))
F.fft(z.detach(), out=c)
F.irfft(F.rfft(x), 4)
torch._fft_c2c(z, [0, 1], 1, False)
torch._fft_r2c(x, [1], 0, True)
torch._fft_r2c(x, [1], 2, False)
torch.autograd.functional.hessian(lambda x: F.rfft(x).abs().sum(), x.detach()[0])
"""
)
cases = Expressions(names, TEXT)
results = cases.results
