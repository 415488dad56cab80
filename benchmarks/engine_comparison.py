"""What each part of the embedded engine is worth, alone and together: ``make bench-engine``.

For the engine's three tasks, on the starter corpus, CHAMP and (where SABER_TEST_DATA is) the sample:
- preference: do pairs that share a technique score above pairs that share none (area under the curve)?
- summary: the same of the Jaccard similarity of core ideas;
- topics: how many problems get one, and is the primary domain that of the source?
- judged top 10: how much more often do its documents share a technique than all candidates do?

Half of the techniques, chosen by hash, were used to tune; figures of the other half are held out.
Writes ``benchmarks/results/engine_comparison.json`` and the tables of ``docs/engine-quality.md``.
"""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks import engine_topics, judged_top
from benchmarks.labelled_pairs import Document, Floats, Pairs, champ_pairs, starter_pairs
from benchmarks.results_file import PAGE, Row, fill, write
from resources.engines import embedded_judgments as judgments
from resources.engines.embedded_summaries import (
    CORE_TECHNIQUES,
    CORE_WORDS,
    rank_techniques,
    rank_words,
    solution_summary,
)
from resources.engines.embedded_words import vocabulary, weight
from saber_dagster.phrases import read_text
from saber_dagster.replies import parse_summary
from saber_dagster.text import content_words, words

SUMMARY_WORDS = 30

Score = Callable[[Document, Document], float]


def jaccard(one: frozenset[str], two: frozenset[str]) -> float:
    """Plain Jaccard similarity; 0 of two empty sets."""
    return len(one & two) / len(one | two) if one or two else 0.0


def by_words(reader: Callable[[str], Sequence[str] | frozenset[str]]) -> Score:
    """Jaccard similarity of what a reader finds in problem and solution."""
    known: dict[Document, frozenset[str]] = {}

    def read(document: Document) -> frozenset[str]:
        if document not in known:
            known[document] = frozenset(reader(" ".join(document)))
        return known[document]

    return lambda one, two: jaccard(read(one), read(two))


def without_vectors(one: Document, two: Document) -> float:
    """The engine's other two parts."""
    words, techniques = judgments.word_overlap(one, two), judgments.technique_overlap(one, two)
    return judgments.SHARES["words"] * words + judgments.SHARES["techniques"] * techniques


PREFERENCES: dict[str, Score] = {
    "technique terms": judgments.technique_overlap,
    "words and formulas, weighted": judgments.word_overlap,
    "static vectors": judgments.vector_similarity,
    "words and techniques": without_vectors,
    "together: the engine": judgments.similarity,
    "the paper's word sets, Jaccard": by_words(content_words),
    "plain words, Jaccard (baseline)": by_words(words),
}
"""Ways to say how close two documents are; the last is the baseline."""


def first_sentence(document: Document) -> str:
    """The beginning of the solution, as it stands."""
    return " ".join(document[1].split()[:SUMMARY_WORDS])


def weighty_words(document: Document) -> str:
    """The rarest mathematical words of the solution, as many as the engine takes."""
    shown = vocabulary()
    found = {part for part in read_text(document[1]) if part in shown}
    return " ".join(shown[p] for p in sorted(found, key=lambda p: (-weight(p), p))[:CORE_WORDS])


def core_idea(document: Document) -> str:
    """The engine's core idea; empty where it finds none."""
    return parse_summary(solution_summary(*document, SUMMARY_WORDS), SUMMARY_WORDS).core_idea or ""


SUMMARIES: dict[str, Callable[[Document], str]] = {
    "technique terms": lambda d: " ".join(rank_techniques(d[1])[:CORE_TECHNIQUES]),
    "weighty words": weighty_words,
    "words nearest by vectors": lambda d: " ".join(rank_words(*d)[:CORE_WORDS]),
    "together: the engine": core_idea,
    "first 30 words (baseline)": first_sentence,
}


def similarities(pairs: Pairs, score: Score) -> Floats:
    """The score of each pair."""
    documents = pairs.documents
    chosen = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    return np.array([score(documents[i], documents[j]) for i, j in chosen])


def compare(task: str, sets: list[Pairs], methods: dict[str, Score]) -> tuple[list[Row], list[str]]:
    """Rows of figures and a Markdown table: methods × sets, all pairs and pairs of one domain."""
    rows: list[Row] = []
    names = list(methods)
    cells: dict[str, list[str]] = {name: [] for name in names}
    for pairs in sets:
        scores = [similarities(pairs, methods[name]) for name in names]
        for within, where in ((False, "all pairs"), (True, "within a domain")):
            values = [pairs.auc(score, within) for score in scores]
            bounds = pairs.interval(scores, within=within)
            for name, value, interval in zip(names, values, bounds, strict=False):
                label = f"{task}: {pairs.name}, {where}: {name}"
                rows.append(Row.at_least(label, value, "AUC", None, values[-1], interval))
                cells[name].append(f"{value:.3f} [{interval[0]:.3f}, {interval[1]:.3f}]")
            gain = bounds[len(names) :][names.index("together: the engine")]
            label = f"{task}: {pairs.name}, {where}: engine above the baseline"
            gained = values[names.index("together: the engine")] - values[-1]
            rows.append(Row.at_least(label, gained, "AUC", interval=gain))
            if "held out" in pairs.name and task == "preference":
                rows.append(Row.at_least(f"{label}, lower end", gain[0], "AUC", 0.0))
    heading = [f"{p.name}{', ' + w if w else ''}" for p in sets for w in ("", "one domain")]
    table = [
        f"| {task} | " + " | ".join(heading) + " |",
        "| --- |" + " --- |" * len(heading),
        *(f"| {name} | " + " | ".join(cells[name]) + " |" for name in names),
    ]
    return rows, table


def main() -> None:
    sets = [starter_pairs("tuned"), starter_pairs("held out"), champ_pairs()]
    rows, preference = compare("preference", sets, PREFERENCES)
    read: dict[str, Score] = {name: _of_summaries(make) for name, make in SUMMARIES.items()}
    more, summary = compare("summary", sets, read)
    rows += more
    more, topics = engine_topics.compare()
    rows += more
    more, top = judged_top.compare(PREFERENCES)
    rows += more
    write("engine_comparison", rows)
    fill(PAGE, {"preference": preference, "summary": summary, "topics": topics, "top": top})


def _of_summaries(make: Callable[[Document], str]) -> Score:
    known: dict[Document, frozenset[str]] = {}

    def read(document: Document) -> frozenset[str]:
        if document not in known:
            known[document] = content_words(make(document))
        return known[document]

    return lambda one, two: jaccard(read(one), read(two))


if __name__ == "__main__":
    main()
