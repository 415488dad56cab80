"""Summaries of the embedded baseline: techniques and telling mathematical words of a solution."""

import math
from functools import lru_cache

from resources.engines.embedded_vectors import cosine, text_vector
from resources.engines.embedded_words import techniques, vocabulary
from saber_dagster.phrases import read_text
from saber_dagster.replies import MAX_SUPPORTING_IDEAS
from saber_dagster.text import content_words

CORE_WORDS = 14
"""Content words of a core idea, techniques included, where the texts have as many."""
LEAST_WORDS = 4
"""A solution with fewer has no core idea."""
CORE_TECHNIQUES = 3
KEYWORDS = 6


@lru_cache(maxsize=4096)
def solution_summary(problem: str, solution: str, max_words: int = 30) -> str:
    """A summary in the grammar of :mod:`saber_dagster.replies`.

    Every word shown is from the package's lists, so no text of a document gets into the reply. The
    words between are stop words of summaries: they do not count when two summaries are compared.
    """
    names, words = rank_techniques(solution), rank_words(problem, solution)
    core, shown = names[:CORE_TECHNIQUES], []
    content = set(content_words(" ".join(core)))
    for word in words:
        new = content_words(word) - content
        if new and len(content) < CORE_WORDS:
            content |= new
            shown.append(word)
    while (core or shown) and len(_sentence(core, shown).split()) > max_words:
        (shown or core).pop()
    content = set(content_words(_sentence(core, shown)))
    lines = []
    if len(content) < LEAST_WORDS:
        lines.append("<no_core_idea/>")
    else:
        lines.append(f"<core_idea>{_sentence(core, shown)}</core_idea>")
    more = names[CORE_TECHNIQUES : CORE_TECHNIQUES + MAX_SUPPORTING_IDEAS]
    lines += [f"<supporting_idea>Use {name}.</supporting_idea>" for name in more]
    short = [name for name in names if len(name.split()) <= 2]
    lines += [
        f"<keyword>{name}</keyword>" for name in list(dict.fromkeys([*short, *words]))[:KEYWORDS]
    ]
    confidence = min(1.0, (len(content) + 3 * len(core)) / (CORE_WORDS + 3 * CORE_TECHNIQUES))
    lines.append(f"<confidence>{confidence:.2f}</confidence>")
    return "\n".join(lines)


def rank_techniques(solution: str) -> list[str]:
    """Techniques that a solution mentions, the weightiest first."""
    known = techniques()
    counts = known.phrases.count(read_text(solution))
    worth = {
        known.names[number]: math.sqrt(times) * known.weights[number]
        for number, times in counts.items()
    }
    return sorted(worth, key=lambda name: (-round(worth[name], 9), name))


def rank_words(problem: str, solution: str) -> list[str]:
    """Mathematical words of both texts, those first whose vector is nearest to the solution's."""
    shown = vocabulary()
    found = {shown[part] for part in read_text(solution) + read_text(problem) if part in shown}
    centre = text_vector(solution)
    return sorted(found, key=lambda word: (-round(cosine(text_vector(word), centre), 9), word))


def _sentence(core: list[str], words: list[str]) -> str:
    parts = []
    if core:
        parts.append("Use " + _listed(core))
    if words:
        parts.append(("consider " if parts else "Consider ") + _listed(words))
    return "; ".join(parts) + "."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
