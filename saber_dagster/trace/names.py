"""Documents by their own ids or by the user's, and what was meant by one that there is not."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from saber_dagster.errors import SaberError

_LEAST_PREFIX = 6
_SUGGESTED = 4


@dataclass(frozen=True)
class Document:
    """A document of a release."""

    doc_id: str
    source: str
    source_id: str
    problem: str
    solution: str

    def __str__(self) -> str:
        """Both ids."""
        return f"{self.source_id} ({self.doc_id})"


class Documents:
    """The documents of a release, found by id.

    Args:
        texts: the table ``release_texts``.
    """

    def __init__(self, texts: pl.DataFrame) -> None:
        columns = ("doc_id", "source", "source_id", "problem", "solution")
        self._by_id: Mapping[str, Document] = {
            row[0]: Document(*row) for row in texts.select(columns).sort("doc_id").iter_rows()
        }

    def __getitem__(self, doc_id: str) -> Document:
        """The document of an id.

        Raises:
            SaberError: if the release has no text of it.
        """
        if doc_id not in self._by_id:
            raise SaberError(
                f"the release has no text of document {doc_id}, which a table names; `saber build`"
                " brings the tables up to date"
            )
        return self._by_id[doc_id]

    def find(self, text: str, among: Collection[str], what: str) -> Document:
        """The document that a person means.

        Args:
            text: a document id, the beginning of one, or a source id; ``SOURCE:ID`` where two
                sources have the same id.
            among: the document ids that come into question.
            what: what they are, for messages: ``query``.

        Raises:
            SaberError: if there is none or more than one, with the nearest or all of them.
        """
        known = [self[doc_id] for doc_id in sorted(among)]
        for found in (
            [document for document in known if document.doc_id == text],
            [document for document in known if document.source_id == text],
            [document for document in known if f"{document.source}:{document.source_id}" == text],
            [d for d in known if len(text) >= _LEAST_PREFIX and d.doc_id.startswith(text)],
        ):
            if len(found) == 1:
                return found[0]
            if found:
                listed = ", ".join(f"{d.doc_id} ({d.source}:{d.source_id})" for d in found)
                raise SaberError(f"{what} {text!r} could be {listed}; give one of these ids")
        raise SaberError(f"there is no {what} {text!r}{self._hint(text, known, what)}")

    def _hint(self, text: str, known: Sequence[Document], what: str) -> str:
        elsewhere = [d for d in self._by_id.values() if text in (d.doc_id, d.source_id)]
        names = {name: d for d in known for name in (d.source_id, d.doc_id)}
        near = difflib.get_close_matches(text, names, _SUGGESTED, cutoff=0.5)
        shown = dict.fromkeys(names[name] for name in near) or dict.fromkeys(known[:_SUGGESTED])
        kind = "nearest" if near else "there are"
        listed = ", ".join(map(str, shown))
        is_one = f": it is a document of the release, but no {what}" if elsewhere else ""
        return f"{is_one}; {kind}: {listed}" if listed else is_one


def nearest(name: str, known: Sequence[str], what: str) -> str:
    """A name that there is.

    Raises:
        SaberError: if there is none of that name; the message lists the nearest, or all.
    """
    if name in known:
        return name
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}? There are" if near else "there are"
    raise SaberError(f"there is no {what} {name!r}; {hint} {', '.join(known)}")
