"""Options that may be secrets are refused, and not repeated."""

import pytest

from resources.engines import load_engine
from resources.engines.openai import OpenAIEngine
from saber_dagster.errors import SaberError

MARK = "sk-proj-Marked1234567890"


@pytest.mark.parametrize("key", [MARK, MARK.replace("-", "_"), "a b", "1A", "KEY\n"])
def test_a_key_in_place_of_its_variable(key):
    with pytest.raises(SaberError, match="no name of an environment variable") as caught:
        load_engine("openai", {"model": "m", "revision": "r", "api_key_env": key})
    assert "Marked" not in str(caught.value)
    OpenAIEngine("m", "r", api_key_env="my_key_2")


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"extra_body": {"api_key": MARK}}, "extra_body.api_key"),
        (
            {"extra_body": {"headers": [{"Authorization": MARK}]}},
            "extra_body.headers.Authorization",
        ),
        ({"extra_body": {"X-Api-Key": MARK}}, "extra_body.X-Api-Key"),
        ({"extra_body": {"a": {"client_secret": MARK}}}, "extra_body.a.client_secret"),
        ({"provider": {"password": MARK}}, "provider.password"),
        ({"api_key": MARK}, "api_key"),
    ],
)
def test_a_secret_among_the_options(options, place):
    for engine in ("openai", "openai_batch", "python:clumsy:ClumsyEngine"):
        with pytest.raises(SaberError, match=f"{place} may be a secret") as caught:
            load_engine(engine, {"model": "m", "revision": "r", **options})
        assert MARK not in str(caught.value)
    if "extra_body" in options:
        with pytest.raises(SaberError, match=f"{place} may be a secret"):
            OpenAIEngine("m", "r", **options)


def test_numbers_of_tokens_and_names_of_tokens_are_none():
    extra = {"max_tokens": 3, "min_token": 2, "stop_token": "</s>", "tokenizer": "x", "token": None}
    OpenAIEngine("m", "r", extra_body=extra)
