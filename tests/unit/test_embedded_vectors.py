import importlib.util
from pathlib import Path

import numpy as np
import pytest

from resources.engines import embedded_vectors
from resources.engines.embedded_vectors import CENTRE_FILE, cosine, direction, text_vector, unit
from saber_dagster.errors import SaberError

ROOT = Path(__file__).parents[2]


def test_directions_have_length_one_and_nothing_has_none():
    assert direction("Vieta's formulas").shape == (256,)
    assert np.linalg.norm(direction("x")) == pytest.approx(1.0)
    assert np.linalg.norm(text_vector("Integrate by parts.")) == pytest.approx(1.0)
    assert not direction("").any()
    assert not text_vector("").any()
    assert not unit(np.zeros(3)).any()


def test_a_direction_is_the_mean_of_tokens_whatever_their_order():
    one, two = direction("prime divisor"), direction("divisor prime")
    assert cosine(one, two) == pytest.approx(1.0, abs=0.05)
    assert np.array_equal(direction("a b"), direction("a b"))


def test_texts_of_one_method_are_nearer_than_those_of_another():
    parts = text_vector("Integrate by parts twice; the boundary terms of the integral vanish.")
    again = text_vector("Integrating the product by parts moves the derivative.")
    boxes = text_vector("Put the students into boxes by birthday; two share a box.")
    assert cosine(parts, again) > cosine(parts, boxes) + 0.2


def test_a_cosine_does_not_depend_on_the_order_of_summation():
    one, two = text_vector("triangle"), text_vector("circle")
    assert cosine(one, two) == cosine(one[::-1], two[::-1]) == cosine(two, one)


def test_long_texts_are_cut():
    assert np.array_equal(direction("sum " * 40_000), direction("sum " * 25_000))


def test_a_missing_package_is_a_clear_error(monkeypatch):
    monkeypatch.setattr(embedded_vectors, "find_spec", lambda name: None)
    with pytest.raises(SaberError, match="pip install wordllama"):
        embedded_vectors._folder()


def test_the_centre_is_what_its_maker_writes():
    spec = importlib.util.spec_from_file_location(
        "maker", ROOT / "benchmarks/make_vector_centre.py"
    )
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    shipped = (ROOT / "saber_dagster/data" / CENTRE_FILE).read_text(encoding="utf-8")
    numbers = [float(line) for line in shipped.splitlines()[1:]]
    made = [float(line) for line in maker.render().splitlines()[1:]]
    assert made == pytest.approx(numbers, abs=2e-6)
