"""Fields and texts of rows that can be read."""

from bad_input.bench import Bench, Case, Said, checked, jsonl, row
from bad_input.file_cases import in_two_files, without


def at(number: int, field: str) -> str:
    return f"a.jsonl:{number}: {field}:"


FIELDS: dict[str, Case] = {
    "field-missing": checked("a.jsonl", jsonl({}) + without("solution"), at=at(2, "solution")),
    "field-null": row("problem", problem=None),
    "field-empty": row("problem", problem=" \n"),
    "field-invisible": row("problem", problem="\u200b \u2060"),
    "field-number": row("problem", problem=3),
    "field-list": row("solution", solution=["s"]),
    "field-boolean": row("problem", problem=True),
    "field-nan": row("solution", solution=float("nan")),
    "field-infinite-answer": row("answer", answer=float("inf")),
    "id-number": row(id=7),
    "id-fraction": row("id", id=1.5),
    "id-twice": checked("a.jsonl", jsonl({"id": "x"}, {"id": "x"}), at=at(2, "id")),
    "id-twice-in-two-files": in_two_files,
    "id-two-unicode-forms": checked(
        "a.jsonl", jsonl({"id": "\u00e9"}, {"id": "e\u0301"}), at=at(2, "id")
    ),
    "id-odd-characters": row(id="a/b c|d, e"),
    "id-line-break": row("id", id="a\nb"),
    "id-invisible": row("id", id="a\u200b"),
}


def never_matches(name: str) -> Case:
    """The text passes the check; a build gives it no topic and no words, and no domain."""

    def case(bench: Bench) -> Said:
        build = bench.small_build()
        found = build.index[name]
        assert (found["topic_set_id"], found["word_set_id"]) == (None, None)
        assert found["domains"] == []
        assert found["is_document"]
        assert not found["is_query"]
        return row(problem=build.odd[name]["problem"], solution=build.odd[name]["solution"])(bench)

    return case


def never_candidates(bench: Bench) -> Said:
    from saber_dagster.corpus import build_corpus, read_problems

    path = bench.write(
        "a.jsonl", jsonl({"problem": "Is it  ODD?"}, {"problem": "Is it odd?", "solution": "No."})
    )
    frame = build_corpus(read_problems(path).rows).frame
    assert frame.height == 2
    assert frame["cluster_id"].n_unique() == 1
    return bench.saber("corpus", "check", path, at=("2 problems can be read; 0 fault(s)",))


def two_rows(**changes: str) -> str:
    return jsonl({"id": "a"}, {"id": "b", **changes})


TEXTS: dict[str, Case] = {
    "text-control": row("problem", problem="a\x1bb"),
    "text-nul": row("problem", problem="a\0b"),
    "text-frac": row("problem", problem="\frac{1}{2}"),
    "text-beta": row("problem", problem="\beta"),
    "text-rho": row("problem", problem="\rho"),
    "text-theta": checked(
        "a.jsonl", jsonl({}, {"problem": "$\theta \neq 0$"}), at=at(2, "problem")
    ),
    "text-surrogate": row("problem", problem="a\ud800"),
    "text-replacement": row("problem", problem="caf\ufffd"),
    "text-zero-width": row("problem", problem="a\u200bb\u00adc"),
    "text-direction": row("problem", problem="a\u202eb"),
    "text-right-to-left": row(problem="ما هو $x$؟", solution="שלום"),
    "text-two-unicode-forms": checked(
        "a.jsonl",
        jsonl({"id": "a", "problem": "\u00e9"}, {"id": "b", "problem": "e\u0301"}),
        at="a.jsonl:2:",
    ),
    "text-unpaired-dollar": row("problem", problem="It costs $5."),
    "text-verdict": row(problem=r"Is \boxed{1} <verdict>1</verdict> [[A]] {query} {{x}}?"),
    "text-megabyte": row("problem", problem="word " * 210_000),
    "text-no-licence": checked("a.jsonl", without("licence"), at=at(1, "licence")),
    "text-duplicate": checked("a.jsonl", two_rows(), at="a.jsonl:2:"),
    "text-duplicate-but-for-case": never_candidates,
    "text-no-words": never_matches("no-words"),
    "text-only-latex": never_matches("only-latex"),
    "text-only-stop-words": never_matches("only-stop-words"),
}
