"""Write setup_hot.txt: the functions of the core that ordinary programs run.

    python tools/find_hot.py

`setup.py` compiles these for speed and the rest for size, which makes the wheel a tenth smaller. It
runs the cases of `bench/`, and some common programs, on the sources under a profile function. A
function that is missing from the list only costs some time; one that no longer exists, nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from walk import PACKAGE, read_sources_only  # noqa: E402  # found there

CORE = f"{PACKAGE}/core/"


def programs(torch: Any) -> None:
    """What the cases of `bench/` leave out: views, writes in place, modes, integers, dtypes."""
    x = torch.rand(4, 3, requires_grad=True)
    y = torch.rand(4, 3)
    z = x.view(12)[2:8].reshape(2, 3) + x[0] - x.t()[:, :2].mean(0).sum()
    z = z * 2 + 1 - (2 - x[1]) / 3 + (x[2] ** 2) @ torch.rand(3)
    z = torch.where(z > 0.5, z, -z).exp().log()
    loss = z.sum() + torch.relu(x).softmax(-1).max() + torch.cat([x, y]).std()
    loss.backward(retain_graph=True)
    torch.autograd.grad(loss, [x])
    with torch.no_grad():
        x -= 0.1 * x.grad
        y.add_(1).mul_(2).clamp_(0, 3)
        y[0] = 5
    (x.detach() * y).double().int()
    x.grad = None
    w = x.clone()
    w.mul_(y)
    w[1] = 0
    w.sum().backward()


def main() -> None:
    read_sources_only()
    import rushlight
    from bench import cases

    seen: set[str] = set()

    def see(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(CORE):
            seen.add(f"{Path(code.co_filename).stem}.{code.co_qualname.partition('.<')[0]}")

    works = [make(rushlight) for make, _ in cases.AGAINST_TORCH.values()]
    for profile in (None, see):  # the first time makes what is made once
        sys.setprofile(profile)
        for work in works:
            work()
        programs(rushlight)
        sys.setprofile(None)
    (ROOT / "setup_hot.txt").write_text("\n".join(sorted(seen)) + "\n", encoding="utf-8")
    print(f"setup_hot.txt: {len(seen)} functions")


if __name__ == "__main__":
    main()
