"""Pairs of problems of which people's labels say whether they share a technique or concept."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from saber_dagster.champ import champ_problems
from saber_dagster.hashing import sha256_hex
from saber_dagster.starter import starter_entries, starter_techniques

Floats = npt.NDArray[np.float64]
Document = tuple[str, str]
"""Problem and solution."""


def is_held_out(technique: str) -> bool:
    """Whether a technique of the starter corpus is kept from all tuning: half of them are."""
    return technique in held_out()


def held_out() -> frozenset[str]:
    """The half of the techniques with the smaller hashes."""
    known = sorted(starter_techniques(), key=lambda name: sha256_hex(f"held out: {name}"))
    return frozenset(known[: len(known) // 2])


@dataclass(frozen=True)
class Pairs:
    """Pairs of some documents.

    Args:
        name: of the set.
        documents: problem and solution of each.
        first, second: (pairs,), positions in ``documents``.
        shares: (pairs,), whether the pair shares a label.
        same_domain: (pairs,), whether both are of one domain, by their source.
    """

    name: str
    documents: Sequence[Document]
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    shares: npt.NDArray[np.bool_]
    same_domain: npt.NDArray[np.bool_]

    def of(self, matrix: Floats) -> Floats:
        """The entries of a square matrix for the pairs."""
        return matrix[self.first, self.second]

    def auc(self, scores: Floats, within: bool = False) -> float:
        """Probability that a sharing pair scores above another; ties half.

        Args:
            scores: (pairs,).
            within: only pairs of one domain.
        """
        keep = self.same_domain if within else np.ones(len(scores), dtype=bool)
        return auc(scores[keep], self.shares[keep])

    def interval(
        self, scores: Sequence[Floats], samples: int = 500, within: bool = False
    ) -> list[tuple[float, float]]:
        """95 % intervals of the AUC, and of its differences from the last one, by drawing documents.

        Args:
            scores: (pairs,) of each method; the last one is the baseline.
            samples: bootstrap samples; all methods are drawn alike.
            within: only pairs of one domain.

        Returns:
            For each method its interval, then for each method that of the difference.
        """
        keep = np.flatnonzero(self.same_domain) if within else np.arange(len(self.first))
        first, second, shares = self.first[keep], self.second[keep], self.shares[keep]
        ranked = [np.unique(s[keep], return_inverse=True)[1] for s in scores]
        rng = np.random.default_rng(5)
        found = np.empty((samples, len(scores)))
        n = len(self.documents)
        for sample in range(samples):
            times = np.bincount(rng.integers(0, n, n), minlength=n)
            weight = (times[first] * times[second]).astype(np.float64)
            for column, order in enumerate(ranked):
                positive = np.bincount(order, weight * shares)
                negative = np.bincount(order, weight * ~shares)
                below = np.cumsum(negative) - negative / 2
                found[sample, column] = (positive * below).sum() / (positive.sum() * negative.sum())
        both = np.hstack([found, found - found[:, -1:]])
        low, high = np.quantile(both, [0.025, 0.975], axis=0)
        return list(zip(low.tolist(), high.tolist(), strict=True))


def auc(scores: Floats, positive: npt.NDArray[np.bool_]) -> float:
    """Area under the ROC curve; ties count half."""
    ranks = rankdata(scores)
    n = int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(positive) - n)))


def starter_pairs(half: str) -> Pairs:
    """Starter problems; pairs that share a technique of one half, against pairs that share none.

    Args:
        half: ``tuned`` or ``held out``; pairs that share techniques of the other half only are left
            out.
    """
    entries = starter_entries()
    labels = [set(entry.techniques) for entry in entries]
    wanted = {t for t in starter_techniques() if is_held_out(t) == (half == "held out")}
    keep = [
        (i, j, bool(labels[i] & labels[j] & wanted))
        for i, j in combinations(range(len(entries)), 2)
        if labels[i] & labels[j] & wanted or not labels[i] & labels[j]
    ]
    return _pairs(
        f"starter, {half} techniques",
        [(entry.problem, entry.solution) for entry in entries],
        [entry.domain for entry in entries],
        keep,
    )


def champ_pairs() -> Pairs:
    """CHAMP problems; pairs that share one of its annotators' concepts, against all others."""
    raw = files("champ_dataset").joinpath("dataset_files/v0.json").read_text(encoding="utf-8")
    marks: Mapping[str, dict] = json.loads(raw)["problems"]
    problems = champ_problems()
    concepts = [{c for c in marks[p.source_id]["ch_list"] if c[0] == "C"} for p in problems]
    keep = [
        (i, j, bool(concepts[i] & concepts[j])) for i, j in combinations(range(len(problems)), 2)
    ]
    return _pairs(
        "CHAMP, concepts",
        [(p.problem, p.solution) for p in problems],
        [marks[p.source_id]["category"] for p in problems],
        keep,
    )


def _pairs(
    name: str, documents: list[Document], domains: list[str], keep: list[tuple[int, int, bool]]
) -> Pairs:
    first, second, shares = (np.array(column) for column in zip(*keep, strict=True))
    domain = np.array(domains)
    return Pairs(name, documents, first, second, shares, domain[first] == domain[second])
