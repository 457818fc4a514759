"""Training by several processes against training by one, on rushlight or PyTorch."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from typing import Any

torch: Any = importlib.import_module(sys.argv[1])
dist = torch.distributed
nn = torch.nn
DDP = nn.parallel.DistributedDataParallel

STEPS = 50
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "views": {"gradient_as_bucket_view": True},
    "many buckets": {"bucket_cap_mb": 0.0005},
    "unused looked for": {"find_unused_parameters": True, "bucket_cap_mb": 0.0005},
    "static graph": {"static_graph": True, "gradient_as_bucket_view": True},
}


class Transformer(nn.Module):  # type: ignore[misc]  # the library is known when it runs
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 11)

    def forward(self, x: Any) -> Any:
        return self.head(self.layer(self.tokens(x)))


def mlp() -> Any:
    return nn.Sequential(
        nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
    )


def mlp_batch(generator: Any, dtype: Any) -> tuple[Any, Any]:
    x = torch.randn(8, 4, generator=generator, dtype=torch.float64)
    y = torch.randn(8, 1, generator=generator, dtype=torch.float64)
    return x.to(dtype), y.to(dtype)


def token_batch(generator: Any, dtype: Any) -> tuple[Any, Any]:
    tokens = torch.randint(0, 11, (4, 6), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def mlp_loss(y: Any, target: Any) -> Any:
    return nn.functional.mse_loss(y, target)


def token_loss(y: Any, target: Any) -> Any:
    return nn.functional.cross_entropy(y.flatten(0, 1), target.flatten())


def flat(net: Any) -> list[float]:
    whole = torch.cat([p.detach().flatten().double() for p in net.parameters()])
    return [float(v) for v in whole.tolist()]


def adam(parameters: Any) -> Any:
    return torch.optim.Adam(parameters, 1e-2)


def sgd(parameters: Any) -> Any:
    """For the transformer: some of its gradients are 0 but for rounding (attention does not depend
    on the bias of keys), and Adam would make steps of that noise."""
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def train(
    make: Any, batch: Any, loss: Any, dtype: Any, options: dict[str, Any], make_optimizer: Any = adam
) -> dict[str, Any]:  # fmt: skip
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)  # process 0 gives its parameters to the others
    net = DDP(make().to(dtype), **options)
    torch.manual_seed(0)
    alone = make().to(dtype)
    optimizers = [make_optimizer(m.parameters()) for m in (net, alone)]
    data = torch.Generator().manual_seed(5)
    losses = []
    for _ in range(STEPS):
        x, y = batch(data, dtype)
        for optimizer in optimizers:
            optimizer.zero_grad()
        mine = loss(net(x[rank::n]), y[rank::n])
        mine.backward()
        loss(alone(x), y).backward()
        losses.append(mine.item())
        grads = [p.grad.clone() for p in net.parameters()]
        for optimizer in optimizers:
            optimizer.step()
    return {
        "losses": losses,
        "parameters": flat(net),
        "alone": flat(alone),
        "gradients": [v for g in grads for v in g.double().flatten().tolist()],
    }


def main() -> None:
    dist.init_process_group("gloo")
    warnings.simplefilter("ignore")  # nothing was unused where it was looked for
    results: dict[str, Any] = {}
    for name, options in OPTIONS.items():
        results[f"mlp, {name}"] = train(mlp, mlp_batch, mlp_loss, torch.float64, options)
    results["mlp, float32"] = train(mlp, mlp_batch, mlp_loss, torch.float32, {})
    results["transformer"] = train(
        Transformer, token_batch, token_loss, torch.float64, {"bucket_cap_mb": 0.001}, sgd
    )
    dist.destroy_process_group()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
