"""A real vLLM on a CPU, with a model of 135 million parameters: opt-in, by ``make test-vllm``.

It tests the plumbing. What such a model says of mathematics is not looked at.
"""

import os
from pathlib import Path

import pytest

from saber_dagster.engines import (
    ORDINAL_JUDGMENT,
    PAIRWISE_CHOICE,
    SOLUTION_SUMMARY,
    Call,
)

MAX_MODEL_LEN = 2048
DOCUMENTS = [
    {
        "problem": f"Prove that {i}n + {i} is even for odd n.",
        "solution": rf"\frac{{{i}(n+1)}}{{1}} has a factor 2.",
    }
    for i in range(6)
]

if not os.environ.get("SABER_TEST_VLLM_MODEL"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def weights() -> str:
    """The folder of the model, with its tokenizer."""
    folder = os.environ["SABER_TEST_VLLM_MODEL"]
    assert (Path(folder) / "config.json").is_file(), f"{folder} holds no model"
    return folder


@pytest.fixture(scope="session")
def calls() -> list[Call]:
    """Two of each kind: a forced choice, JSON by a schema, tagged text."""
    one, two, three, *_ = DOCUMENTS
    inputs = {
        PAIRWISE_CHOICE: {"query": one, "first": two, "second": three},
        ORDINAL_JUDGMENT: {"query": one, "document": two},
        SOLUTION_SUMMARY: {**two, "max_words": 30},
    }
    return [Call(task, inputs[task], f"{task} {i}", i) for i in range(2) for task in inputs]


@pytest.fixture(scope="session")
def pairs() -> list[Call]:
    """Judgments of two queries over pairs of documents, the queries by turns.

    The queries are longer than a block of the prefix cache, which on a CPU holds 128 tokens.
    """
    queries = [{**one, "solution": one["solution"] * 20} for one in DOCUMENTS[:2]]
    return [
        Call(
            PAIRWISE_CHOICE,
            {"query": queries[query], "first": DOCUMENTS[first], "second": DOCUMENTS[second]},
            f"{query}: {first} {second}",
        )
        for first, second in ((2, 3), (3, 4), (4, 5), (5, 2))
        for query in (0, 1)
    ]
