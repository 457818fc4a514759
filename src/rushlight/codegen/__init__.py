"""From the op table to kernels: an op's rules, run on symbols, become C.

    expressions    what a rule computes, as a graph of words of the vocabulary
    recording      symbols: arrays that write down what is done with them
    catalogue      which rules become kernels, found by running the op table on symbols
    language       the C of one kernel
    memory         how kernels go over arrays: blocks, rows, columns
    scans          running sums and products
    multithreading threads that share the work
    module         the C of the module that holds them all
    mathematics    exp, log, tanh and their kin in C that compilers turn into SIMD

No op is written twice: its `forward` and `vjp` are the only source there is. `setup.py` compiles
what `write_module` gives; `arrays.kernels` finds a kernel for an op at run time. Without a C
compiler there are none, and all ops take the way over NumPy, with equal results.
"""

from __future__ import annotations
