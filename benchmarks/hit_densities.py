"""How many pairs of a synthetic corpus are similar, from samples.

``python -m benchmarks.hit_densities [N]`` prints them at the paper's thresholds and at low floors.
"""

import sys

import numpy as np
from scipy import sparse

from benchmarks.synthetic_corpus import SHAPES, VOCABULARY, Ints, SyntheticCorpus, make_corpus
from saber_dagster.similarity.summary import jaccard_similarity
from saber_dagster.similarity.topic import TopicSets, ancestor_table, topic_similarity

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
    topic_lists, word_lists = corpus.topic_lists(), corpus.word_lists()
    ancestors = ancestor_table(corpus.tree)
    sets = [TopicSets.of(topic_lists[i] for i in side) for side in (left, right)]
    incidence = [_incidence(word_lists, side) for side in (left, right)]
    totals = dict.fromkeys(("topic", "equal topics", "summary", "both", "topic 0", "summary 0"), 0)
    for start in range(0, sample, 500):
        some = left[start : start + 500]
        part = TopicSets.of(topic_lists[i] for i in some)
        by_set = topic_similarity(part, sets[1], ancestors, corpus.content, EPSILON)
        topic = by_set[part.set_of[:, None], sets[1].set_of]
        summary = jaccard_similarity(incidence[0][start : start + 500], incidence[1])
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
    distinct = len({tuple(topics) for topics in topic_lists})
    return shares | {"distinct topic sets per problem": distinct / max(len(corpus), 1)}


def _incidence(word_lists: list[list[int]], rows: Ints) -> sparse.csr_array:
    chosen = [word_lists[i] for i in rows]
    ends = np.cumsum([0, *(len(words) for words in chosen)])
    flat = np.array([word for words in chosen for word in words], dtype=np.int64)
    ones = np.ones(flat.size, dtype=np.int32)
    return sparse.csr_array((ones, flat, ends), shape=(rows.size, VOCABULARY))


if __name__ == "__main__":
    for name in SHAPES:
        made = make_corpus(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, name)
        print(name, {key: float(f"{value:.3g}") for key, value in densities(made).items()})
        print(name, {k: float(f"{v:.3g}") for k, v in densities(made, 0.6, 0.15).items()})
