"""Trees under the name that PyTorch's users import them by; they stand in `rushlight.trees`."""

from __future__ import annotations

from rushlight.trees import (
    LeafSpec,
    TreeSpec,
    register_pytree_node,
    tree_all,
    tree_any,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)

__all__ = [
    "LeafSpec", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten",
    "tree_leaves", "tree_map", "tree_map_", "tree_map_only", "tree_structure", "tree_unflatten",
    "treespec_pprint",
]  # fmt: skip
__dir__ = __all__.copy
