"""What public programs rely on holds: stored, and live where PyTorch is installed. And who we are
under the name of `torch`, in processes of their own."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.harness import plain_tests
from tests.laws.cases_idioms import close, exact
from tests.running import run

globals().update(plain_tests("laws/idioms", exact, close))

WHO = {
    "version": """
        import torch, torch.version
        v = torch.__version__
        assert type(v).__name__ == "TorchVersion" and isinstance(v, str)
        assert v >= (2, 0) and v >= (2, 13) and v < (3,) and v > "1.9" and v >= "2.13.0"
        assert v != "2.13.0" and v < "2.14" and not v < "2.9" and v == torch.version.__version__
        assert v.split("+")[0] == "2.13.0" and "rushlight" in v.split("+")[1]
        assert tuple(int(n) for n in v.split("+")[0].split(".")[:2]) == (2, 13)
        """,
    "names": """
        import torch
        assert torch.__name__ == "torch" and torch.Tensor.__module__ == "torch"
        assert type(torch.ones(1)).__module__.split(".")[0] == "torch"
        assert repr(torch.Tensor) == "<class 'torch.Tensor'>"
        """,
    "modules": """
        import torch
        from torch import nn
        from torch.nn.modules import linear
        assert repr(nn.Linear) == "<class 'torch.nn.modules.linear.Linear'>"
        assert nn.Linear is linear.Linear and nn.Module.__module__ == "torch.nn.modules.module"
        assert nn.LazyLinear.__module__ == "torch.nn.modules.linear"
        assert nn.LazyConv2d.__module__ == "torch.nn.modules.conv"
        assert nn.utils.rnn.PackedSequence.__module__ == "torch.nn.utils.rnn"
        assert torch.optim.Adam.__module__ == "torch.optim.adam"
        assert torch.optim.lr_scheduler.StepLR.__module__ == "torch.optim.lr_scheduler"
        assert torch.utils.data.DataLoader.__module__ == "torch.utils.data.dataloader"
        """,
    "modules can be pickled": """
        import copy, io, pickle, torch
        from torch import nn
        net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.LazyLinear(2))
        net(torch.ones(1, 2))
        for twin in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
            assert torch.equal(twin(torch.ones(1, 2)), net(torch.ones(1, 2)))
        file = io.BytesIO()
        torch.save(net, file)
        assert b"rushlight" not in file.getvalue()
        file.seek(0)
        twin = torch.load(file, weights_only=False)
        assert torch.equal(twin[0].weight, net[0].weight)
        file = io.BytesIO()
        torch.save(net.state_dict(), file)
        file.seek(0)
        assert list(torch.load(file)) == list(net.state_dict())
        """,
    "modules give their names back": """
        import rushlight
        from rushlight import compat
        assert rushlight.nn.Linear.__module__ == "torch.nn.modules.linear"
        compat.uninstall()
        assert rushlight.nn.Linear.__module__ == "rushlight.nn.modules.linear"
        assert rushlight.nn.LazyLinear.__module__ == "rushlight.nn.modules.linear"
        assert rushlight.Tensor.__module__ == "rushlight.tensor"
        assert rushlight.__name__ == "rushlight"
        with compat.install():
            assert rushlight.nn.Linear.__module__ == "torch.nn.modules.linear"
        assert rushlight.nn.Linear.__module__ == "rushlight.nn.modules.linear"
        """,
    "storages": """
        import warnings, torch
        x = torch.ones(2)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            x.storage()
        assert [w.lineno for w in told] == [5] and told[0].filename == __file__
        """,
    "functorch": """
        import warnings
        import torch
        import functorch
        warnings.simplefilter("ignore", FutureWarning)  # PyTorch's: it is deprecated
        from functorch import grad, jacrev, make_functional, vmap
        x = torch.arange(3.0)
        assert torch.equal(vmap(grad(lambda a: a * a))(x), 2 * x)
        assert torch.equal(jacrev(torch.sin)(x), torch.diag(x.cos()))
        """,
}

# each is the first thing that an object with a `__torch_function__` meets in its process
FIRST = """
    torch.mm(d, x) | torch.mm(x, d) | torch.bmm(d, x) | torch.mv(x, d) | torch.dot(x, d)
    torch.matmul(x, d) | torch.sum(d) | torch.mean(d, 0) | torch.squeeze(d) | torch.unsqueeze(d, 0)
    torch.flatten(d) | torch.detach(d) | torch.relu(d) | torch.nn.functional.relu(d)
    torch.nn.functional.linear(x, x, d) | torch.where(x > 0, d, 1) | torch.permute(d, (0, 1))
    torch.transpose(d, 0, 1) | torch.t(d) | x + d | d - x | x @ d | d @ x | x == d | x < d | x ** d
    x.eq_(d) | x.where(d, x) | x[d] | torch.cat([x, d]) | torch.add(x, x, out=d) | d / x
    torch.mm(x, x, out=d) | torch.nn.functional.conv2d(d, x) | torch.fft.fft(d)
"""
FIRST_CALLS = [text.strip() for text in FIRST.replace("\n", "|").split("|") if text.strip()]

OBJECT = """
import os, sys, torch
class D:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "taken"
d, x = D(), torch.ones(2, 2)
for text in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:  # a process in which nothing has met it yet
        try:
            found = eval(text)
        except Exception as error:
            found = repr(error)
        if found != "taken":
            print(text, found, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
for make in (torch.tensor, torch.as_tensor):
    try:
        make(d)
    except RuntimeError as error:
        assert str(error) == "Could not infer dtype of D", error
    else:
        raise AssertionError
"""


@pytest.mark.parametrize("name", WHO)
def test_who_we_are(name: str, tmp_path: Path) -> None:
    lines = WHO[name].strip("\n").splitlines()
    depth = len(lines[0]) - len(lines[0].lstrip())
    (tmp_path / "script.py").write_text("\n".join(line[depth:] for line in lines))
    assert run(str(tmp_path / "script.py")) == (0, "", "")


def test_the_first_function_that_an_object_meets_asks_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(OBJECT)
    assert run(str(tmp_path / "script.py"), *FIRST_CALLS) == (0, "", "")


def test_products_of_sparse_matrices_are_transformed_as_those_of_dense_ones() -> None:
    torch = importlib.import_module("rushlight")
    matrix = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    x, many = torch.arange(3.0), torch.arange(12.0).reshape(2, 3, 2)
    func = torch.func

    def square(product: Any) -> Any:
        return lambda m: lambda b: torch.vmap(lambda y: product(m, y))(b).pow(2).sum()

    programs = [
        lambda mm, m: func.jacrev(lambda a: m @ a)(x),
        lambda mm, m: func.jacfwd(lambda a: m @ a)(x),
        lambda mm, m: torch.vmap(lambda a: mm(m, a))(many),
        lambda mm, m: func.jacrev(lambda a: mm(m, a))(many[0]),
        lambda mm, m: func.grad(square(mm)(m))(many),
    ]
    for layout in (matrix.to_sparse(), matrix.to_sparse_csr()):
        for program in programs:
            assert torch.allclose(program(torch.sparse.mm, layout), program(torch.mm, matrix))
