"""A trace as lines for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saber_dagster.cli.common import money
from saber_dagster.cli.cost import moment

_SHORT = 300
"""Characters of a text that are printed, unless all are wanted."""
_SHOWN_CALLS = 3
_SHA = 12


def lines_of(trace: Mapping[str, Any], full: bool) -> Iterator[str]:
    """The chain from the figure down; ``full`` prints all texts and calls."""
    if "figure" in trace:
        yield from _figure(trace)
        yield from _ranking(trace)
    yield f"query      {trace['query']['query_source_id']} ({trace['query']['query_id']})"
    yield from _text("problem", trace["query"]["problem"], full)
    yield f"document   {trace['document']['doc_source_id']} ({trace['document']['doc_id']})"
    yield from _text("problem", trace["document"]["problem"], full)
    yield from _rating(trace)
    yield ""
    yield from _games(trace["games"])
    calls = [(key, call) for key, call in trace["calls"].items() if call["found"]]
    bad = [(key, call) for key, call in calls if not call["key_holds"] or not call["segment_holds"]]
    shown = calls if full else [*bad, *(c for c in calls if c not in bad)][:_SHOWN_CALLS]
    for key, call in shown:
        yield ""
        yield from _call(key, call, full)
    if len(shown) < len(calls):
        yield ""
        yield f"… and {len(calls) - len(shown)} more calls; --full prints all, --json FILE exports them"
    yield ""
    yield from _summary(trace["calls"])
    yield _followed(trace["games"])
    yield ""
    yield from _tables(trace["tables"], full)


def _figure(trace: Mapping[str, Any]) -> Iterator[str]:
    figure, queries = trace["figure"], trace["queries"]
    yield (
        f"figure     {figure['metric']} {figure['value']:.4f} [{figure['low']:.4f},"
        f" {figure['high']:.4f}] over {figure['n_queries']} queries"
    )
    yield (
        f"           release {figure['release']}, judge {figure['judge']} at"
        f" {figure['judge_revision']}, retriever {figure['retriever']} at"
        f" {figure['retriever_revision']}, {figure['setting']}, {figure['domain']}"
    )
    for name in ("worst", "best"):
        row = queries[name]
        missing = ", which the run lacks" if row["missing"] else ""
        yield f"{name:<11}{row['value']:.4f}  {row['query_source_id']} ({row['query_id']}){missing}"
    yield ""


def _ranking(trace: Mapping[str, Any]) -> Iterator[str]:
    ranking = trace["ranking"]
    yield (
        f"ranking    of {trace['query']['query_source_id']} by {trace['figure']['retriever']}"
        f" ({ranking['n']} candidates)"
    )
    for row in ranking["top"]:
        mark = "→" if row["doc_id"] == trace["document"]["doc_id"] else " "
        yield (
            f"  {mark} {row['rank']:>4}. score {row['score']:.4f}  rating {row['rating']:.3f}"
            f" (judge's rank {row['rank_by_judge']})  {row['doc_source_id']}"
        )
    yield ""


def _rating(trace: Mapping[str, Any]) -> Iterator[str]:
    why, rated, prior = trace["candidate"], trace["rating"], trace["rating_prior"]
    yield (
        f"candidate  group {why['group']}, topic similarity {why['topic']:.4f}, summary similarity"
        f" {why['summary']:.4f}"
    )
    yield (
        f"rating     {rated['rating']:.4f} in [0, 5], rank {rated['rank']} of {rated['of']}: log-strength"
        f" {rated['log_strength']:+.3f} ± {rated['standard_error']:.3f}, wins {rated['wins']:g},"
        f" losses {rated['losses']:g}"
    )
    yield (
        f"prior      precision {prior['prior_precision']:.4g}, position log-odds"
        f" {prior['position']:+.3f}, from {prior['n_games']:,} games"
    )


def _games(games: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"games      {len(games)}"
    for game in games:
        outcome = game["outcome"]
        said = game["status"] if outcome is None else _said(outcome)
        order = "shown first" if game["shown_first"] else "shown second"
        keys = " ".join(key[:_SHA] for key in game["call_keys"])
        yield (
            f"  round {game['round']:>2}  {said:<12} against {game['opponent_source_id']}, {order};"
            f" calls {keys}{'  DOES NOT FOLLOW from these replies' if game['follows'] is False else ''}"
        )


def _said(outcome: float) -> str:
    word = "won" if outcome > 0.5 else "lost" if outcome < 0.5 else "drew"
    return word if outcome in (0.0, 0.5, 1.0) else f"{word} {outcome:.3f}"


def _call(key: str, call: Mapping[str, Any], full: bool) -> Iterator[str]:
    error = f" ({call['error']})" if call["error"] else ""
    yield f"call       {key}"
    yield f"  key        {_verdict(call)}"
    yield f"  status     {call['status']}{error}"
    yield f"  model      {call['model']} at {call['revision']}, parameters {call['params']}"
    yield (
        f"  prompt     {call['prompt']}, SHA-256 {call['prompt_sha256'][:_SHA]}, sample {call['sample']},"
        f" attempt {call['attempt']}{', input cut' if call['truncated_input'] else ''}"
    )
    yield (
        f"  cost       {call['prompt_tokens']} + {call['completion_tokens']} tokens"
        f" ({call['reasoning_tokens']} reasoning, {call['cached_tokens']} cached),"
        f" ${money(call['price'], _tokens(call), 6)},"
        f" {call['latency']:.2f} s, paid {call['paid']}×, {moment(call['created'])} UTC"
    )
    yield f"  run        {_run(call['run'])}"
    yield f"  segment    {call['path']}"
    for message in call["messages"] or ():
        yield from _text(f"  {message['role']}", message["content"], full)
    if call["reasoning"]:
        yield from _text("  reasoning", call["reasoning"], full)
    yield from _text("  reply", call["text"], full)


def _verdict(call: Mapping[str, Any]) -> str:
    if call["segment_holds"] is False:
        return "SEGMENT CHANGED: its file is not as it was written; see `saber ledger verify`"
    if call["key_holds"]:
        return "verified: it is the digest of model, revision, parameters and messages"
    if call["key_holds"] is False:
        return f"KEY DOES NOT VERIFY: {call['problem']}"
    return f"not verified: {call['problem']}"


def _summary(calls: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    found = [call for call in calls.values() if call["found"]]
    verified = sum(
        call["key_holds"] is True and call["segment_holds"] is not False for call in found
    )
    price, tokens = sum(call["price"] for call in found), sum(map(_tokens, found))
    yield (
        f"calls      {len(calls)}: {verified} verified, {len(found) - verified} not,"
        f" {len(calls) - len(found)} missing in the ledger; ${money(price, tokens, 4)}"
    )


def _tokens(call: Mapping[str, Any]) -> int:
    return int(call["prompt_tokens"] + call["completion_tokens"])


def _followed(games: Sequence[Mapping[str, Any]]) -> str:
    said = [game["follows"] for game in games]
    untold = f", cannot be told of {said.count(None)}" if None in said else ""
    if False in said:
        return f"outcomes   follow from the replies: NO, {said.count(False)} do not{untold}"
    told = len(said) - said.count(None)
    return f"outcomes   follow from the replies: {f'yes, all {told}' if told else 'none checked'}{untold}"


def _tables(tables: Sequence[Mapping[str, Any]], full: bool) -> Iterator[str]:
    yield "tables     on the way, with what each was made from"
    for table in tables:
        holds = "" if table["data_version_holds"] else "  ITS ROWS DO NOT HAVE THIS VERSION"
        yield f"  {table['asset']}:{table['partition']}  {table['rows']:,} rows"
        yield f"    data {table['data_version'][:_SHA]}, code {table['code_version']}{holds}"
        yield f"    run  {_run(table['run'])}"
        if full:
            yield f"    file {table['path']}"
        for source in table["inputs"]:
            changed = "" if source["unchanged"] else "  has changed since"
            yield f"    from {source['table']} {source['data_version'][:_SHA]}{changed}"


def _run(run: Mapping[str, Any]) -> str:
    if not run["known"]:
        return f"{run['run_id']}, of which Dagster has no record"
    partition = f", partition {run['partition']}" if run["partition"] else ""
    return f"{run['run_id']} {run['status']}{partition}, {moment(run['started'])} UTC"


def _text(what: str, text: str, full: bool) -> Iterator[str]:
    shown = text if full or len(text) <= _SHORT else f"{text[:_SHORT]} … ({len(text):,} characters)"
    first, *rest = _visible(shown).split("\n")
    yield f"  {what.strip():<11}{first}"
    yield from (f"{'':13}{line}".rstrip() for line in rest)


def _visible(text: str) -> str:
    """The text without control characters that a terminal would obey."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
