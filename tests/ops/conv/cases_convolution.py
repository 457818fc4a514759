"""Convolutions of all kinds: results, two orders of gradients, and errors."""

from __future__ import annotations

from typing import Any

from tests.ops.calls import answers, errors

CALLS = """
F.conv1d(x(2, 3, 7), x(4, 3, 3)) | F.conv1d(x(2, 3, 7), x(4, 3, 3), x(4))
F.conv1d(x(3, 7), x(4, 3, 3), x(4)) | F.conv1d(x(2, 3, 7), x(4, 3, 3), None, 2, 1)
F.conv1d(x(2, 4, 9), x(6, 2, 3), x(6), 2, 2, 2, 2) | F.conv1d(x(1, 3, 5), x(2, 3, 1))
F.conv1d(x(2, 3, 7), x(4, 3, 3), padding="same") | F.conv1d(x(2, 3, 7), x(4, 3, 4), padding="same")
F.conv1d(x(2, 3, 7), x(4, 3, 3), padding="valid") | F.conv1d(x(2, 3, 7), x(3, 1, 3), groups=3)
F.conv1d(x(2, 3, 7), x(6, 1, 3), x(6), 2, 1, 1, 3) | F.conv1d(x(0, 3, 7), x(4, 3, 3), x(4))
F.conv1d(z(2, 3, 7), z(4, 3, 3), z(4)) | F.conv1d(z(2, 2, 5), z(2, 1, 2), None, 2, 1, 1, 2)
F.conv1d(i(2, 3, 7), i(4, 3, 3), i(4))
F.conv2d(x(2, 3, 5, 6), x(4, 3, 3, 2), x(4)) | F.conv2d(x(3, 5, 6), x(4, 3, 3, 2), x(4), padding=1)
F.conv2d(x(2, 3, 6, 6), x(4, 3, 3, 3), x(4), (2, 1), (1, 2), (1, 2))
F.conv2d(x(2, 4, 6, 5), x(6, 2, 3, 3), x(6), 1, 1, 1, 2) | F.conv2d(x(2, 3, 4, 4), x(5, 3, 1, 1), x(5))
F.conv2d(x(2, 3, 5, 5), x(3, 1, 3, 3), x(3), 1, 1, 1, 3)
F.conv2d(x(2, 3, 5, 5), x(6, 1, 3, 3), None, 2, 1, 1, 3)
F.conv2d(x(1, 2, 5, 5), x(12, 1, 2, 2), x(12), 1, 0, 1, 2)
F.conv2d(x(2, 3, 5, 5), x(4, 3, 3, 3), padding="same", dilation=2)
F.conv2d(x(5, 3, 3, 3), x(4, 3, 3, 3), x(4), padding=1)
F.conv2d(x(2, 3, 5, 5).transpose(2, 3), x(4, 3, 3, 3), padding=1)
F.conv2d(x(2, 3, 5, 5).contiguous(memory_format=torch.channels_last), x(4, 3, 3, 3), padding=1)
F.conv2d(z(2, 2, 4, 4), z(2, 2, 2, 2), z(2), padding=1)
F.conv3d(x(1, 2, 3, 4, 4), x(3, 2, 2, 2, 3), x(3)) | F.conv3d(x(2, 3, 3, 3), x(2, 2, 2, 2, 2), None, 2, 1)
F.conv3d(x(1, 2, 3, 3, 3), x(2, 1, 2, 2, 2), x(2), 1, 1, 2, 2)
F.conv_transpose1d(x(2, 3, 5), x(3, 4, 3), x(4)) | F.conv_transpose1d(x(3, 5), x(3, 4, 3), None, 2, 1, 1)
F.conv_transpose1d(x(2, 4, 5), x(4, 3, 3), x(6), 3, 1, 2, 2, 2)
F.conv_transpose1d(x(1, 2, 4), x(2, 2, 3), x(2), 1, 1, 1, 1, 2)
F.conv_transpose1d(x(1, 3, 4), x(3, 1, 3), None, 2, 0, 0, 3)
F.conv_transpose2d(x(2, 3, 4, 4), x(3, 2, 3, 3), x(2), 2, 1, 1)
F.conv_transpose2d(x(2, 4, 4, 3), x(4, 1, 2, 2), x(2), (2, 1), 0, 0, 2)
F.conv_transpose2d(x(1, 2, 3, 3), x(2, 2, 3, 3), None, 1, 1) | F.conv_transpose2d(x(1, 2, 3, 3), x(2, 3, 1, 1))
F.conv_transpose2d(z(1, 2, 3, 3), z(2, 2, 2, 2), z(2), 2)
F.conv_transpose3d(x(1, 2, 2, 3, 2), x(2, 2, 2, 2, 2), x(2), 2, 1, 1)
F.conv_tbc(x(5, 2, 3), x(3, 3, 4), x(4), 1) | torch.conv2d(x(1, 1, 3, 3), x(1, 1, 2, 2))
torch.convolution(x(1, 2, 4), x(3, 2, 2), x(3), [1], [0], [1], False, [0], 1)
torch.convolution(x(1, 2, 4), x(2, 3, 2), None, [2], [0], [1], True, [1], 1)
torch.func.vmap(F.conv2d, (0, None))(x(3, 2, 2, 4, 4), x(3, 2, 2, 2))
torch.func.vmap(F.conv2d, (None, 0))(x(2, 2, 4, 4), x(3, 4, 2, 2, 2))
torch.func.vmap(F.conv1d)(x(3, 2, 2, 4), x(3, 3, 2, 2), x(3, 3))
torch.func.vmap(lambda a, b: F.conv1d(a, b, None, 1, 1, 1, 2), (None, 0))(x(2, 4, 5), x(3, 4, 2, 2))
torch.func.vmap(lambda a, b: F.conv_transpose1d(a, b, None, 2, 0, 0, 2))(x(3, 2, 4, 5), x(3, 4, 2, 2))
torch.func.vmap(lambda a, b: F.conv_transpose1d(a, b, groups=2), (None, 0))(x(2, 4, 5), x(3, 4, 2, 2))
torch.func.vmap(lambda a, b: F.conv_transpose1d(a, b), (0, None))(x(3, 2, 4, 5), x(4, 2, 2))
torch.func.jvp(lambda a: F.conv2d(a, a[:, :, :2, :2], padding=1), (x(2, 2, 3, 3),), (x(2, 2, 3, 3),))
torch.func.jacrev(F.conv1d, 1)(x(1, 2, 4), x(2, 2, 2))
torch.func.hessian(lambda w: F.conv1d(w, w).sum())(x(1, 1, 3)).detach()
F.conv2d(x(2, 3, 5, 5), x(4, 3, 3, 3).contiguous(memory_format=torch.channels_last), padding=1)
"""

