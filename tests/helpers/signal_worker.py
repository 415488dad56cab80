"""A worker that computes some shards of a synthetic corpus and prints the SHA-256 of each as stored."""

import hashlib
import io
import sys

from benchmarks.synthetic_corpus import make_corpus, problem_index
from saber_dagster.partitions import domain_and_shard
from saber_dagster.signals.join import SignalJoin, query_positions
from saber_dagster.signals.statistics import topic_statistics
from saber_dagster.signals.storage import encode

corpus = make_corpus(1500, "high")
index = problem_index(corpus, 2)
join = SignalJoin(
    index, corpus.tree, topic_statistics(index, corpus.tree), 0.5, 0.1, 1e-12, block=64
)
for partition in sys.argv[1:]:
    domain, shard = domain_and_shard(partition)
    mine = index.filter("is_query", primary_domain=domain, shard=shard)
    rows = join.rows(query_positions(index, mine["doc_id"]))
    file = io.BytesIO()
    encode(rows).write_parquet(file)
    print(partition, len(rows), hashlib.sha256(file.getvalue()).hexdigest())
