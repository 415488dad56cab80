import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from saber_dagster.contracts import TABLES
from saber_dagster.errors import SaberError
from saber_dagster.retrieval import BUILT_IN
from saber_dagster.retrieval.base import Retriever, checked_fit, checked_scores, load_retriever
from saber_dagster.retrieval.reference import Random, oracle_run
from saber_dagster.retrieval.runs import SETTINGS, document_text, make_run, query_text

TEXTS = {
    "q1": ("even squares", "parity of squares"),
    "q2": ("triangle area", ""),
    "a": ("even numbers", "parity"),
    "b": ("area of a circle", "integrate"),
    "c": ("triangle inequality", "sum of sides"),
    "d": ("odd squares", "squares are parity preserving"),
}
CANDIDATES = {"q1": ["a", "b", "d"], "q2": ["c", "b"]}
CORPUS = {key: TEXTS[key] for key in "abcd"}


class Fixed:
    """Returns what it was given; records what it saw."""

    name = "fixed"
    revision = "1"

    def __init__(self, scores=None):
        self.scores = scores
        self.fitted = []
        self.seen = []

    def fit(self, documents):
        self.fitted.append(dict(documents))

    def score(self, query_text, documents):
        self.seen.append((query_text, list(documents)))
        return [float(len(text)) for _, text in documents] if self.scores is None else self.scores


class NoScore:
    name = "incomplete"
    revision = "1"

    def fit(self, documents):
        pass


def test_every_built_in_follows_the_protocol(tmp_path):
    for name in BUILT_IN:
        options = {"model": str(tmp_path)} if name == "sentence_transformer" else {}
        retriever = load_retriever(name, **options)
        assert isinstance(retriever, Retriever)
        assert retriever.name
        assert retriever.revision == load_retriever(name, **options).revision


def test_own_class_is_loaded_with_options():
    retriever = load_retriever(f"python:{__name__}:Fixed", scores=[1.0])
    assert retriever.score("q", [("a", "")]) == [1.0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bm52", "Did you mean 'bm25'"),
        ("python:no_such_module_here:X", "cannot be imported"),
        (f"python:{__name__}:Absent", "has no class Absent"),
        (f"python:{__name__}:NoScore", "has no score"),
        (f"python:{__name__}", "not of the form"),
        ("python::X", "not of the form"),
    ],
)
def test_bad_specifications_say_what_is_wrong(spec, message):
    with pytest.raises(SaberError, match=message):
        load_retriever(spec)


@pytest.mark.parametrize("option", ["k1", "b"])
@pytest.mark.parametrize("value", ["foo", True, None, [1]])
def test_a_wrong_option_value_is_named(option, value):
    with pytest.raises(
        SaberError, match=rf"Retriever 'bm25': option {option} is .*; it must be a number"
    ):
        load_retriever("bm25", **{option: value})


@pytest.mark.parametrize(
    ("option", "value"), [("k1", -1), ("k1", -1e-9), ("b", -5), ("b", 1.1), ("b", -1e-9)]
)
def test_an_option_of_bm25_out_of_range_is_named(option, value):
    with pytest.raises(SaberError, match=rf"Retriever 'bm25': {option} is {value}; it must be"):
        load_retriever("bm25", **{option: value})


@pytest.mark.parametrize(("k1", "b", "end"), [(0, 1, "k1=0-b=1"), (1.5, 0.75, "k1=1.5-b=0.75")])
def test_revisions_of_bm25_stay(k1, b, end):
    assert load_retriever("bm25", k1=k1, b=b).revision.endswith(end)


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("name", None, "name is None; it must be a str"),
        ("name", " ", "name is ' '; it must be a str that is not empty"),
        ("revision", 1, "revision is 1; it must be a str"),
        ("revision", property(lambda self: self.absent), "revision raised AttributeError.*absent"),
        ("decimals", "3", "decimals is '3'; it must be an int"),
    ],
)
def test_a_member_with_a_wrong_value_is_named(monkeypatch, member, value, message):
    monkeypatch.setattr(Fixed, member, value, raising=False)
    with pytest.raises(SaberError, match=f"Retriever 'python:.*:Fixed': {message}"):
        load_retriever(f"python:{__name__}:Fixed")


def test_unknown_option_is_named():
    with pytest.raises(SaberError, match=r"bm25.*no option 'k2'. Its options are k1, b"):
        load_retriever("bm25", k2=1)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, math.nan], "fixed, query q, document b: the score is nan"),
        ([math.inf, 1.0], "fixed, query q, document a: the score is inf"),
        ([1.0], r"shape \(1,\) for 2 documents"),
        ([[1.0], [2.0]], r"shape \(2, 1\)"),
        ([1.0, "2"], "fixed, query q, document b: the score is '2', a str"),
        (["x", "y"], "fixed, query q, document a: the score is 'x'"),
        ([1.0, None], "fixed, query q, document b: the score is None"),
        ([1.0, 1j], "document a: the score is|document b: the score is 1j"),
        ([10**400, 1.0], "document a: the score is inf"),
        ([[1.0], [1.0, 2.0]], "fixed, query q: .*asarray.*ValueError.*list of numbers"),
        (None, r"shape \(\) for 2"),
    ],
)
def test_bad_scores_name_retriever_query_and_document(scores, message):
    retriever = Fixed(scores)
    if scores is None:
        retriever.score = lambda query_text, documents: None
    with pytest.raises(SaberError, match=message):
        checked_scores(retriever, "q", "text", [("a", ""), ("b", "")])


