"""Does a small LLM prefer the documents that the embedded engine prefers?

``SABER_TEST_GGUF=model.gguf python -m benchmarks.engine_llm_agreement``: starts llama.cpp's server
from the PyPI package xllamacpp, asks for documents of the starter corpus whether they share the key
technique of a query, and compares the order of the log-odds of "Yes" with that of the engine and of
plain word Jaccard. Takes about 10 minutes on 2 cores with a model of 1.5 billion parameters.
"""

import hashlib
import math
import os
import random
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import openai

from benchmarks.results_file import PAGE, Row, fill, write
from resources.engines.embedded_judgments import similarity
from saber_dagster.starter import StarterEntry, starter_entries
from saber_dagster.text import words

QUERIES_PER_DOMAIN = 2
DOCUMENTS = 8
SHARING = 3
"""Documents of a query that share a technique with it, where there are as many."""
CHARS = 700
SEED = 11
_QUESTION = """Reference problem:
{query}

Other problem:
{document}

Is the other problem solved by the same key technique as the reference problem? Answer Yes or No."""


@dataclass(frozen=True)
class Asked:
    """One query, its documents and the LLM's log-odds of "Yes" for each."""

    query: StarterEntry
    documents: list[StarterEntry]
    log_odds: list[float]


def sample() -> list[tuple[StarterEntry, list[StarterEntry]]]:
    """Seeded queries of each domain, each with documents that share a technique and others."""
    rng = random.Random(SEED)
    entries = starter_entries()
    chosen = []
    for domain in dict.fromkeys(entry.domain for entry in entries):
        for query in rng.sample([e for e in entries if e.domain == domain], QUERIES_PER_DOMAIN):
            others = [e for e in entries if e is not query]
            sharing = [e for e in others if set(e.techniques) & set(query.techniques)]
            rest = [e for e in others if e not in sharing and e.domain == domain]
            some = rng.sample(sharing, min(SHARING, len(sharing)))
            chosen.append((query, some + rng.sample(rest, DOCUMENTS - len(some))))
    return chosen


def text(entry: StarterEntry) -> str:
    """Problem and solution as the LLM sees them, cut to :data:`CHARS` each."""
    return f"{entry.problem[:CHARS]}\nSolution: {entry.solution[:CHARS]}"


def ask(client: openai.OpenAI, query: StarterEntry, document: StarterEntry) -> float:
    """Log-odds of "Yes" against "No" as the first token of the answer."""
    content = _QUESTION.format(query=text(query), document=text(document))
    reply = client.chat.completions.create(
        model="local",
        messages=[{"role": "user", "content": content}],
        max_tokens=1,
        temperature=0,
        logprobs=True,
        top_logprobs=20,
    )
    logprobs = reply.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content
    share = {"yes": 1e-9, "no": 1e-9}
    for entry in logprobs.content[0].top_logprobs:
        if entry.token.strip().lower() in share:
            share[entry.token.strip().lower()] += math.exp(entry.logprob)
    return math.log(share["yes"] / share["no"])


def jaccard(query: StarterEntry, document: StarterEntry) -> float:
    """Plain Jaccard similarity of the words of problem and solution."""
    one, two = (set(words(f"{e.problem} {e.solution}")) for e in (query, document))
    return len(one & two) / len(one | two)


def engine(query: StarterEntry, document: StarterEntry) -> float:
    """What the embedded engine compares."""
    return similarity((query.problem, query.solution), (document.problem, document.solution))


def techniques(query: StarterEntry, document: StarterEntry) -> float:
    """1 if the labels say that a technique is shared."""
    return float(bool(set(query.techniques) & set(document.techniques)))


def agreement(asked: list[Asked], score) -> list[tuple[int, int]]:
    """For each query: pairs of documents ordered alike by the LLM and by a score, and all such pairs."""
    counts = []
    for one in asked:
        scores = [score(one.query, document) for document in one.documents]
        same = total = 0
        for i, j in combinations(range(len(scores)), 2):
            if scores[i] != scores[j] and one.log_odds[i] != one.log_odds[j]:
                total += 1
                same += (scores[i] > scores[j]) == (one.log_odds[i] > one.log_odds[j])
        counts.append((same, total))
    return counts


def share(counts: list[tuple[int, int]]) -> tuple[float, float, float]:
    """The share of pairs and its 95 % interval by a bootstrap over queries."""
    table = np.array(counts, dtype=float)
    rng = np.random.default_rng(SEED)
    draws = rng.integers(0, len(table), (2000, len(table)))
    sums = table[draws].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], [0.025, 0.975])
    return float(table[:, 0].sum() / table[:, 1].sum()), float(low), float(high)


def main() -> None:
    import xllamacpp

    path = Path(os.environ["SABER_TEST_GGUF"])
    with path.open("rb") as file:
        sha = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.verbosity = 0
    os.environ["NO_PROXY"] = "127.0.0.1"
    server = xllamacpp.Server(params)
    client = openai.OpenAI(base_url=f"{server.listening_address}/v1", api_key="none")
    asked, start = [], time.perf_counter()
    for query, documents in sample():
        odds = [ask(client, query, document) for document in documents]
        asked.append(Asked(query, documents, odds))
        print(f"{query.id}: {' '.join(f'{value:.2f}' for value in odds)}", flush=True)
    seconds = time.perf_counter() - start
    baseline = share(agreement(asked, jaccard))[0]
    rows, lines = [], []
    for name, score in (
        ("embedded engine", engine),
        ("word Jaccard", jaccard),
        ("technique labels", techniques),
    ):
        value, low, high = share(agreement(asked, score))
        label = f"pairs ordered as by the LLM {sha}: {name}"
        rows.append(Row.at_least(label, value, "share", None, baseline, (low, high)))
        lines.append(f"| {name} | {value:.3f} [{low:.3f}, {high:.3f}] |")
    rows.append(Row("seconds per question", seconds / sum(len(a.documents) for a in asked), "s"))
    write("engine_llm_agreement", rows)
    table = ["| ordered by | pairs ordered as by the LLM |", "| --- | ---: |", *lines]
    fill(PAGE, {"llm": table})


if __name__ == "__main__":
    main()
