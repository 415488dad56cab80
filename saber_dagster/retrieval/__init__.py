"""Retrievers: what the benchmark measures.

A retriever scores documents for a query (:mod:`~saber_dagster.retrieval.base` has the protocol and
an example); :mod:`~saber_dagster.retrieval.runs` turns scores into a ranking of each query's
candidates. Retrievers are loaded by name or, a user's own, as ``python:package.module:Class``.
"""

BUILT_IN = {
    "bm25": "saber_dagster.retrieval.lexical:BM25",
    "tfidf": "saber_dagster.retrieval.lexical:TfIdf",
    "jaccard": "saber_dagster.retrieval.lexical:Jaccard",
    "minilm": "saber_dagster.retrieval.minilm:MiniLM",
    "random": "saber_dagster.retrieval.reference:Random",
    "sentence_transformer": "saber_dagster.retrieval.sentence_transformer:SentenceTransformer",
}
"""Built-in retrievers: name → ``module:Class``. Nothing is imported before it is used."""
