"""What several ranks hold is written by one of them: the one with least to write so far."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from rushlight.distributed.checkpoint.metadata import MetadataIndex
from rushlight.distributed.checkpoint.planner import SavePlan, WriteItem

__all__ = ["dedup_save_plans"]
__dir__ = __all__.copy


def dedup_save_plans(
    all_plans: list[SavePlan], save_to_lowest_rank: bool = False
) -> list[SavePlan]:
    """The plans, with each item in one of them. A replicated tensor goes to the rank that has least
    to write, or with `save_to_lowest_rank` to the first that has it; so the writing of a replicated
    model is spread over all ranks."""
    holders: dict[MetadataIndex, list[int]] = defaultdict(list)
    items: dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            if not holders[item.index] or holders[item.index][-1] != rank:
                holders[item.index].append(rank)
            items[item.index] = item
    load = [0] * len(all_plans)
    writer: dict[MetadataIndex, int] = {}
    for index, ranks in holders.items():
        chosen = ranks[0] if save_to_lowest_rank else min(ranks, key=load.__getitem__)
        load[chosen] += items[index].tensor_storage_size() or 1  # objects: their size is not known
        writer[index] = chosen
    return [
        replace(plan, items=[item for item in plan.items if writer[item.index] == rank])
        for rank, plan in enumerate(all_plans)
    ]
