"""Requests and tokens a minute."""

import asyncio
import time

import pytest

from resources.engines.rate_limit import RateLimit
from saber_dagster.engines import Usage


def timed(limit, amounts, settle=None, pause=None):
    """Seconds from the start at which each of some calls was admitted."""

    async def run():
        limit.open()
        start, times = time.perf_counter(), []

        async def one(tokens):
            await limit.admit(tokens)
            times.append(time.perf_counter() - start)
            if settle is not None:
                limit.settle(tokens, Usage(settle, 0))

        if pause is not None:
            asyncio.get_running_loop().call_later(pause[0], limit.pause, pause[1])
        await asyncio.gather(*map(one, amounts))
        return times

    return asyncio.run(run())


def test_no_limit_waits_for_nothing():
    limit = RateLimit()
    assert not limit.waits
    assert timed(limit, [1e9] * 100)[-1] < 0.1


def test_requests_a_minute():
    times = timed(RateLimit(requests=600), [0] * 16)  # ten a second; the first ten at once
    assert times[9] < 0.3
    assert 0.4 < times[15] < 1.5


def test_a_start_is_no_burst():
    limit = RateLimit(requests=60 * 50)
    times = timed(limit, [0] * 75)
    assert times[49] < 0.3
    assert times[-1] > 0.35


def test_tokens_a_minute_of_calls_that_are_larger_than_a_second_holds():
    times = timed(RateLimit(tokens=60 * 1000), [700, 700, 700])
    assert times[0] < 0.2
    assert times[1] == pytest.approx(0.4, abs=0.25)
    assert times[2] == pytest.approx(1.1, abs=0.3)
    assert times == sorted(times)


def test_what_was_taken_too_little_is_taken_later_even_by_the_next_batch():
    limit = RateLimit(tokens=60 * 1000)
    assert timed(limit, [100], settle=1500)[0] < 0.2
    assert timed(limit, [100])[0] == pytest.approx(0.5, abs=0.25)
    limit = RateLimit(tokens=60 * 1000)
    timed(limit, [900], settle=0)
    assert timed(limit, [1800])[0] < 0.3


def test_what_a_reply_will_take_is_the_mean_so_far():
    limit = RateLimit(tokens=1000)
    assert limit.expected(10, 50) == 60
    assert limit.expected(10, None) == 10 + 1024
    limit.settle(0, Usage(5, 30))
    limit.settle(0, Usage(5, 0))  # a call that was lost
    limit.settle(0, Usage(5, 50))
    assert limit.expected(10, 5000) == limit.expected(10, None) == 50


def test_a_pause_holds_everybody():
    limit = RateLimit()
    limit.pause(0.3)
    assert limit.waits
    assert all(0.25 < t < 0.6 for t in timed(limit, [0] * 3))


@pytest.mark.parametrize("limit", [RateLimit(requests=6000), RateLimit(tokens=6000)])
def test_a_pause_holds_those_who_wait_for_a_bucket_too_and_ends_in_no_burst(limit):
    times = timed(limit, [1] * 270, pause=(0.2, 1.7))  # a hundred at once, then a hundred a second
    early = sum(t < 0.3 for t in times)
    assert 100 < early <= 130
    assert sum(t < 1.88 for t in times) == early
    assert sum(t < 1.97 for t in times) - early <= 125  # a second's worth, and what comes meanwhile
