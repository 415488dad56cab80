"""How many pairs of a synthetic corpus are similar, from samples.

``python -m benchmarks.hit_densities [N]`` prints them at the paper's thresholds and at low floors.
"""

import sys

import numpy as np

from benchmarks.signal_loops import Int32s, Ints, summary_loop, topic_loop
from benchmarks.synthetic_corpus import SHAPES, SyntheticCorpus, make_corpus

TOPIC_FLOOR, SUMMARY_FLOOR = 0.858, 0.211
"""The paper's thresholds."""
EPSILON = 1e-12


def densities(
    corpus: SyntheticCorpus,
    topic_floor: float = TOPIC_FLOOR,
    summary_floor: float = SUMMARY_FLOOR,
    sample: int = 3_000,
    seed: int = 0,
) -> dict[str, float]:
    """Shares of hits among the pairs of two samples of problems, and what else describes the corpus."""
    rng = np.random.default_rng([seed, 3])
    left, right = (np.sort(rng.choice(len(corpus), sample, replace=False)) for _ in range(2))
    both = np.concatenate([right, left])
    topic_ends, topics = _of(corpus.topic_ends, corpus.topics, both)
    word_ends, words = _of(corpus.word_ends, corpus.words, both)
    tree = corpus.tree
    totals = dict.fromkeys(("topic", "equal topics", "summary", "both", "topic 0", "summary 0"), 0)
    for start in range(0, sample, 500):
        some = left[start : start + 500]
        asked = sample + start + np.arange(some.size)
        topic, summary = np.zeros((2, some.size, sample))
        topic_loop(
            asked, topic_ends, topics, tree.parent, tree.depth, corpus.content, EPSILON, topic
        )
        summary_loop(asked, word_ends, words, summary)
        other = some[:, None] != right
        high = (topic >= topic_floor) & (topic > 0) & other
        close = (summary >= summary_floor) & (summary > 0) & other
        totals["topic"] += np.count_nonzero(high)
        totals["equal topics"] += np.count_nonzero((topic > 1 - 1e-8) & other)
        totals["summary"] += np.count_nonzero(close)
        totals["both"] += np.count_nonzero(high & close)
        totals["topic 0"] += np.count_nonzero(topic == 0)
        totals["summary 0"] += np.count_nonzero(summary == 0)
    shares = {name: count / sample**2 for name, count in totals.items()}
    distinct = len(set(map(tuple, corpus.topic_lists())))
    return shares | {"distinct topic sets per problem": distinct / max(len(corpus), 1)}


def _of(ends: Ints, values: Int32s, rows: Ints) -> tuple[Ints, Int32s]:
    """Compressed rows of some problems."""
    parts = [values[ends[row] : ends[row + 1]] for row in rows]
    return np.cumsum([0, *map(len, parts)]), np.concatenate(parts)


if __name__ == "__main__":
    for name in SHAPES:
        made = make_corpus(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, name)
        print(name, {key: float(f"{value:.3g}") for key, value in densities(made).items()})
        print(name, {k: float(f"{v:.3g}") for k, v in densities(made, 0.6, 0.15).items()})
