from collections import Counter

from saber_dagster.swiss import pair_round

DOCS = ["a", "b", "c", "d"]


def left_out(docs, pairs):
    return set(docs) - {doc for pair in pairs for doc in pair}


def test_a_document_meets_the_closest_score():
    scores = {"a": 0.0, "b": 3.0, "c": 1.0, "d": 2.5}
    assert pair_round(scores, set(), 4, seed=1, query_id="q") == [("a", "c"), ("b", "d")]


def test_documents_do_not_meet_again():
    scores = {"a": 0.0, "b": 0.0, "c": 5.0, "d": 9.0}
    for seed in range(20):
        pairs = pair_round(scores, {("a", "b")}, 2, seed, "q")
        assert sorted(pairs) in ([("a", "c"), ("b", "d")], [("a", "d"), ("b", "c")])


def test_the_lowest_document_sits_out_when_it_has_met_everyone():
    scores = {"a": 0.0, "b": 1.0, "c": 2.0}
    assert pair_round(scores, {("a", "b"), ("a", "c")}, 3, 1, "q") == [("b", "c")]


def test_nothing_is_left_when_all_have_met():
    assert pair_round({"a": 0.0, "b": 1.0}, {("a", "b")}, 2, 1, "q") == []
    assert pair_round({}, set(), 1, 1, "q") == []


def test_the_first_round_is_a_uniform_random_matching():
    matchings = Counter(
        tuple(sorted(pair_round(dict.fromkeys(DOCS, 0.0), set(), 1, seed, "q")))
        for seed in range(600)
    )
    assert len(matchings) == 3
    assert all(abs(count - 200) < 50 for count in matchings.values())  # 4 standard deviations


def test_who_sits_out_an_odd_first_round_is_random():
    docs = DOCS[:3]
    scores = dict.fromkeys(docs, 0.0)
    out = Counter()
    for seed in range(600):
        out.update(left_out(docs, pair_round(scores, set(), 1, seed, "q")))
    assert all(abs(out[doc] - 200) < 50 for doc in docs)


def test_ties_for_the_opponent_are_broken_at_random():
    scores = {"a": 0.0, "b": 1.0, "c": 1.0, "d": 1.0}
    opponents = Counter()
    for seed in range(600):
        pairs = pair_round(scores, set(), 2, seed, "q")
        opponents[next(pair[1] for pair in pairs if pair[0] == "a")] += 1
    assert all(abs(opponents[doc] - 200) < 50 for doc in "bcd")


def test_seed_query_and_round_each_change_the_draw():
    docs = [f"d{i:02}" for i in range(30)]
    base = pair_round(dict.fromkeys(docs, 0.0), set(), 1, 1, "q")
    assert base != pair_round(dict.fromkeys(docs, 0.0), set(), 2, 1, "q")
    assert base != pair_round(dict.fromkeys(docs, 0.0), set(), 1, 2, "q")
    assert base != pair_round(dict.fromkeys(docs, 0.0), set(), 1, 1, "p")
