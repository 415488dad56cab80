"""The two ways a table is cut: corpus shards before domains exist, domain × query shard after."""

import dagster as dg

from saber_dagster.hashing import bucket
from saber_dagster.settings import Settings


def corpus_shard_keys(settings: Settings) -> list[str]:
    """The keys ``c00``, ``c01`` and so on."""
    return [f"c{number:02d}" for number in range(settings.partitions.corpus_shards)]


def corpus_shard_of(doc_id: str, settings: Settings) -> str:
    """The corpus shard of a document: a hash bucket of its id."""
    return f"c{bucket(doc_id, settings.partitions.corpus_shards):02d}"


def corpus_shards(settings: Settings) -> dg.StaticPartitionsDefinition:
    """Hash buckets of the document id."""
    return dg.StaticPartitionsDefinition(corpus_shard_keys(settings))


def query_partitions(settings: Settings) -> dg.MultiPartitionsDefinition:
    """Primary domain of the query × query shard; keys read ``algebra|s00``."""
    shards = [f"s{number:02d}" for number in range(settings.partitions.query_shards)]
    return dg.MultiPartitionsDefinition(
        {
            "domain": dg.StaticPartitionsDefinition(list(settings.domains)),
            "shard": dg.StaticPartitionsDefinition(shards),
        }
    )


def domain_and_shard(partition_key: str) -> tuple[str, int]:
    """``"algebra|s03"`` → ``("algebra", 3)``."""
    domain, shard = partition_key.split("|")
    return domain, int(shard.removeprefix("s"))
