"""What the table imports late is there when it is asked for, however that is done."""

from __future__ import annotations

import subprocess
import sys

import pytest

WAYS = {
    "a function": "torch.inverse(torch.eye(2))",
    "a method": "torch.eye(2).det()",
    "a method of the class": "torch.Tensor.logdet(torch.eye(2))",
    "a method of a subclass": "class T(torch.Tensor): pass\nT([[1.0]]).det()",
    "a namespace": "torch.linalg.svd(torch.eye(2))",
    "an operator": "torch.ops.aten.linalg_slogdet.default(torch.eye(2))",
    "dir": "assert 'slogdet' in dir(torch)",
    "dir of a tensor": "assert 'slogdet' in dir(torch.ones(1))",
    "all": "assert 'slogdet' in torch.__all__",
    "a function that many use": "torch.randn(2); assert len(ops._rest) == 1",
    "a method that many use": "torch.eye(2).cumsum(0); assert len(ops._rest) == 1",
    "the table of functions": "from rushlight.ops.registry import functions\n"
    "functions['sort'](torch.eye(2)); assert len(ops._rest) == 1\n"
    "functions['det'](torch.eye(2)); assert not ops._rest\nassert 'dett' not in functions",
    "NumPy's functions": "import numpy as np\n"
    "assert np.clip(torch.ones(1), 2, 3).item() == 2 and np.exp2(torch.ones(1)).item() == 2",
    "a star": "from rushlight import *\nslogdet(torch.eye(2))",
    "hasattr": "assert hasattr(torch.Tensor, 'slogdet') and not hasattr(torch.Tensor, 'slogdett')",
    "a rule on tensors": "x = torch.eye(2, requires_grad=True)\n"
    "g, = torch.autograd.grad(torch.prod(x), x, create_graph=True)\ng.sum().backward()",
    "threads": "from threading import Thread\nfound = []\n"
    "many = [Thread(target=lambda: found.append(torch.eye(2).det())) for _ in range(8)]\n"
    "[t.start() for t in many]\n[t.join() for t in many]\nassert len(found) == 8",
}


@pytest.mark.parametrize("way", WAYS)
def test_late_files_are_imported_when_asked_for(way: str) -> None:
    before = "import rushlight as torch\nfrom rushlight import ops\nassert ops._rest\n"
    subprocess.run([sys.executable, "-c", before + WAYS[way]], check=True)


def test_importing_rushlight_leaves_them_alone() -> None:
    program = (
        "import sys, rushlight as torch\nfrom rushlight import ops\n"
        "x = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\nrepr(x.grad)\n"
        "late = [n for n in sys.modules if n.startswith('rushlight.ops.')"
        " and any(n.split('.', 2)[2] in lot or n.split('.')[2] in lot for lot in ops.LATER)]\n"
        "assert late == ['rushlight.ops.compat', 'rushlight.ops.compat.overloads'], late\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