ERRORS = """
F.conv2d(x(5, 5), x(4, 2, 3, 3)) | F.conv2d(x(1, 3, 5, 5), x(4, 2, 3, 3))
F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), x(3)) | F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), stride=0)
F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), padding=-1) | F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), dilation=0)
F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), groups=0) | F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), groups=2)
F.conv2d(x(1, 2, 2, 2), x(4, 2, 3, 3)) | F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3, dtype="float32"))
F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), stride=(1, 1, 1)) | F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), padding="foo")
F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), padding="same", stride=2)
F.conv2d(x(1, 2, 5, 5), x(3, 1, 3, 3), groups=2) | F.conv2d(x(1, 2, 5, 5), x(1, 1, 3, 3), groups=2)
F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), padding=(1, 2, 3)) | F.conv1d(x(1, 2, 5, 5), x(4, 2, 3, 3))
F.conv2d(x(1, 2, 5, 5).bool(), x(4, 2, 3, 3).bool()) | F.conv2d(x(1, 2, 0, 5), x(4, 2, 3, 3), padding=2)
F.conv2d(x(1, 2, 5, 5), x(4, 2, 3, 3), x(4, dtype="float32"))
F.conv_transpose2d(x(1, 2, 5, 5), x(3, 4, 3, 3)) | F.conv_transpose2d(x(1, 2, 5, 5), x(2, 4, 3, 3), x(3))
F.conv_transpose2d(x(1, 2, 5, 5), x(2, 4, 3, 3), output_padding=1) | F.conv_transpose2d(x(5, 5), x(2, 4, 3, 3))
F.conv_transpose2d(x(1, 2, 5, 5), x(2, 4, 3, 3), padding=4) | F.conv_tbc(x(5, 2, 3), x(3, 2, 4), x(4))
F.conv_transpose1d(x(1, 2, 5), x(2, 4, 3), output_padding=1, dilation=2, padding=1)
nn.Conv2d(3, 4, 3, groups=2) | nn.Conv2d(4, 3, 3, groups=2) | nn.Conv2d(4, 4, 3, groups=0)
nn.Conv2d(4, 4, 3, 2, padding="same") | nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect")
nn.ConvTranspose2d(3, 4, 3, 2).double()(x(1, 3, 4, 4), output_size=(30, 30))
nn.ConvTranspose2d(3, 4, 3, 2).double()(x(1, 3, 4, 4), output_size=(10, 10))
nn.ConvTranspose2d(3, 4, 3, 2).double()(x(1, 3, 4, 4), output_size=(10,))
"""


def results(torch: Any) -> Any:
    return {"answers": answers(torch, CALLS), "errors": errors(torch, ERRORS)}
