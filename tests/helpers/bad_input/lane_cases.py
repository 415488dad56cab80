"""Judges, annotator and retrievers: their registries and their classes."""

import json
from typing import Any

from bad_input.bench import Bench, Case, Said


def registry(name: str, text: str, at: str = "") -> Case:
    """``saber build`` in a home with this file."""

    def case(bench: Bench) -> Said:
        bench.write(f"home/{name}.yaml", text)
        return bench.saber("build", at=(at or f"{name}.yaml",))

    return case


def judges(*entries: dict[str, Any]) -> Case:
    return registry("judges", json.dumps({"judges": entries}))


def engine(name: str, **options: Any) -> Case:
    text = json.dumps({"judges": [{"slug": "a", "engine": name, "options": options}]})
    return registry("judges", text, at=name)


def retriever(name: str, **options: Any) -> Case:
    text = json.dumps({"retrievers": [{"slug": "a", "retriever": name, "options": options}]})
    return registry("retrievers", text, at=name)


LANES: dict[str, Case] = {
    "judges-none": judges(),
    "judges-misspelt": registry("judges", "judge: [{slug: a}]\n"),
    "slug-missing": judges({"engine": "embedded"}),
    "slug-bad": judges({"slug": "GPT 4.1"}),
    "slug-reserved": judges({"slug": "oracle"}),
    "slug-twice": judges({"slug": "a"}, {"slug": "a"}),
    "slug-alike": judges({"slug": "a-b"}, {"slug": "a_b"}),
    "engine-unknown": engine("embeded"),
    "engine-unknown-option": engine("openai", model="some-model", temprature=1),
    "engine-missing-option": engine("openai"),
    "engine-option-type": engine("openai", model="m", revision="1", concurrency="many"),
    "engine-no-revision": engine("openai", model="some-model"),
    "engine-form": engine("python:my_engine"),
    "engine-no-module": engine("python:no_such_module:Judge"),
    "engine-no-class": engine("python:json:Judge"),
    "engine-no-engine": engine("python:json:JSONDecoder"),
    "annotator-unknown": registry("saber", "annotator: {engine: embeded}\n", at="embeded"),
    "retriever-unknown": retriever("bm52"),
    "retriever-unknown-option": retriever("bm25", k=1),
    "retriever-option-range": retriever("bm25", b=-5),
    "retriever-no-commit": retriever("sentence_transformer", model="some/model"),
}
