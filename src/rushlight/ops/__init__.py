"""The op table: one class an op, its rules together, its public functions beside it.

Importing this package fills the table. Files follow the families; see `docs/adding-an-op.md`.
"""

import importlib

# Every file of ops, in the order in which they build on one another.
FILES = (
    "arithmetic_api", "pointwise", "elementwise", "power", "paired", "bounds", "complexes",
    "special", "compare", "questions", "logic", "view", "memory", "view_api", "view_parts",
    "view_turn", "join", "copies", "repeat", "flip", "triangle", "pad", "grid",
    "truth", "reduce", "spread", "norm", "extreme", "scan", "order", "quantile", "counting",
    "write", "index", "index_put", "gather", "index_along", "scatter_reduce", "scatter", "masked",
    "contract", "matmul", "contract_add", "linear",
    "linalg_solve", "linalg_solve_api", "linalg_factor", "linalg_factor_api", "linalg_lu",
    "linalg_spectrum", "linalg_spectrum_api", "linalg_norm", "renorm", "fourier", "sparse_names",
    "einsum",
    "activation", "activation_api", "fused", "normalise", "layers",
    "loss", "loss_api", "loss_made", "create", "ranges", "like", "sample", "cast",
)  # fmt: skip

for _name in FILES:
    importlib.import_module(f"{__name__}.{_name}")
