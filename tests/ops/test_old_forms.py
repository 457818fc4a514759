"""The order of arguments before PyTorch 1.5: it works, and warns."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch

ONE, M, B = (2,), (2, 2), (1, 2, 2)
OLD: list[tuple[str, tuple[Any, ...], Any]] = [
    ("add", (ONE, 2, ONE), 3.0), ("sub", (ONE, 2, ONE), -1.0), ("add_", (ONE, 2, ONE), 3.0),
    ("sub_", (ONE, 2, ONE), -1.0), ("addcmul", (ONE, 2, ONE, ONE), 3.0),
    ("addcdiv", (ONE, 2, ONE, ONE), 3.0), ("addcmul_", (ONE, 2, ONE, ONE), 3.0),
    ("addcdiv_", (ONE, 2, ONE, ONE), 3.0), ("addmm", (2, M, 3, M, M), 8.0),
    ("addmm", (2, M, M, M), 4.0), ("addmv", (2, ONE, 3, M, ONE), 8.0),
    ("addmv", (2, ONE, M, ONE), 4.0), ("addr", (2, M, 3, ONE, ONE), 5.0),
    ("addr", (2, M, ONE, ONE), 3.0), ("addbmm", (2, M, 3, B, B), 8.0),
    ("addbmm", (2, M, B, B), 4.0), ("baddbmm", (2, B, 3, B, B), 8.0),
    ("baddbmm", (2, B, B, B), 4.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "each"), OLD)
def test_arguments_in_their_old_order(
    name: str, given: tuple[Any, ...], each: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rushlight.ops.old_forms import warned

    def drawn() -> list[Any]:
        return [torch.ones(x) if isinstance(x, tuple) else x for x in given]

    plain = name.removesuffix("_")
    monkeypatch.setattr(warned, "already", False)
    args = drawn()
    with pytest.warns(UserWarning, match=rf"This overload of {plain} is deprecated:\n\t{plain}\("):
        y = args[0].sub_(*args[1:]) if name == "sub_" else getattr(torch.Tensor, name)(*args)
    assert set(y.flatten().tolist()) == {each}
    if name.endswith("_"):
        assert y is args[0]
    args = drawn()  # as a method the tensor comes first; PyTorch has warned already
    first = next(i for i, x in enumerate(args) if isinstance(x, torch.Tensor))
    self = args.pop(first)
    assert set(getattr(self, name)(*args).flatten().tolist()) == {each}


def test_old_order_warns_as_pytorch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight.ops.old_forms import warned

    monkeypatch.setattr(warned, "already", False)
    with pytest.warns(UserWarning) as seen:
        torch.add(torch.ones(2), 2, torch.ones(2))
        torch.addcmul(torch.ones(2), 2, torch.ones(2), torch.ones(2))  # once in a program
    assert [str(w.message) for w in seen] == [
        "This overload of add is deprecated:\n"
        "\tadd(Tensor input, Number alpha, Tensor other, *, Tensor out = None)\n"
        "Consider using one of the following signatures instead:\n"
        "\tadd(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)"
    ]
    assert seen[0].filename == __file__
    for args in ((2, torch.ones(2), torch.ones(2)), (torch.ones(2), 2, torch.ones(2), 3)):
        with pytest.raises(TypeError, match=r"add\(\) takes 2 positional arguments but"):
            torch.add(*args)
    with pytest.raises(TypeError, match=r"addmm\(\) received an invalid combination of arg"):
        torch.addmm(*[torch.ones(2, 2)] * 4)
