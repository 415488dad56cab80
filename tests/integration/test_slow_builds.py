"""The demo itself, neural retriever included, built twice in different ways."""

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_demo_is_the_same_on_one_thread_and_two_and_cut_in_three(tmp_path, saber_on):
    one = saber_on(tmp_path / "one", OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1")
    three = saber_on(
        tmp_path / "three",
        OMP_NUM_THREADS="2",
        POLARS_MAX_THREADS="2",
        SABER_PARTITIONS__QUERY_SHARDS="3",
        SABER_PARTITIONS__CORPUS_SHARDS="3",
    )
    one("build")
    three("build")
    assert one.versions() == three.versions()
    assert all(one.versions().values())
