"""All-reduce algorithms message by message: who sends which part to whom, round by round.

The formulas of `collectives.py` are quick to evaluate, and easy to get wrong. A schedule can be
run on numbers, which shows that every rank ends with the sum, and timed message by message, which
gives the formula's seconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rushlight.distributed.simulate.cluster import Cluster
from rushlight.distributed.simulate.collectives import largest_power


@dataclass(frozen=True)
class Message:
    """Parts `first` to `last` (not included) of the sender's numbers; added to, or put in place
    of, the receiver's."""

    sender: int
    receiver: int
    first: int
    last: int
    adds: bool


Round = list[Message]


def ring_rounds(ranks: int) -> list[Round]:
    """Rank `r` hands part `r` to its neighbour, who adds, and hands on; then the sums go round.

    >>> ring_rounds(2)[0]
    [Message(sender=0, receiver=1, first=0, last=1, adds=True), Message(sender=1, receiver=0, first=1, last=2, adds=True)]
    """  # noqa: E501 (a doctest prints its result on one line)
    rounds = []
    for shift, adds in ((0, True), (1, False)):
        for step in range(ranks - 1):
            parts = [(rank, (rank + shift - step) % ranks) for rank in range(ranks)]
            rounds.append([Message(r, (r + 1) % ranks, p, p + 1, adds) for r, p in parts])
    return rounds


def folded(ranks: int, core: list[Round], parts: int) -> list[Round]:
    """Rounds for a power of two of ranks, made to serve the ranks beyond it as well."""
    power = largest_power(ranks)
    if power == ranks:
        return core
    extra = range(power, ranks)
    return [
        [Message(r, r - power, 0, parts, True) for r in extra],
        *core,
        [Message(r - power, r, 0, parts, False) for r in extra],
    ]


def doubling_rounds(ranks: int) -> list[Round]:
    power, rounds, distance = largest_power(ranks), [], 1
    while distance < power:
        rounds.append([Message(r, r ^ distance, 0, 1, True) for r in range(power)])
        distance *= 2
    return folded(ranks, rounds, 1)


def halving_rounds(ranks: int) -> list[Round]:
    """Each rank keeps one half of what it was responsible for, and sends the partner the other."""
    power = largest_power(ranks)
    spans = [(0, power)] * power
    down: list[Round] = []
    up: list[Round] = []
    distance = 1
    while distance < power:
        halves = []
        for rank, (first, last) in enumerate(spans):
            middle = (first + last) // 2
            halves.append((middle, last) if rank & distance else (first, middle))
        # What a rank sends is what its partner keeps; on the way back it sends what it kept.
        down.append([Message(r, r ^ distance, *halves[r ^ distance], True) for r in range(power)])
        up.append([Message(r, r ^ distance, *halves[r], False) for r in range(power)])
        spans = halves
        distance *= 2
    return folded(ranks, down + up[::-1], power)


def tree_rounds(ranks: int) -> list[Round]:
    up, distance = [], 1
    while distance < ranks:
        senders = range(distance, ranks, 2 * distance)
        up.append([Message(r, r - distance, 0, 1, True) for r in senders])
        distance *= 2
    down = [[Message(m.receiver, m.sender, 0, 1, False) for m in r] for r in reversed(up)]
    return up + down


SCHEDULES = {
    "ring": ring_rounds,
    "doubling": doubling_rounds,
    "halving": halving_rounds,
    "tree": tree_rounds,
}


def parts_of(rounds: list[Round]) -> int:
    return max((message.last for messages in rounds for message in messages), default=1)


def run(rounds: list[Round], numbers: list[list[float]]) -> list[list[float]]:
    """What each rank has after the messages: `numbers` has a row a rank and a column a part.

    >>> run(doubling_rounds(2), [[1.0], [10.0]])
    [[11.0], [11.0]]
    """
    held = [list(row) for row in numbers]
    for messages in rounds:
        # All of a round are on their way at once: nobody sends what arrives in it.
        sent = [held[m.sender][m.first : m.last] for m in messages]
        for message, values in zip(messages, sent, strict=True):
            row = held[message.receiver]
            for part, value in enumerate(values, message.first):
                row[part] = row[part] + value if message.adds else value
    return held


def seconds(rounds: list[Round], size: float, cluster: Cluster) -> float:
    """The time of the messages: a round takes as long as its slowest message.

    >>> from rushlight.distributed.simulate import Cluster, Link
    >>> seconds(ring_rounds(4), 4e6, Cluster(Link(0.0, 1e9)))
    0.006
    """
    total, parts = 0.0, parts_of(rounds)
    for messages in rounds:
        crossing = [m for m in messages if cluster.host(m.sender) != cluster.host(m.receiver)]
        leaving = Counter(cluster.host(m.sender) for m in crossing)
        arriving = Counter(cluster.host(m.receiver) for m in crossing)
        slowest = 0.0
        for m in messages:
            part = size * (m.last - m.first) / parts
            if cluster.host(m.sender) == cluster.host(m.receiver):
                time = cluster.inside.seconds(part)
            else:
                flows = max(leaving[cluster.host(m.sender)], arriving[cluster.host(m.receiver)])
                time = cluster.between.seconds(part, cluster.sharing(flows))
            slowest = max(slowest, time + (part / cluster.reduce_bandwidth if m.adds else 0.0))
        total += slowest
    return total
