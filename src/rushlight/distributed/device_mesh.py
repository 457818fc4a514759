"""`DeviceMesh`: processes as an array, with names for its dimensions.

init_device_mesh("cpu", (2, 3), mesh_dim_names=("dp", "tp"))

         tp ->                 mesh["tp"]    the ranks of a row: of rank 4, (3, 4, 5)
    dp   0  1  2               mesh["dp"]    the ranks of a column: of rank 4, (1, 4)
    |    3  4  5
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from rushlight import dtypes
from rushlight.core.graph import TensorBase
from rushlight.ops.registry import functions

__all__ = ["DeviceMesh", "init_device_mesh"]
__dir__ = __all__.copy

Dims = tuple[int, ...]  # dimensions of the root mesh that are one dimension here


class DeviceMesh:
    """DeviceMesh(device_type, mesh, *, mesh_dim_names=None): ranks in an array. All processes must
    make it.

    Args:
        device_type: "cpu" or "cuda".
        mesh: the ranks, as a tensor or nested lists; each at most once, and along each dimension in
            ascending order.
        mesh_dim_names: names of the dimensions.

    `mesh["name"]` is the part of it along a dimension that this process is in. `get_group()` is the
    process group of such a part.
    """

    def __init__(
        self, device_type: str, mesh: Any = None, *,
        mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None,
        _init_backend: bool = True, _rank: int | None = None,
    ) -> None:  # fmt: skip
        if mesh is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        from rushlight import distributed as dist

        nested = mesh.tolist() if isinstance(mesh, TensorBase) else mesh  # type: ignore[attr-defined]
        shape, ranks = _shape_and_ranks(nested)
        if len(set(ranks)) != len(ranks):
            raise AssertionError("Please use a non-overlapping layout when creating a DeviceMesh.")
        self._device_type = device_type
        self._names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._root_shape = shape
        self._root_ranks = ranks
        self._dims: tuple[Dims, ...] = tuple((d,) for d in range(len(shape)))
        self._root = self
        self._flattened: dict[str, DeviceMesh] = {}
        self._groups: dict[Dims, Any] = {}
        if _init_backend and not dist.is_initialized():
            dist.init_process_group()
        self._rank = int(dist.get_rank()) if _rank is None else _rank
        if _init_backend:
            world = int(dist.get_world_size())
            if len(ranks) > world:
                raise RuntimeError(
                    f"Mesh should not be bigger than default world size {world}, but found "
                    f"{len(ranks)} ranks!"
                )
            for dims in self._dims:
                self._make_groups(dims)

    # --- what it is -----------------------------------------------------------------------------
    @property
    def device_type(self) -> str:
        """ "cpu" or "cuda"."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of its dimensions."""
        return self._names

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks there are along each dimension."""
        return tuple(math.prod(self._root_shape[d] for d in dims) for dims in self._dims)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self._dims)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along a dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    @property
    def mesh(self) -> Any:
        """The ranks, as a tensor."""
        found = functions["tensor"](self._ranks(), dtype=dtypes.int32)
        return found.reshape(self.shape)

    def _ranks(self) -> list[int]:
        """The ranks of this part, row by row."""
        mine = [d for dims in self._dims for d in dims]
        if len(mine) == len(self._root_shape):
            where: tuple[int, ...] = (0,) * len(self._root_shape)
        else:
            found = self._root_coordinate()
            if found is None:
                raise RuntimeError(
                    "In order to get the mesh Tensor of a DeviceMesh it needs to either have all "
                    "its original dimensions (e.g., no slicing) or it needs to contain the local "
                    "rank"
                )
            where = found
        return self._along(mine, where)

    def _along(self, dims: Sequence[int], where: Sequence[int]) -> list[int]:
        """The ranks that one reaches from a place of the root mesh along these dimensions."""
        found = []
        for steps in itertools.product(*(range(self._root_shape[d]) for d in dims)):
            at = list(where)
            for d, step in zip(dims, steps):
                at[d] = step
            found.append(self._root_ranks[_flat_index(at, self._root_shape)])
        return found

    def _root_coordinate(self) -> tuple[int, ...] | None:
        if self._rank not in self._root_ranks:
            return None
        return _unflat_index(self._root_ranks.index(self._rank), self._root_shape)

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process stands in it; None if it does not."""
        found = self._root_coordinate()
        if found is None:
            return None
        sizes = self._root_shape
        return tuple(
            _flat_index([found[d] for d in dims], [sizes[d] for d in dims]) for dims in self._dims
        )

    def get_rank(self) -> int:
        """The rank of this process among all processes."""
        return self._rank

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension."""
        dim = self._dim(mesh_dim, "")
        found = self.get_coordinate()
        if found is None:
            raise RuntimeError(f"rank {self._rank} is not in {self!r}")
        return found[dim]

    def _dim(self, mesh_dim: int | str | None, more: str) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                    *((more,) if more else ()),
                )
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        if not self._names:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim not in self._names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self._names}",
            )
        return self._names.index(mesh_dim)

    # --- groups ---------------------------------------------------------------------------------
    def _make_groups(self, dims: Dims) -> None:
        """Make the process groups along a dimension: every process makes all of them, in the same
        order, and keeps the one that it is in."""
        from rushlight import distributed as dist

        groups = self._root._groups
        if dims in groups:
            return
        others = [d for d in range(len(self._root_shape)) if d not in dims]
        lines = []
        for place in itertools.product(*(range(self._root_shape[d]) for d in others)):
            where = [0] * len(self._root_shape)
            for d, at in zip(others, place):
                where[d] = at
            lines.append(self._along(dims, where))
        for line in lines:
            if line != sorted(line):
                raise ValueError(
                    f"the ranks {line} along a dimension of a DeviceMesh must be in ascending order"
                )
        groups[dims] = None
        for line in lines:
            everyone = line == list(range(int(dist.get_world_size())))
            made: Any = dist.group.WORLD if everyone else dist.new_group(line)
            if self._rank in line:
                groups[dims] = made

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The process group along a dimension."""
        more = (
            "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use "
            "`get_all_groups()` instead."
        )
        dims = self._dims[self._dim(mesh_dim, more)]
        if dims not in self._root._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return self._root._groups[dims]

    def get_all_groups(self) -> list[Any]:
        """The process groups along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> DeviceMesh:  # fmt: skip
        """A mesh of one dimension over the ranks of a process group that is there."""
        from rushlight import distributed as dist

        if isinstance(group, list):
            if len(group) != 1:
                raise ValueError("rushlight makes meshes of one dimension from groups")
            (group,) = group
        ranks = dist.get_process_group_ranks(group)
        made = DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._groups[(0,)] = group
        return made

    # --- parts ----------------------------------------------------------------------------------
    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        if not self._names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        wanted = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if wanted == self._names:
            return self
        known = dict(zip(self._names, self._dims))
        known.update({name: mesh._dims[0] for name, mesh in self._root._flattened.items()})
        if any(name not in known for name in wanted):
            raise KeyError(
                f"Invalid mesh_dim_names {wanted} specified. Valid mesh_dim_names are "
                f"{list(known)}."
            )
        dims = tuple(known[name] for name in wanted)
        in_order = [d for part in dims for d in part]
        if in_order != sorted(set(in_order)):
            raise KeyError(
                f"Invalid mesh_dim_names {wanted} specified. Mesh dim indices should be in "
                "ascending order."
            )
        return self._part(dims, wanted)

    def _part(self, dims: tuple[Dims, ...], names: tuple[str, ...]) -> DeviceMesh:
        made = DeviceMesh.__new__(DeviceMesh)
        made.__dict__.update(self.__dict__)
        made._dims, made._names, made._root = dims, names, self._root
        return made

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """All dimensions as one; all processes must call it. The root mesh knows it by its name."""
        if not self._names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._names)
        if self.ndim == 1 and mesh_dim_name in (None, self._names[0]):
            return self
        root = self._root
        dims: Dims = tuple(d for part in self._dims for d in part)
        if name in root._flattened and root._flattened[name]._dims == (dims,):
            return root._flattened[name]
        if name in (root._names or ()) or name in root._flattened:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. Please specify another valid "
                "mesh_dim_name."
            )
        self._make_groups(dims)
        made = root._flattened[name] = self._part((dims,), (name,))
        return made

    # --- Python ---------------------------------------------------------------------------------
    def _key(self) -> tuple[Any, ...]:
        found = self._root_coordinate()
        whole = sum(map(len, self._dims)) == len(self._root_shape)
        ranks = tuple(self._ranks()) if whole or found is not None else tuple(self._root_ranks)
        return self._device_type, self._dims, self._names, self._root_shape, ranks

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceMesh:
        return self  # groups of processes cannot be copied, and nobody changes a mesh

    def __repr__(self) -> str:
        sizes = self.shape
        names = self._names
        said = ", ".join(
            f"{names[n]}={size}" if names else str(size) for n, size in enumerate(sizes)
        )
        if not names and len(sizes) == 1:
            said += ","
        strides = tuple(math.prod(self._root_shape[dims[-1] + 1 :]) for dims in self._dims)
        return f"DeviceMesh(({said}), '{self._device_type}', stride={strides})"


def _shape_and_ranks(nested: Any) -> tuple[tuple[int, ...], list[int]]:
    shape = []
    flat = nested
    while isinstance(flat, (list, tuple)):
        shape.append(len(flat))
        if flat and isinstance(flat[0], (list, tuple)):
            if len({len(row) for row in flat}) > 1:
                raise ValueError("the rows of a DeviceMesh must be of one length")
            level = [x for row in flat for x in row]
            shape[-1] = len(flat) if len(shape) == 1 else len(flat) // math.prod(shape[:-1])
            flat = level
        else:
            shape[-1] = len(flat) // math.prod(shape[:-1])
            break
    else:
        return (), [int(nested)]
    return tuple(shape), [int(x) for x in flat]


def _flat_index(at: Sequence[int], shape: Sequence[int]) -> int:
    index = 0
    for i, n in zip(at, shape):
        index = index * n + i
    return index


def _unflat_index(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    at = []
    for n in reversed(shape):
        index, i = divmod(index, n)
        at.append(i)
    return tuple(reversed(at))


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *,
    mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None,
) -> DeviceMesh:  # fmt: skip
    """A mesh of the first ranks, row by row. Starts the process group if there is none. All
    processes must call it.

    Args:
        device_type: "cpu" or "cuda".
        mesh_shape: how many ranks there are along each dimension.
        mesh_dim_names: names of the dimensions.

    `init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))["tp"]` are the four ranks of this
    process's row.
    """
    shape = tuple(mesh_shape)
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique.",
                f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}",
            )
        if len(shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length!",
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):"
                f"{len(shape)}.",
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    ranks = functions["arange"](math.prod(shape)).reshape(shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
