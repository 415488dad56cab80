"""Budgets of money: servers that count no tokens, engines without prices, and how sums are shown."""

import logging

import pytest
from llm_script import GOOD, completion, make, make_calls
from rich.console import Console

from saber_dagster.build_report import AssetCost, BuildReport, RunRecord
from saber_dagster.cli import app, build
from saber_dagster.engines import Reply, Usage
from saber_dagster.ledger import Budget, BudgetSpent, Ledger, LedgerError
from saber_dagster.ledger.budget import dollars, knows_price
from saber_dagster.materialize import _spent
from saber_dagster.replies import parse_verdict

PRICES = {"prompt": 1e6, "completion": 1e6}
"""A dollar a token."""


def ask(engine, calls, budget, folder):
    session = Ledger(folder).session(engine, "games", "p", budget=budget)
    with session:
        session.ask(calls, lambda call, text: parse_verdict(text))
    return session.counts


@pytest.mark.parametrize(
    "usage",
    [None, {"prompt_tokens": None}, {"prompt_tokens": -5, "completion_tokens": 1.5}],
)
def test_a_budget_stops_a_server_that_counts_no_tokens(script, tmp_path, caplog, usage):
    script.default = completion(usage=usage)
    engine = make(script, price_per_million=PRICES, concurrency=1)
    calls = make_calls(6)
    prompt = sum(engine.count_tokens(message["content"]) for message in engine.messages(calls[0]))
    each = prompt + engine.count_tokens(GOOD)
    with caplog.at_level(logging.WARNING, "saber_dagster.engines"), pytest.raises(BudgetSpent):
        ask(engine, calls, Budget(usd=1.5 * each), tmp_path)
    stored = Ledger(tmp_path).frame()
    assert 2 <= stored.height <= 3, "the second call spends it, and one may be in flight"
    assert set(stored["price"]) == {float(each)}
    told = [r for r in caplog.messages if "sends no token counts; they are estimated" in r]
    assert len(told) == 1


def test_what_the_server_counts_is_not_estimated(script, tmp_path):
    script.default = completion(usage={"prompt_tokens": 3, "completion_tokens": 2})
    counts = ask(make(script, price_per_million=PRICES), make_calls(1), Budget(), tmp_path)
    assert (counts.prompt_tokens, counts.completion_tokens, counts.price) == (3, 2, 5.0)


def test_an_answer_without_a_choice_is_asked_again(script, tmp_path):
    script.steps.append((200, {}, '{"choices": []}'))
    counts = ask(make(script), make_calls(1), Budget(), tmp_path)
    assert dict(counts.by_status) == {"ok": 1}
    assert len(script.requests) == 2


def test_missing_prices_are_named_even_if_others_have_spent_the_budget(script, tmp_path):
    with pytest.raises(LedgerError, match="has no prices") as caught:
        ask(make(script), make_calls(1), Budget(usd=0.0), tmp_path)
    assert not isinstance(caught.value, BudgetSpent)
    assert script.requests == []


def test_whether_an_engine_knows_its_price(script, scripted_engine):
    assert knows_price(make(script, price_per_million=PRICES))
    assert not knows_price(make(script))
    engine = scripted_engine(lambda call: Reply("ok", "x", usage=Usage(1, 1)))
    assert not knows_price(engine)
    engine.free = True
    assert knows_price(engine)


def test_sums_are_shown_in_digits_enough():
    shown = [dollars(usd) for usd in (0, 2, 1234.5, 0.01239, 0.0000123449)]
    assert shown == ["$0.0000", "$2.0000", "$1,234.5000", "$0.01239", "$0.00001234"]
    assert _spent(Budget(usd=0.0124), 8, 0.0123901) == "$0.01239 of $0.0124, 8 calls"
    assert _spent(Budget(calls=8), 8, 0.0) == "8 of 8 calls"


def test_the_table_of_a_build_shows_an_unknown_price_as_unknown():
    assets = {}
    for name, told in {
        "unpriced": {"calls_asked": 2, "calls_made": 2, "tokens": 9},
        "priced": {"calls_asked": 2, "calls_made": 2, "tokens": 9, "price_usd": 0.0125},
        "free": {"calls_asked": 2, "calls_made": 2, "tokens": 0},
    }.items():
        assets[name] = AssetCost()
        assets[name].add_calls(told)
    table = build._cost_table(BuildReport([RunRecord(None, 1.0, 1.0, assets)]))
    console = Console(width=160)
    with console.capture() as caught:
        console.print(table)
    last = {line.split()[1]: line.split()[-2] for line in caught.get().splitlines() if "│" in line}
    assert last == {"unpriced": "?", "priced": "0.0125", "free": "0.00"}


def test_ledger_stats_show_small_sums(script, tmp_path, monkeypatch, capsys):
    script.default = completion(usage={"prompt_tokens": 3, "completion_tokens": 2})
    prices = {"prompt": 1000.0, "completion": 1000.0}
    ask(make(script, price_per_million=prices), make_calls(1), Budget(), tmp_path / "ledger")
    monkeypatch.setenv("SABER_HOME", str(tmp_path))
    with pytest.raises(SystemExit):
        app(["ledger", "stats"])
    assert "0.0050" in capsys.readouterr().out
