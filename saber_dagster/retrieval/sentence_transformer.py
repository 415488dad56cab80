"""Any sentence-transformers model as a retriever; needs the extra ``models``."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saber_dagster.errors import SaberError


class SentenceTransformer:
    """Cosine of a model's embeddings, by its own query and document interfaces and prompts.

    A text that is longer than the model's input is split into non-overlapping chunks of tokens
    that fit; each is embedded by itself, and the text's embedding is their elementwise average
    (SABER-Math, appendix "Running Embedding Models"). The output dimension is the model's default.

    Args:
        model: a folder, or a name on the Hugging Face Hub.
        commit: the commit of a model on the Hub, so that its scores can be reproduced.
        device: torch device; None picks one.
        batch_size: chunks of a text that are embedded together. Texts are never batched with each
            other, because padding would make an embedding depend on its neighbours.

    Raises:
        SaberError: if a model on the Hub comes without a commit.
    """

    decimals = 6

    def __init__(
        self, model: str, commit: str | None = None, device: str | None = None, batch_size: int = 1
    ) -> None:
        self.model = model
        self.commit = commit
        self.device = device
        self.batch_size = batch_size
        self._embeddings: dict[tuple[bool, bytes], NDArray[np.float64]] = {}
        if commit is None and not Path(model).is_dir():
            raise SaberError(
                f"Model {model!r} is not a folder. If it is a name on the Hugging Face Hub, give "
                "its commit, too: a name alone does not say which weights made a score."
            )

    @property
    def name(self) -> str:
        """The last part of the model's name or folder."""
        return Path(self.model).name

    @cached_property
    def revision(self) -> str:
        """The commit, or a digest of the folder's files; and the library's version."""
        library = f"sentence-transformers-{version('sentence-transformers')}"
        return f"{self.commit or _folder_digest(Path(self.model))}-{library}"

    def fit(self, documents: Mapping[str, str]) -> None:
        """Nothing: it has no statistics."""

    def score(self, query_text: str, documents: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Cosines in [-1, 1]."""
        query = self._embed(query_text, is_query=True)
        return [float((query * self._embed(text, is_query=False)).sum()) for _, text in documents]

    def chunks(self, text: str) -> list[str]:
        """Parts of a text that fit the model's input, cut between tokens; all of it, in order."""
        room = self._room
        spans = self._spans(text)
        if room is None or len(spans) <= room:
            return [text]
        parts = []
        start = 0
        while start < len(spans):
            end = min(start + room, len(spans))
            part = text[spans[start][0] : spans[end - 1][1]]
            # a part that begins inside a word may have more tokens than the same stretch had
            while end - start > 1 and len(self._spans(part)) > room:
                end -= 1
                part = text[spans[start][0] : spans[end - 1][1]]
            parts.append(part)
            start = end
        return parts

    def _embed(self, text: str, is_query: bool) -> NDArray[np.float64]:
        key = (is_query, hashlib.sha256(text.encode("utf-8")).digest())
        if key not in self._embeddings:
            encode = self._model.encode_query if is_query else self._model.encode_document
            vectors = encode(
                self.chunks(text),
                batch_size=self.batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
            mean = np.asarray(vectors, dtype=np.float64).mean(axis=0)
            norm = np.sqrt((mean**2).sum())
            self._embeddings[key] = mean / norm if norm else mean
        return self._embeddings[key]

    @cached_property
    def _room(self) -> int | None:
        """Tokens of a text that fit beside the special tokens and the longest prompt."""
        longest = self._model.max_seq_length
        if longest is None:
            return None
        prompts = [len(self._spans(prompt)) for prompt in self._model.prompts.values()]
        special = self._model.tokenizer.num_special_tokens_to_add()
        return max(1, int(longest - special - max(prompts, default=0)))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text begins and ends, in characters."""
        encoded = self._model.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        spans: list[tuple[int, int]] = encoded["offset_mapping"]
        return spans

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer as Model
        except ImportError as error:
            raise SaberError(
                "Sentence-transformers models need the extra `models`: "
                "pip install 'saber-dagster[models]'."
            ) from error
        return Model(self.model, revision=self.commit, device=self.device)


def _folder_digest(folder: Path) -> str:
    state = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith((".", "__")) for part in relative.parts):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            state.update(f"{relative.as_posix()} {digest}\n".encode())
    return state.hexdigest()[:12]
