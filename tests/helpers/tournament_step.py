"""One step as a process of its own, to be killed: a tournament through the ledger and an engine.

Arguments: address of the server, root of the ledger, folder of its journals, file for the games, and
how many replies make a segment.
"""

import sys
from pathlib import Path

from resources.engines.openai import OpenAIEngine
from saber_dagster.contracts import TABLES
from saber_dagster.judging import make_judge
from saber_dagster.ledger import Ledger, store
from saber_dagster.storage import storage_path, write_atomic
from saber_dagster.tournament import run_tournament

CONCURRENCY = 8
ROUNDS = 6
CANDIDATES = {f"q{q}": [f"q{q}-d{d:02}" for d in range(16)] for q in range(4)}


def main(url: str, root: str, journals: str, out: str, segment_rows: str) -> None:
    """Play the tournament; write the data version of its games and the number of calls made."""
    store.SEGMENT_ROWS = store.REMOTE_SEGMENT_ROWS = int(segment_rows)
    documents = [doc for docs in CANDIDATES.values() for doc in docs]
    texts = {name: (f"Problem {name}.", f"Solution {name}.") for name in [*CANDIDATES, *documents]}
    engine = OpenAIEngine("judge", "r1", base_url=url, concurrency=CONCURRENCY, retries=0)
    ledger = Ledger(storage_path(root), Path(journals))
    with ledger.session(engine, "tournament_rounds", "algebra|s00") as session:
        games = run_tournament(CANDIDATES, ROUNDS, 7, make_judge("generate", session.ask, texts))
    version = TABLES["judgments"].version(games)
    write_atomic(Path(out), f"{version} {session.counts.made}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
