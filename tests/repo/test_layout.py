"""Tests lie as the sources do, and every file of cases has its stored results."""

from __future__ import annotations

from pathlib import Path

from tests import harness

SOURCES = harness.ROOT / "src" / "rushlight"
# Tests that are about no one source file: laws over all ops, the repository, the GPU, types.
FREE = {"laws", "repo", "device", "typing"}
# What several files of a folder do together.
TOGETHER = {
    "autograd/notes": "PyTorch's notes on autograd",
    "backends/backends": "flags of all backends, and devices that are not there",
    "codegen/codegen": "from the op table to C",
    "codegen/operands": "kernels of operands that lie anyhow",
    "codegen/rules": "every kernel against the rule it was made from",
    "codegen/threads": "kernels on several threads",
    "compiler/compiler": "what compiling gives, and programs that cannot be exported",
    "distributed/checkpoint/checkpoint": "checkpoints of one process, from saving to loading",
    "distributed/checkpoint/resume": "training that goes on with another number of processes",
    "distributed/fsdp/fsdp": "sharded training, beside that of whole tensors",
    "distributed/tensor/dtensor": "sharded tensors and meshes, beside PyTorch's",
    "distributed/failures": "processes that die, raise or hang",
    "distributed/loading": "samplers and loaders of several processes",
    "distributed/programs": "programs of several processes, run unchanged",
    "distributed/starting": "every way to start one process or several",
    "distributions/distributions": "all that distributions give",
    "config": "__config__, whose name no test file can have",
    "fx/fx": "tracing, rewriting and running graphs",
    "programs/programs": "programs written for PyTorch, run unchanged",
    "programs/libraries": "libraries written for PyTorch, used through the alias",
    "func/inference": "transforms in inference mode",
    "func/nested_programs": "random programs of transforms",
    "codegen/accuracy": "functions of one number, over all of float32",
    "core/order": "how results of element-wise ops lie in memory",
    "func/transforms": "transforms of every kind",
    "jit/jit": "what compiling hands back",
    "library/library": "operators from their making to their use",
    "nn/attention": "attention and the Transformer",
    "nn/layers": "norms, losses, bags and adaptive softmax",
    "nn/nn": "modules, losses and training",
    "ops/copies/copies": "what is made from other functions",
    "ops/later": "what ops/__init__ imports late",
    "ops/sparse/sparse": "sparse tensors of every layout",
    "ops/linalg/rest": "small functions of linear algebra",
    "ops/linalg/strides": "how results of linear algebra lie in memory",
    "ops/statistics/statistics": "statistics, windows and masked functions",
    "optim/optim": "optimisers and schedulers",
    "serialization/files": "files between rushlight and PyTorch, and of older versions",
}


def name_of(path: Path, prefix: str) -> str:
    """`ops/indexing/gather` for tests/ops/indexing/test_gather.py."""
    path = path.relative_to(harness.TESTS)
    return path.with_name(path.stem.removeprefix(prefix)).as_posix()


def test_every_test_file_has_the_name_of_a_source() -> None:
    names = {name_of(path, "test_") for path in harness.TESTS.rglob("test_*.py")}
    mirrored = {name for name in names if name.split("/")[0] not in FREE}
    without = {name for name in mirrored if not (SOURCES / f"{name}.py").exists()}
    assert without - TOGETHER.keys() == set(), "no source has this name; add to TOGETHER why"
    assert TOGETHER.keys() - without == set(), "these have a source by now, or no test"


def test_every_file_of_cases_has_stored_results() -> None:
    suffix = ".json.gz"
    found = harness.REFERENCE.rglob(f"*{suffix}")
    stored = {p.relative_to(harness.REFERENCE).as_posix().removesuffix(suffix) for p in found}
    assert stored == set(harness.names())


def test_every_file_of_cases_can_be_made() -> None:
    cases = {name: harness.cases_of(name) for name in harness.names()}
    assert [n for n, m in cases.items() if not (hasattr(m, "results") or hasattr(m, "store"))] == []
