"""`torch.distributed`: names of signatures are there; calls say what is lacking."""

from __future__ import annotations

import importlib

import pytest

from rushlight import distributed


def test_what_signatures_name() -> None:
    assert distributed.ReduceOp.SUM is distributed.ReduceOp.RedOpType.SUM
    assert distributed.group.WORLD is distributed.GroupMember.WORLD is None
    assert distributed.Backend("NCCL") == distributed.Backend.NCCL == "nccl"
    assert distributed.default_pg_timeout.total_seconds() == 1800
    assert not isinstance(3, distributed.ProcessGroup)
    assert not distributed.is_ucc_available()
    assert distributed.get_node_local_rank(0) == 0
    assert issubclass(distributed.DistBackendError, RuntimeError)


def test_calls_say_what_is_lacking() -> None:
    for name in ("all_to_all", "isend", "gather_object", "monitored_barrier", "get_global_rank"):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            getattr(distributed, name)()
    with pytest.raises(RuntimeError, match=r"torch\.distributed\.TCPStore cannot work"):
        distributed.TCPStore("localhost", 0)
    with pytest.raises(RuntimeError, match="fallback_rank"):
        distributed.get_node_local_rank()


def test_the_names_where_pytorch_has_them() -> None:
    c10d = importlib.import_module("rushlight.distributed.distributed_c10d")
    assert c10d.ReduceOp is distributed.ReduceOp
    with pytest.raises(ValueError, match="Default process group"):
        c10d._get_default_group()
    constants = importlib.import_module("rushlight.distributed.constants")
    assert constants.default_pg_timeout is distributed.default_pg_timeout
