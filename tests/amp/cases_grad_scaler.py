"""Small programs that scale their gradients."""

from __future__ import annotations

import pickle
from typing import Any

from tests.harness import PlainCases

exact = PlainCases()


def told(fn: Any) -> Any:
    try:
        answer = fn()
        return answer if answer is None or isinstance(answer, (int, float, dict)) else repr(answer)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def made(torch: Any, **options: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    return w, torch.optim.SGD([w], lr=0.25), torch.amp.GradScaler("cpu", **options)


def walk(torch: Any) -> Any:
    """Good and bad steps: the parameters, the scale, and how far it is from growing."""
    w, optimizer, scaler = made(torch, init_scale=8.0, growth_interval=2)
    seen = []
    for factor in (1.0, 1.0, float("inf"), 1.0, float("nan"), 1.0, 1.0, 1.0):
        optimizer.zero_grad()
        scaler.scale((w * w).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append([w.tolist(), scaler.get_scale(), scaler._get_growth_tracker()])
    return [*seen, scaler.state_dict()]


def by_hand(torch: Any) -> Any:
    w, optimizer, scaler = made(torch, init_scale=4.0)
    found: list[Any] = [scaler.get_scale(), scaler.state_dict()]
    found.append(told(lambda: scaler.unscale_(optimizer)))
    found.append(told(scaler.update))
    loss = (w * w).sum()
    found.append([x.item() for x in scaler.scale([loss, loss])])
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    found.append(w.grad.tolist())
    found.append(told(lambda: scaler.unscale_(optimizer)))
    found.append(told(lambda: scaler.step(optimizer, closure=lambda: 1)))
    found.append(told(lambda: scaler.step(optimizer)))
    found.append(told(lambda: scaler.step(optimizer)))
    found.append(told(lambda: scaler.unscale_(optimizer)))
    found.append(told(lambda: pickle.dumps(scaler)))
    scaler.update(2.0)
    found.append(scaler.get_scale())
    scaler.update(torch.tensor(16.0))
    found.append(scaler.get_scale())
    found.append(told(lambda: scaler.update(torch.ones(2))))
    found.append(told(lambda: scaler.scale(3)))
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    again = pickle.loads(pickle.dumps(scaler))
    found += [other.state_dict(), again.state_dict(), told(lambda: other.load_state_dict({}))]
    half = torch.ones(1, dtype=torch.float16, requires_grad=True)
    half.grad = torch.ones(1, dtype=torch.float16)
    found.append(told(lambda: scaler.unscale_(torch.optim.SGD([half]))))
    bare = torch.optim.SGD([torch.ones(1, requires_grad=True)])
    found.append(told(lambda: scaler.step(bare)))
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    found.append([scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.is_enabled(),
                  scaler.get_growth_interval()])  # fmt: skip
    return found


def switched_off(torch: Any) -> Any:
    w, optimizer, scaler = made(torch, enabled=False)
    loss = (w * w).sum()
    same = scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    wrong = [
        told(lambda: made(torch, growth_factor=1.0)),
        told(lambda: made(torch, backoff_factor=1.0)),
    ]
    return [same, w.tolist(), scaler.get_scale(), scaler.state_dict(), scaler.is_enabled(), wrong]


exact["walk"] = walk
exact["by hand"] = by_hand
exact["switched off"] = switched_off


def results(lib: Any) -> Any:
    return exact.results(lib)
