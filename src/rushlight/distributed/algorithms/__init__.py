"""`torch.distributed.algorithms`: training with uneven inputs (`join`) and ways to send gradients
(`ddp_comm_hooks`)."""

import typing as _typing

from rushlight.missing import face as _face

__all__ = ["Join", "JoinHook", "Joinable"]

if _typing.TYPE_CHECKING:
    from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
else:
    __getattr__, __dir__ = _face(
        "torch.distributed.algorithms",
        globals(),
        {"Join": "join", "JoinHook": "join", "Joinable": "join", "join": "", "ddp_comm_hooks": ""},
    )
