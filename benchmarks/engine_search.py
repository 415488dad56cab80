"""The search that chose the weights of the embedded engine: ``python -m benchmarks.engine_search``.

Prints the AUC (all pairs / one domain) on the tuned half of the techniques and on CHAMP for a grid of
weights, the best sum first. The held-out half is not read.
"""

from itertools import product

from benchmarks.engine_comparison import similarities
from benchmarks.labelled_pairs import champ_pairs, starter_pairs
from resources.engines import embedded_judgments as judgments

MATHEMATICAL = (1.0, 2.0, 3.0, 4.0)
TECHNIQUES = (0.0, 0.1, 0.2, 0.3)
VECTORS = (0.0, 0.05, 0.1, 0.2)
SHOWN = 10


def main() -> None:
    sets = [starter_pairs("tuned"), champ_pairs()]
    techniques = [similarities(pairs, judgments.technique_overlap) for pairs in sets]
    vectors = [similarities(pairs, judgments.vector_similarity) for pairs in sets]
    found = []
    for mathematical in MATHEMATICAL:
        judgments.MATHEMATICAL = mathematical
        judgments.features.cache_clear()
        judgments.token_worth.cache_clear()
        words = [similarities(pairs, judgments.word_overlap) for pairs in sets]
        for t, v in product(TECHNIQUES, VECTORS):
            values = []
            for pairs, w, named, near in zip(sets, words, techniques, vectors, strict=True):
                score = w + t * named + v * near
                values += [pairs.auc(score), pairs.auc(score, within=True)]
            found.append((sum(values), mathematical, t, v, values))
    print("mathematical  techniques  vectors   tuned half     CHAMP")
    for _, mathematical, t, v, (a, b, c, d) in sorted(found, reverse=True)[:SHOWN]:
        print(f"{mathematical:12g}  {t:10g}  {v:7g}   {a:.3f}/{b:.3f}    {c:.3f}/{d:.3f}")


if __name__ == "__main__":
    main()
