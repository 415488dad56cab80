"""The part that all engines with prompts share: a call as the chat messages of its template."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from prompts import Form, Prompt, load_prompt, parse_prompt, prompt_values
from saber_dagster.engines import TASKS, Call, Message, PromptRef
from saber_dagster.errors import SaberError
from saber_dagster.long_inputs import fit, input_texts, with_texts
from saber_dagster.tokens import estimate_tokens


@dataclass(frozen=True, slots=True)
class Rendered:
    """The messages of a call, and whether its texts were cut to fit into the limit."""

    messages: list[dict[str, str]]
    truncated: bool = False


class PromptedEngine:
    """Half an :class:`saber_dagster.engines.Engine`: renders prompt files.

    A subclass adds ``model``, ``revision``, ``params`` and ``answer``, and may set, on the class or on
    itself:

    Attributes:
        prompts: the prompt of a task, by name or path, where it is not the shipped one.
        form: ``json`` asks for the JSON form where a prompt has one, ``tagged`` never does.
        input_limit: most tokens of all messages together; None: no limit. Override :meth:`limit_of`
            where it depends on the task.
        count_tokens: counts the tokens of a text (on a class: a ``staticmethod``). It may count one
            more than the text has UTF-8 bytes, as tokenizers do at most, and no further.
        tokenizer_file: path of the ``tokenizer.json`` to count with, if an option names one.
    """

    prompts: Mapping[str, str] = {}
    form: Form = "tagged"
    input_limit: int | None = None
    count_tokens: Callable[[str], int] = staticmethod(estimate_tokens)
    tokenizer_file: str | None = None

    @cached_property
    def _templates(self) -> dict[str, Prompt]:
        if not isinstance(self.prompts, Mapping) or not all(
            isinstance(name, str) for name in self.prompts.values()
        ):
            raise SaberError(
                f"prompts is {self.prompts!r}; give a name or path by task, as in"
                f" {{{TASKS[0]}: my_prompt.md}}"
            )
        if unknown := sorted(map(str, self.prompts.keys() - set(TASKS))):
            raise SaberError(
                f"prompts: there is no task {unknown[0]!r}; tasks are {', '.join(TASKS)}"
            )
        return {}

    def template(self, task: str) -> Prompt:
        """The prompt of a task, read once.

        Raises:
            SaberError: if there is none, its file is wrong, or it is one of another task.
        """
        if task not in self._templates:
            prompt = load_prompt(self.prompts.get(task, task))
            if prompt.task != task:
                raise SaberError(
                    f"prompt {self.prompts.get(task, task)} is one of task {prompt.task}, but it is"
                    f" wanted for {task}. Take another prompt, or mend task: in it"
                )
            self._templates[task] = prompt
        return self._templates[task]

    def prompt(self, task: str) -> PromptRef:
        """Name and SHA-256 of the prompt of a task.

        Raises:
            SaberError: see :meth:`template`.
        """
        return self.template(task).ref

    def limit_of(self, task: str) -> int | None:
        """Most tokens of all messages of a call of this task."""
        return self.input_limit

    def render(self, call: Call) -> Rendered:
        """The prompt with the call's texts in it, letter by letter as they are, unless too long.

        Raises:
            SaberError: if there is no prompt of the task, an input is missing, or not even cut texts
                fit into the limit.
        """
        template = self.template(call.task)
        form: Form = "json" if self.form == "json" and template.schema else "tagged"

        def messages(inputs: Mapping[str, object]) -> list[dict[str, str]]:
            return template.render(prompt_values(call.task, inputs), form, call.attempt)

        whole = messages(call.inputs)
        limit = self.limit_of(call.task)
        if limit is None or self._excess(whole, limit) <= 0:
            return Rendered(whole)
        texts = input_texts(call.task, call.inputs)
        if not texts:
            return Rendered(whole)
        bare = messages(with_texts(call.inputs, dict.fromkeys(texts, "")))
        room = limit - sum(self.count_tokens(m["content"]) for m in bare)
        while True:
            fitting, cut = fit(texts, room, self.count_tokens, call.item)
            shortened = messages(with_texts(call.inputs, fitting))
            excess = self._excess(shortened, limit)
            if excess <= 0:
                return Rendered(shortened, truncated=bool(cut))
            room -= excess

    def messages(self, call: Call) -> Sequence[Message]:
        """The messages of :meth:`render`.

        Raises:
            SaberError: see :meth:`render`.
        """
        return self.render(call).messages

    def _excess(self, messages: Sequence[Message], limit: int) -> int:
        """By how many tokens the messages pass the limit; no count is made where bytes say enough."""
        if sum(1 + len(message["content"].encode("utf-8")) for message in messages) <= limit:
            return 0
        return sum(self.count_tokens(message["content"]) for message in messages) - limit


def render_archived(prompt_text: str, call: Call, form: Form = "tagged") -> list[dict[str, str]]:
    """The messages of a call by the text of a prompt that was kept.

    Raises:
        SaberError: if the text is no prompt, or an input is missing.
    """
    prompt = parse_prompt(prompt_text, "kept in the ledger")
    return prompt.render(prompt_values(call.task, call.inputs), form, call.attempt)
