"""Write the C module of all shipped kernels, which `setup.py` runs while the package is built; show
some of it to a reader."""

from __future__ import annotations

import os

from rushlight.codegen.catalogue import shipped
from rushlight.codegen.language import c_of
from rushlight.codegen.module import c_module


def write(path: str) -> None:
    """Write the module to `path`; left alone if it is written already, so that it is not compiled
    again."""
    text = c_module(shipped())
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def show(part: str | None) -> str:
    """The names of all kernels; or the C, in float, of those with `part` in their name.

    >>> print(show("Silu.forward"))
    /* Silu.forward: x * sigmoid(x). */
    static void silu_forward(char **in, char **out, npy_intp n, const double *p) {
        const float *x0 = (const float *)in[0];
        float *y0 = (float *)out[0];
    #pragma omp simd
        for (npy_intp i = 0; i < n; i++) {
            const float e0 = x0[i];
            const float e1 = r_expit_f(e0);
            const float e2 = e0 * e1;
            y0[i] = e2;
        }
    }
    """
    if part is None:
        return "\n".join(kernel.name for kernel in shipped())
    texts = []
    for kernel in shipped():
        if part.lower() in kernel.name.lower():
            name = "".join(c if c.isalnum() else "_" for c in kernel.name.lower())
            texts.append(f"/* {kernel.name}: {kernel.text} */\n{c_of(kernel, 'f', name)}")
    return "\n\n".join(texts)
