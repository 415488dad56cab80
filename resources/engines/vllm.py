"""vLLM inside the process as an engine: offline batches, no server.

Prompts go to the model in the order of their texts, so that those with a common beginning, such as all
pairs of a query, follow each other, and the beginning is computed once. See ``docs/batch-and-vllm.md``.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from resources.engines.openai_options import (
    MAX_TOKENS,
    above_zero,
    checked_revision,
    limits_by_task,
    one_of,
)
from resources.engines.openai_replies import read_completion
from resources.engines.prompted import PromptedEngine
from resources.engines.vllm_model import ask, completion, load, prefix_order, sampling_params
from saber_dagster.engines import Call, Reply
from saber_dagster.errors import SaberError
from saber_dagster.hashing import canonical_json
from saber_dagster.tokens import tokenizer_counter

CHUNK = 512
"""Calls that the model gets at a time, and so the most that a kill can lose."""
TEMPLATE_TOKENS = 64
"""Room left for what the chat template adds to the texts."""
TOP_LOGPROBS = 20

_OWN = {
    "engine_args": {"model", "revision", "dtype", "max_model_len", "tensor_parallel_size"},
    "runtime_args": {"model", "revision", "dtype", "max_model_len", "tensor_parallel_size"},
    "sampling": {
        "n",
        "temperature",
        "seed",
        "max_tokens",
        "stop",
        "logprobs",
        "structured_outputs",
    },
}
"""What a mapping may not hold, by option."""


class VLLMEngine(PromptedEngine):
    """An :class:`saber_dagster.engines.Engine` that runs a model in this process.

    Args:
        model: name of the model: that of the hub, unless ``path`` is given.
        revision: commit or tag of the hub; or, with a ``path``, whatever pins the weights there.
        path: folder that holds the weights. It is no part of the key.
        prompts: prompts of one's own, by task.
        structured: ``auto`` demands JSON where the prompt has a schema; ``off`` never does.
        max_tokens: longest reply for all tasks, or by task; None: up to the end of the context.
        temperature: 0 takes the likeliest token.
        seed: plus the number of the sample; None: the model's engine decides.
        sampling: further arguments of ``vllm.SamplingParams``, such as ``{"top_p": 0.95}``.
        chat_template_kwargs: given to the chat template, such as ``{"enable_thinking": False}``.
        dtype: of weights and activations; ``auto``: as they are stored.
        engine_args: further arguments of ``vllm.LLM`` that can change an answer, such as
            ``{"quantization": "fp8"}``.
        runtime_args: further ones that cannot, such as ``{"max_num_seqs": 64}``.
        max_model_len: longest context in tokens, reply included. If it is given, longer texts are cut
            before the call; else it is the model's, and a longer call stops the step.
        tokenizer: path of the tokenizer.json to count tokens with; default: the model's.
        tensor_parallel_size: GPUs that share the model.
        gpu_memory_utilization: part of a GPU's memory that may be used.
        chunk: calls that the model gets at a time, and so the most that a kill can lose.
        skip_too_long: True makes a call that does not fit ``truncated``, for good.

    Raises:
        SaberError: if an option is wrong. The model is not loaded yet.
    """

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        *,
        path: str | None = None,
        prompts: Mapping[str, str] | None = None,
        structured: str = "auto",
        max_tokens: int | Mapping[str, int] | None = MAX_TOKENS,
        temperature: float = 0.0,
        seed: int | None = None,
        sampling: Mapping[str, Any] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        dtype: str = "auto",
        engine_args: Mapping[str, Any] | None = None,
        runtime_args: Mapping[str, Any] | None = None,
        max_model_len: int | None = None,
        tokenizer: str | None = None,
        tensor_parallel_size: int = 1,
        gpu_memory_utilization: float = 0.9,
        chunk: int = CHUNK,
        skip_too_long: bool = False,
    ) -> None:
        self._model = model
        self._revision = checked_revision(model, revision)
        self._path = path
        self.prompts = dict(prompts or {})
        self.form = (
            "json" if one_of("structured", structured, ("auto", "off")) == "auto" else "tagged"
        )
        self._max_tokens = limits_by_task(max_tokens)
        self._sampling = {"temperature": temperature, "seed": seed, **(sampling or {})}
        self._template_kwargs = dict(chat_template_kwargs or {})
        self._engine_args = dict(engine_args or {})
        self._dtype = dtype
        self._max_model_len = max_model_len
        self.tokenizer_file = tokenizer
        self._chunk = chunk
        self._skip_too_long = skip_too_long
        self._stopped = False
        self._loading = {
            "tensor_parallel_size": tensor_parallel_size,
            "gpu_memory_utilization": gpu_memory_utilization,
            **(runtime_args or {}),
        }
        above_zero(
            max_model_len=max_model_len, chunk=chunk, tensor_parallel_size=tensor_parallel_size
        )
        if not 0 < gpu_memory_utilization <= 1:
            raise SaberError(
                "gpu_memory_utilization is a part of the memory, above 0 and at most 1"
            )
        given = {"engine_args": engine_args, "runtime_args": runtime_args, "sampling": sampling}
        for option, values in given.items():
            if wrong := sorted(_OWN[option] & (values or {}).keys()):
                raise SaberError(
                    f"{option} may not hold {', '.join(wrong)}; that is set outside it"
                )
        canonical_json([self._sampling, self._template_kwargs, self._engine_args, self._loading])

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._model

    @property
    def revision(self) -> str:
        """What pins the weights."""
        return self._revision

    def params(self, task: str) -> Mapping[str, Any]:
        """The options that can change an answer, and what the reply is bound to."""
        template = self.template(task)
        values = {
            **self._sampling,
            "max_tokens": self._max_tokens.get(task),
            "stop": list(template.stop),
            "choices": list(template.choices),
            "schema": self._schema(task),
            "chat_template_kwargs": self._template_kwargs,
            "engine_args": self._engine_args,
            "dtype": None if self._dtype == "auto" else self._dtype,
        }
        return {name: value for name, value in values.items() if value not in (None, [], {})}

    def sampling(self, call: Call) -> dict[str, Any]:
        """Keyword arguments of ``vllm.SamplingParams``; ``structured_outputs`` as a mapping."""
        template = self.template(call.task)
        values: dict[str, Any] = {**self._sampling, "max_tokens": self._max_tokens.get(call.task)}
        if values["seed"] is not None:
            values["seed"] += call.sample
        if template.stop:
            values["stop"] = list(template.stop)
        if template.choices:
            bound = {"choice": list(template.choices)}
            values |= {"logprobs": TOP_LOGPROBS, "structured_outputs": bound}
        elif schema := self._schema(call.task):
            values["structured_outputs"] = {"json": dict(schema)}
        return values

    def limit_of(self, task: str) -> int | None:
        """Most tokens of all messages of a call: the context less the reply and the template.

        Raises:
            SaberError: if that leaves nothing.
        """
        if self._max_model_len is None:
            return None
        reply = self._max_tokens.get(task, 0)
        limit = self._max_model_len - reply - TEMPLATE_TOKENS
        if limit < 1:
            raise SaberError(
                f"max_model_len is {self._max_model_len}, of which max_tokens of {task} takes {reply} and"
                f" the chat template {TEMPLATE_TOKENS}: nothing is left for the call. Lower max_tokens"
            )
        return limit

    def stop(self) -> None:
        """Begin no further chunk."""
        self._stopped = True

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """Yield (position, reply), chunk by chunk, in the order of :func:`prefix_order`.

        Raises:
            SaberError: if vLLM is not installed, it cannot load the model, an option is wrong, or a
                call is too long; the other replies of its chunk were yielded before.
        """
        if not calls:
            return
        self._stopped = False
        rendered = [self.render(call) for call in calls]
        order = prefix_order([one.messages for one in rendered])
        llm = load(canonical_json(self._arguments()))
        for start in range(0, len(order), self._chunk):
            if self._stopped:
                return
            part = order[start : start + self._chunk]
            questions = [
                (rendered[position].messages, sampling_params(self.sampling(calls[position])))
                for position in part
            ]
            begin = time.perf_counter()
            found = ask(llm, questions, self._template_kwargs)
            latency = (time.perf_counter() - begin) / len(part)
            too_long: SaberError | None = None
            for position, output in zip(part, found, strict=True):
                call = calls[position]
                if isinstance(output, Exception):
                    if not self._skip_too_long:
                        too_long = self._too_long(call, output)
                        continue
                    reply = Reply("truncated", finish_reason="context_length", error=str(output))
                else:
                    choices = self.template(call.task).choices
                    reply = read_completion(json.dumps(completion(output)), choices)
                cut = rendered[position].truncated
                yield position, replace(reply, latency=latency, truncated_input=cut)
            if too_long:
                raise too_long

    def _too_long(self, call: Call, error: Exception) -> SaberError:
        return SaberError(
            f"{call.item} does not fit into the context of {self._model}: {error}. Set max_model_len, so"
            " that long texts are cut; lower max_tokens; or set skip_too_long: true to leave such calls"
            " unanswered for good"
        )

    def _schema(self, task: str) -> Mapping[str, Any] | None:
        return self.template(task).schema if self.form == "json" else None

    def _arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``vllm.LLM``."""
        if self._path is not None and not (Path(self._path) / "config.json").is_file():
            raise SaberError(
                f"path: {self._path} holds no config.json; give the folder of the weights"
            )
        pinned = None if self._path else self._revision
        return {
            "model": self._path or self._model,
            "revision": pinned,
            "tokenizer_revision": pinned,
            "dtype": self._dtype,
            "max_model_len": self._max_model_len,
            "enable_prefix_caching": True,
            **self._loading,
            **self._engine_args,
        }

    @cached_property
    def count_tokens(self) -> Callable[[str], int]:  # type: ignore[override]
        """Counts tokens as the model does."""
        if self.tokenizer_file:
            return tokenizer_counter(self.tokenizer_file)
        if self._path:
            return tokenizer_counter(Path(self._path) / "tokenizer.json")
        from huggingface_hub import hf_hub_download

        try:
            return tokenizer_counter(
                hf_hub_download(self._model, "tokenizer.json", revision=self._revision)
            )
        except SaberError:
            raise
        except Exception as error:
            raise SaberError(
                f"{self._model} has no tokenizer.json at revision {self._revision} that could be had"
                f" ({error}). Give the path of one in tokenizer"
            ) from error
