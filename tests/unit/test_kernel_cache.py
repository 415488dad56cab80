"""Machine code is kept for exactly the sources that it was made from."""

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from saber_dagster.similarity import kernel as module
from saber_dagster.similarity.bit_counts import lowest_bit, set_bits


def test_another_source_has_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HERE", tmp_path)
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.py").write_text("1")
    first = module._cache_folder()
    (tmp_path / "b.py").write_text("2")
    assert module._cache_folder() != first
    (tmp_path / "b.py").write_text("1")
    assert module._cache_folder() == first
    assert Path(first).parent == tmp_path / "__pycache__"


def test_other_users_of_numba_keep_their_folder() -> None:
    before = numba.config.CACHE_DIR
    module.kernel(lambda x: x)
    assert before == numba.config.CACHE_DIR


def test_compiles_where_nothing_can_be_kept() -> None:
    names: dict[str, Any] = {}
    exec("def twice(x):\n    return 2 * x", names)  # a function without a file has no cache
    assert module.kernel(names["twice"])(4) == 8


def test_bits_of_a_word() -> None:
    for x in (1, 2, 3, 2**63, 2**64 - 1, 0xF0F0 << 40):
        assert set_bits(np.uint64(x)) == x.bit_count()
        assert lowest_bit(np.uint64(x)) == (x & -x).bit_length() - 1
