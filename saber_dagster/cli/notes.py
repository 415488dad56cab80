"""What a person should know about a finished build."""

from saber_dagster.home import Home
from saber_dagster.releases import release_of
from saber_dagster.tables import TableStore

_SHOWN = 5


def notes(home: Home) -> list[str]:
    """Thin domains, queries that were left out, and documents that no release has."""
    return [*_thin_domains(home), *_own_queries(home), *_new_documents(home)]


def _thin_domains(home: Home) -> list[str]:
    required = home.settings.thresholds.queries_required
    thresholds = TableStore(home.tables).read("thresholds", ["thresholds"], None)
    return [
        f"{row['domain']}: {row['eligible_queries']} eligible queries, fewer than {required}"
        f" ({row['n_queries']} documents could be queries); lower candidates.per_group or add problems"
        " of this domain"
        for row in thresholds.iter_rows(named=True)
        if row["eligible_queries"] < required
    ]


def _own_queries(home: Home) -> list[str]:
    if home.settings.corpus.queries is None:
        return []
    corpus = TableStore(home.tables).read("corpus", ["raw_sources"], None)
    mine = corpus.filter("is_query").sort("source_id", "source")
    used = set(release_of(home.releases, home.settings).read("query_set")["query_id"])
    others = [row["source_id"] for row in mine.iter_rows(named=True) if row["doc_id"] not in used]
    if not others:
        return []
    k = home.settings.candidates.per_group
    return [
        f"{mine.height - len(others)} of {mine.height} of your queries are in the benchmark; the others"
        f" lack {k} documents in a group (or have no topic or summary), such as"
        f" {', '.join(others[:_SHOWN])}"
    ]


def _new_documents(home: Home) -> list[str]:
    release = release_of(home.releases, home.settings)
    pinned = set(release.read("release_texts")["doc_id"])
    index = TableStore(home.tables).read("problem_index", ["problem_index"], None)
    new = sum(doc not in pinned for doc in index.filter("is_document")["doc_id"])
    if not new:
        return []
    return [
        f"{new} document(s) of the corpus are not in release {release.name}, which stays as it was;"
        " `saber release create NAME` makes a release with them"
    ]
