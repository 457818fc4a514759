"""The basics: making tensors, what they know of themselves, and what can be done to them."""

import numpy as np
import torch

data = [[1, 2], [3, 4]]
x = torch.tensor(data)
print(x, x.shape, x.dtype, x.device)
print(torch.from_numpy(np.array(data, dtype=np.float32)))
print(torch.ones_like(x), torch.zeros((2, 3)), torch.full((2,), 7.5))
torch.manual_seed(0)
print(torch.rand(2, 3), torch.rand_like(x, dtype=torch.float))
t = torch.arange(12.0).reshape(3, 4)
print("first row", t[0], "first column", t[:, 0], "last column", t[..., -1])
t[:, 1] = 0
print(torch.cat([t, t], dim=1).shape, torch.stack([t, t]).shape)
print(t @ t.T, t.matmul(t.T).equal(torch.mm(t, t.T)))
print(t * t, t.mul(t).sum().item())
t.add_(5)
print(t)
n = torch.ones(3).numpy()
s = torch.from_numpy(n)
np.add(n, 1, out=n)
print(s, n)
device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
print(device in ("cpu", "cuda"))
