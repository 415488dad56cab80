"""A retriever of your own: shared pieces of text. See docs/extending.md."""

from collections.abc import Mapping, Sequence


class Pieces:
    """Dice's coefficient of the sets of n-character pieces of query and document.

    Args:
        n: length of a piece.
    """

    name = "pieces"

    def __init__(self, n: int = 4) -> None:
        self.n = n
        self.revision = f"1-n={n}"  # changes whenever a score can

    def fit(self, documents: Mapping[str, str]) -> None:
        """Take statistics of the corpus from documents by id; this retriever has none."""

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """One finite number per (id, text), in order; higher is more relevant."""
        query = self._pieces(query_text)
        others = [self._pieces(text) for _, text in documents]
        return [2 * len(query & other) / (len(query) + len(other) or 1) for other in others]

    def _pieces(self, text: str) -> set[str]:
        return {text[i : i + self.n] for i in range(len(text) - self.n + 1)}
