"""The protocol of a retriever, and how one is loaded and called."""

import difflib
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from saber_dagster.errors import SaberError
from saber_dagster.plugins import PREFIX, call_user, lacking, load_class, make, text_of
from saber_dagster.retrieval import BUILT_IN

_MEMBERS = ("name", "revision", "fit", "score")


@runtime_checkable
class Retriever(Protocol):
    """Anything that scores documents for a query.

    A score depends on the query's text, the document's id and text, and what :meth:`fit` saw; never
    on the other documents of the call or on earlier calls. A retriever may also have an attribute
    ``decimals``: its scores are rounded to that many before they are ranked, so that differences
    below its numerical noise are ties.

    Example:
        The longest common prefix as a retriever, in a module ``my_retrievers.py``; its
        specification is ``python:my_retrievers:Prefix``::

            import os.path

            class Prefix:
                name = "prefix"
                revision = "1"

                def fit(self, documents):
                    pass

                def score(self, query_text, documents):
                    return [
                        len(os.path.commonprefix([query_text, text])) for doc_id, text in documents
                    ]
    """

    @property
    def name(self) -> str:
        """Name of the method or model."""
        ...

    @property
    def revision(self) -> str:
        """Exact revision: it changes whenever a score can."""
        ...

    def fit(self, documents: Mapping[str, str]) -> None:
        """Take corpus statistics from documents (id → text, sorted by id), replacing earlier ones.

        A retriever without statistics does nothing here. Every document that is scored later is
        among them.
        """
        ...

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """One finite number per (id, text), in order; higher is more relevant."""
        ...


def load_retriever(spec: str, **options: Any) -> Retriever:
    """Make a retriever from the name of a built-in or from ``python:package.module:Class``.

    Args:
        spec: a key of :data:`saber_dagster.retrieval.BUILT_IN`, or a user's class.
        options: keyword arguments of the class.

    Raises:
        SaberError: if there is no such retriever, module or class, the class does not take the
            options, raises, or lacks a part of the protocol; the message has the remedy.
    """
    if spec.startswith(PREFIX):
        path = spec.removeprefix(PREFIX)
    elif spec in BUILT_IN:
        path = BUILT_IN[spec]
    else:
        near = difflib.get_close_matches(spec, BUILT_IN, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise SaberError(
            f"There is no retriever {spec!r}. {hint}Built in are {', '.join(BUILT_IN)}; name your "
            f"own as {PREFIX}package.module:Class."
        )
    what = f"Retriever {spec!r}"
    retriever = make(load_class(path, what), options, what)
    missing = lacking(retriever, _MEMBERS, what)
    if missing:
        raise SaberError(
            f"{what} has no {', '.join(missing)}; a retriever has "
            f"{', '.join(_MEMBERS)} (see saber_dagster.retrieval.base.Retriever)."
        )
    remedy = f"Check its options ({', '.join(options)})" if options else "Mend the class"
    for member in ("name", "revision"):
        text_of(retriever, member, what, remedy)
    decimals = call_user(what, "decimals", getattr, retriever, "decimals", None)
    if decimals is not None and not isinstance(decimals, int):
        raise SaberError(f"{what}: decimals is {decimals!r}; it must be an int, or None.")
    return cast(Retriever, retriever)


def checked_fit(retriever: Retriever, documents: Mapping[str, str]) -> None:
    """Fit a retriever.

    Raises:
        SaberError: if it raises; it names the retriever, the exception and the line.
    """
    call_user(f"Retriever {retriever.name}", "fit", retriever.fit, documents)


def checked_scores(
    retriever: Retriever, query_id: str, query_text: str, documents: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    """Scores of documents for a query, checked and rounded to the retriever's ``decimals``.

    Returns:
        Shape (documents,), finite, without negative zeros.

    Raises:
        SaberError: if the retriever raises, or returns the wrong number of scores, or one that is
            not a finite number; it names retriever, query and document.
    """
    if not documents:
        return np.zeros(0)
    place = f"Retriever {retriever.name}, query {query_id}"
    returned = call_user(place, "score", retriever.score, query_text, documents)
    values = call_user(
        place, "np.asarray(scores)", np.asarray, returned, remedy="Return a list of numbers"
    )
    if values.shape != (len(documents),):
        raise SaberError(
            f"{place}: scores of shape {values.shape} for {len(documents)} documents. Return one "
            "number per document, in order."
        )
    if values.dtype.kind not in "buif":
        for (doc_id, _), value in zip(documents, returned, strict=True):
            if not isinstance(value, Real):
                raise SaberError(
                    f"{place}, document {doc_id}: the score is {value!r}, a "
                    f"{type(value).__name__}. Return a number for every document."
                )
    scores = np.array([_double(value) for value in values])
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise SaberError(
            f"{place}, document {documents[bad[0]][0]}: the score is {scores[bad[0]]} ({bad.size} "
            "of this query's scores are not finite). Return a finite number for every document, "
            "empty ones too."
        )
    decimals: int | None = getattr(retriever, "decimals", None)
    rounded = scores if decimals is None else np.round(scores, decimals)
    return rounded + 0.0


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an int or a fraction beyond the largest double
        return math.inf
