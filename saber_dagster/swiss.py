"""Swiss-style pairing: who is judged against whom in one round of a query's tournament."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from saber_dagster.hashing import hash64

Pair = tuple[str, str]
"""Two documents, the smaller id first."""


def pair_round(
    scores: Mapping[str, float],
    met: AbstractSet[Pair],
    round_number: int,
    seed: int,
    query_id: str,
) -> list[Pair]:
    """Pair the documents of one query for one round, nobody twice and no pair again.

    Documents are sorted by score, in an order drawn afresh each round among equals. The lowest one
    meets the closest score above it among those it has not met; the first such document in the
    drawn order is a random one of the closest. Without one it sits the round out, and so does the
    last document of an odd count. Before round 1 all scores are 0 and nobody has met, so that the
    same rule is a uniformly random matching.

    Args:
        scores: running score of every document, in points; order does not matter.
        met: pairs of earlier rounds, judged or failed.
        round_number: 1 to R; the drawn order depends on it.
        seed: seed of the tournament.
        query_id: document id of the query.

    Returns:
        Pairs in the order in which they were made, lowest scores first.

    Source: SABER-Math, algorithm "Swiss-style greedy pairing" (appendix).
    """
    queue = sorted(
        scores, key=lambda doc: (scores[doc], draw(seed, query_id, round_number, doc), doc)
    )
    pairs: list[Pair] = []
    while len(queue) >= 2:
        lowest = queue.pop(0)
        for position, other in enumerate(queue):
            pair = (lowest, other) if lowest < other else (other, lowest)
            if pair not in met:
                pairs.append(pair)
                del queue[position]
                break
    return pairs


def draw(seed: int, query_id: str, round_number: int, doc_id: str) -> int:
    """The random number in [0, 2**64) that shuffles a document among equals in one round."""
    return hash64(seed, "swiss", query_id, round_number, doc_id)
