"""The checks that hold a table against a rule of :mod:`saber_dagster.rules`: names and remedies.

A rule blocks where what is built on the table would be wrong. It warns where the table is what the user
asked for, and may not be what the user wants. ``docs/checks.md`` lists all checks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from assets.stage import Check, CheckRule
from saber_dagster.rules.base import Violation

LEAST_WITH_TOPIC = 0.8
"""Share of the documents that should have a topic."""
LEAST_WITH_CORE_IDEA = 0.8
"""Share of the summaries that should have a core idea."""

_AGAIN = "materialize the table again, and what it is made from; if it fails again, report a bug"


@dataclass(frozen=True)
class Rule(CheckRule):
    """A check that fails where there are violations of a rule."""

    remedy: str = _AGAIN

    def verdict(self, found: Iterable[Violation]) -> Check:
        """The check of a table with these violations."""
        faults = list(found)
        if not faults:
            return Check(self.name, True, self.description, {"violations": 0})
        said = "; ".join(str(fault) for fault in faults)
        total = sum(fault.count for fault in faults)
        return Check(self.name, False, f"{said}. Remedy: {self.remedy}", {"violations": total})

    def pinned(self, release: object) -> Check:
        """The check of a table that a release hands out: it held when the release was made."""
        return Check(self.name, True, f"as release {release} pins it: checked when it was made")


# corpus and ontology

CONTENT_IDS = Rule(
    "ids_are_content_hashes", "Every document's id is the hash of its problem and solution."
)
CLUSTERS = Rule(
    "near_duplicates_share_a_cluster",
    "Problems that differ in case and white space only share a cluster.",
)
LICENCES = Rule(
    "licences_are_known",
    "Every problem has a licence.",
    blocking=False,
    remedy="give the file a column licence, or its source a licence in saber.yaml (corpus.files)",
)
PARTITION = Rule("shards_are_a_partition", "Every document of raw_sources is in exactly one shard.")
TREE = Rule(
    "tree_is_consistent", "Depth, path and domain of every topic continue those of its parent."
)
DOMAINS_HAVE_TOPICS = Rule(
    "domains_have_topics",
    "Every domain has topics.",
    blocking=False,
    remedy="map a top-level topic to the domain (ontology.root_domains in saber.yaml), or take the"
    " domain out of domains",
)
WHOLE_ONTOLOGY = Rule(
    "ontology_is_whole",
    "Every topic of the file is in the tree.",
    blocking=False,
    remedy="raise ontology.max_depth, if it is not meant",
)

# topics and summaries

MOST_SPECIFIC = Rule("topics_are_most_specific", "No document has a topic beside one below it.")
TAG_SCORES = Rule(
    "scores_exceed_the_threshold",
    "Every topic has a normalized score above topics.threshold.",
)
WITH_TOPIC = Rule(
    "most_have_a_topic",
    f"At least {LEAST_WITH_TOPIC:.0%} of the documents have a topic.",
    blocking=False,
    remedy="look at documents with status no_topic; the ontology may lack their topics or the words"
    " for them (synonyms)",
)
CORE_IDEAS = Rule(
    "core_ideas_are_short",
    "No core idea has more than summaries.max_words words, and one is missing for a reason only.",
)
WITH_CORE_IDEA = Rule(
    "most_have_a_core_idea",
    f"At least {LEAST_WITH_CORE_IDEA:.0%} of the summaries have a core idea.",
    blocking=False,
    remedy="look at documents with no_core_idea or status no_solution; they have no summary signal",
)

# signals

INDEX_DOMAINS = Rule(
    "domains_follow_from_topics",
    "A document's domains are those of its topics, its primary domain one of them.",
)
INDEX_QUERIES = Rule(
    "queries_may_be_asked", "Every query has a domain and words, and the corpus allows it."
)
INDEX_WORDS = Rule(
    "words_are_of_core_ideas", "A document's words are the content words of its core idea alone."
)
DOMAINS_HAVE_DOCUMENTS = Rule(
    "domains_have_documents",
    "Every domain has documents.",
    blocking=False,
    remedy="add problems of the domain, or take it out of domains in saber.yaml",
)
STATISTICS = Rule(
    "counts_add_up",
    "A topic counts its annotations and those below it; IC = -ln(count / N), falling to the root.",
)
FLOORS = Rule(
    "pairs_reach_a_floor",
    "Every stored pair reaches signals.topic_floor or signals.summary_floor.",
)
OTHERS = Rule(
    "pairs_are_of_others", "No query is paired with itself, a near-duplicate or a stranger."
)
SYMMETRIC = Rule(
    "pairs_are_symmetric", "Two queries of the partition are paired both ways, with equal signals."
)
POPULATION = Rule(
    "pairs_fit_the_population", "No domain has more pairs than the population that is counted."
)
RECOUNT = Rule(
    "counts_are_right",
    "Queries, pairs, densities and eligible queries are those of a recount, exceeding strictly.",
)

# queries, candidates, release

ELIGIBLE = Rule("queries_are_eligible", "Every query has K documents in each group.")
QUERY_DOMAINS = Rule(
    "domains_are_right", "Every query may be one, and was selected for domains that it belongs to."
)
SAMPLE_SIZES = Rule("samples_have_their_size", "No sample is larger than queries.per_domain.")
GROUPS_FOLLOW = Rule(
    "groups_follow_the_thresholds", "Every candidate's group follows from both thresholds."
)
CANDIDATES = Rule(
    "candidates_are_others",
    "Every candidate is a document outside the query's near-duplicate cluster.",
)
RELEASE_IDS = Rule(
    "ids_are_content_hashes",
    "Every text is the one that its id stands for.",
    remedy="restore the folder of the release from a copy; it has changed since it was made",
)
RELEASE_TEXTS = Rule(
    "every_text_is_there",
    "Every query and candidate has a text.",
    remedy="restore the folder of the release from a copy, or make a new one with"
    " `saber release create NAME`",
)

# judges

ROUNDS = Rule(
    "rounds_are_complete", "Every query plays tournament.rounds rounds, or until no pair is left."
)
GAMES = Rule(
    "games_are_sound", "Two candidates of a query meet once; nobody plays twice in a round."
)
OUTCOMES = Rule("failures_have_no_outcome", "A game has an outcome exactly if its status is ok.")
BALANCE = Rule(
    "order_is_balanced",
    "The smaller id is shown first in about half of the games.",
    blocking=False,
    remedy="another seed; the position effect that rating_prior estimates may be mixed with the ids",
)
PRIOR_SETTLED = Rule(
    "prior_is_settled",
    "The games settle prior precision and position effect.",
    blocking=False,
    remedy="look at the judge: at its lower bound the prior precision means a judge without noise, at"
    " its upper one a judge without preferences; a position at its bound, one that always names one"
    " side. ratings.prior_precision fixes the first",
)
FIRST_PLACE = Rule(
    "first_place_is_fair",
    "The document shown first is preferred in about half of the answers.",
    blocking=False,
    remedy="ask in both orders (tournament.both_orders, or ask: choice_logprobs in judges.yaml), which"
    " takes the place out of the outcomes; or take a better judge",
)
ORDERS_AGREE = Rule(
    "orders_agree",
    "At most a quarter of the pairs have another winner in the other order.",
    blocking=False,
    remedy="such a judge sees little difference; play more rounds, or take a better judge",
)
RATED = Rule("every_candidate_is_rated", "The ratings are of the candidates, all of them.")
SCALE = Rule("ratings_span_the_scale", "The ratings of a query reach from 0 to 5, or all are 2.5.")
RATING_RANKS = Rule("ranks_follow_ratings", "Ranks are 1 to n by rating descending, then id.")
BENCHMARK = Rule("benchmark_is_complete", "Every query of the release is there with its ratings.")
OWN_IDS = Rule("own_ids_are_there", "Every query and document has the user's own id.")

# retrievers and boards

SCORED = Rule(
    "every_pair_is_scored", "Every candidate of every query has one score in each setting."
)
SCORE_RANKS = Rule("ranks_follow_scores", "Ranks are 1 to n by score descending, then id.")
TELLS_APART = Rule(
    "scores_tell_documents_apart",
    "Not more than half of the queries have equal scores for all documents.",
    blocking=False,
    remedy="look at the retriever: does it read the texts, and are its scores rounded away",
)
MEASURED = Rule(
    "every_query_is_measured",
    "Every query of each benchmark has one value for each retriever and setting.",
)
RANDOM = Rule(
    "random_is_random",
    "A random ranking has the mean that theory gives it, within five standard errors.",
    blocking=False,
    remedy="once in some thousand builds it is chance; otherwise the metric or the ratings are wrong",
)
BOARD = Rule(
    "cells_are_means", "Every cell is the mean over the queries of its domain, all of them."
)
INTERVALS = Rule(
    "intervals_hold_their_values",
    "A value lies in its interval.",
    blocking=False,
    remedy="raise evaluation.bootstrap_samples",
)
TIED_GROUPS = Rule("tied_groups_start_at_one", "Every board has a first tied group of rivals.")
