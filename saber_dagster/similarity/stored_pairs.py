"""Stored pairs made whole: positions and both signals from gaps, units and numbers of common words."""

from typing import Any

from saber_dagster.similarity.kernel import kernel


@kernel
def unfold(
    query: Any,
    gap: Any,
    topic: Any,
    overlap: Any,
    word_counts: Any,
    units: int,
    docs: Any,
    topics: Any,
    summaries: Any,
) -> int:
    """Write document, topic and summary signal of each pair.

    Args:
        query: (n_pairs,) position of the query; ascending.
        gap: (n_pairs,) position of the document minus that of the query's document before.
        topic: (n_pairs,) topic signal, as many as ``units`` are 1.
        overlap: (n_pairs,) number of common words.
        word_counts: (n_problems,) sizes of the word sets.
        units: what a topic signal of 1 is stored as.
        docs: (n_pairs,) for the positions of the documents.
        topics: (n_pairs,) for the topic signals.
        summaries: (n_pairs,) for the summary signals.

    Returns:
        The first pair that is out of order, or not of so many problems and words; -1 if there is none.
    """
    n_problems = word_counts.size
    last = -1
    place = 0
    for i in range(query.size):
        asked = int(query[i])
        if asked == last:
            if gap[i] == 0:
                return i
            place += int(gap[i])
        else:
            if asked < last or asked >= n_problems:
                return i
            last = asked
            place = int(gap[i])
        if place >= n_problems or topic[i] > units:
            return i
        left, right, common = int(word_counts[asked]), int(word_counts[place]), int(overlap[i])
        if common > left or common > right:
            return i
        docs[i] = place
        topics[i] = topic[i] / float(units)
        summaries[i] = common / max(left + right - common, 1)
    return -1