@pytest.mark.parametrize("scores", [[1, 2], [True, False], [Fraction(1, 2), 3]])
def test_any_real_numbers_are_scores(scores):
    checked = checked_scores(Fixed(scores), "q", "", [("a", ""), ("b", "")])
    assert checked.dtype == np.float64
    assert checked.tolist() == [float(score) for score in scores]


def test_an_exception_in_a_users_score_or_fit_is_placed():
    class Broken(Fixed):
        def fit(self, documents):
            raise KeyError("idf")

        def score(self, query_text, documents):
            return [1 // len(text) for _, text in documents]

    line = Broken.score.__code__.co_firstlineno + 1
    with pytest.raises(
        SaberError, match=rf"fixed, query q: score raised ZeroDivisionError: .*{__file__}:{line}\)"
    ):
        checked_scores(Broken(), "q", "", [("a", "")])
    with pytest.raises(SaberError, match=rf"fixed: fit raised KeyError: 'idf' \({__file__}:"):
        checked_fit(Broken(), {"a": ""})


def test_scores_are_rounded_to_the_retrievers_decimals_only():
    retriever = Fixed([1e-12, -1e-12])
    documents = [("a", ""), ("b", "")]
    assert checked_scores(retriever, "q", "", documents).tolist() == [1e-12, -1e-12]
    retriever.decimals = 9
    rounded = checked_scores(retriever, "q", "", documents)
    assert [math.copysign(1, score) for score in rounded] == [1.0, 1.0]
    assert rounded.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("setting", "query", "document"),
    [
        ("statement-full", "P", "p\n\ns"),
        ("full-full", "P\n\nS", "p\n\ns"),
        ("statement-statement", "P", "p"),
    ],
)
def test_settings_show_the_papers_texts(setting, query, document):
    assert query_text(("P", "S"), setting) == query
    assert document_text(("p", "s"), setting) == document
    retriever = Fixed()
    make_run(retriever, [setting], {"q": ["d"]}, {"q": ("P", "S"), "d": ("p", "s")})
    assert retriever.seen == [(query, [("d", document)])]


def test_run_ranks_by_score_then_id():
    run = make_run(Fixed([1.0, 1.0, 2.0]), ["full-full"], {"q1": ["d", "b", "a"]}, TEXTS)
    assert run.sort("rank")["doc_id"].to_list() == ["d", "a", "b"]
    assert run.schema == TABLES["run"].schema


def test_statistics_come_from_the_corpus_sorted_by_id_once_per_setting():
    retriever = Fixed()
    corpus = dict(reversed(CORPUS.items()))
    make_run(retriever, ["statement-full", "statement-statement"], CANDIDATES, TEXTS, corpus)
    assert [list(fitted) for fitted in retriever.fitted] == [["a", "b", "c", "d"]] * 2
    assert retriever.fitted[1]["a"] == "even numbers"


def test_statistics_come_from_each_querys_candidates_without_a_corpus():
    retriever = Fixed()
    make_run(retriever, ["statement-full"], CANDIDATES, TEXTS)
    assert [list(fitted) for fitted in retriever.fitted] == [["a", "b", "d"], ["b", "c"]]


@pytest.mark.parametrize(
    ("candidates", "texts", "corpus", "message"),
    [
        ({"q1": ["a", "nowhere"]}, TEXTS, None, "no text for nowhere"),
        ({"nobody": ["a"]}, TEXTS, None, "no text for nobody"),
        ({"q1": ["a", "q1"]}, TEXTS, None, "own candidate"),
        ({"q1": ["a", "b", "a"]}, TEXTS, None, "candidate a twice"),
        ({"q1": ["a"]}, TEXTS, {"b": TEXTS["b"]}, "a is missing in the corpus"),
        ({"q1": ["a"]}, TEXTS, {"a": ("other", "")}, "a reads differently"),
    ],
)
def test_bad_candidates_are_errors(candidates, texts, corpus, message):
    with pytest.raises(SaberError, match=message):
        make_run(Fixed(), ["full-full"], candidates, texts, corpus)


def test_unknown_setting_is_an_error():
    with pytest.raises(SaberError, match="full-half"):
        make_run(Fixed(), ["full-half"], CANDIDATES, TEXTS)


def test_no_queries_and_no_candidates_give_empty_runs():
    assert make_run(Fixed(), list(SETTINGS), {}, {}).height == 0
    assert make_run(load_retriever("bm25"), list(SETTINGS), {"q1": []}, TEXTS).height == 0


def test_random_is_uniform_and_a_function_of_its_inputs():
    documents = [(f"d{i}", "") for i in range(4000)]
    scores = Random(seed=1).score("q", documents)
    assert scores == Random(seed=1).score("q", documents)
    assert scores != Random(seed=2).score("q", documents)
    assert scores != Random(seed=1).score("p", documents)
    assert abs(sum(scores) / 4000 - 0.5) < 4 * math.sqrt(1 / 12 / 4000)
    assert sum(score < 0.1 for score in scores) / 4000 == pytest.approx(0.1, abs=0.02)


def test_oracle_ranks_by_rating_then_id():
    benchmark = pl.DataFrame(
        {"query_id": ["q"] * 3, "doc_id": ["b", "c", "a"], "rating": [5.0, 0.0, 5.0]}
    )
    run = oracle_run(benchmark, "full-full")
    assert run.sort("rank")["doc_id"].to_list() == ["a", "b", "c"]
