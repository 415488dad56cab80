"""Replies that were paid and that nobody asks for, as the questions changed while a batch was out.

They are kept beside the state of batches, as JSON lines by ledger key, until somebody asks for them.
"""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from resources.engines.batch_state import Batch, state_files
from saber_dagster.errors import SaberError
from saber_dagster.storage import AnyPath, write_atomic

_SUFFIX = ".spare.jsonl"


@dataclass(frozen=True, slots=True)
class Spare:
    """A result that was paid.

    Attributes:
        key: ledger key of its call.
        latency: seconds that its batch took.
        result: the line of the result file, without the API key.
    """

    key: str
    latency: float
    result: Mapping[str, Any]


class SpareReplies:
    """The spare replies of a partition and its siblings.

    Args:
        folder: where their files lie, the folder of :class:`BatchState`; None keeps nothing.
    """

    def __init__(self, folder: AnyPath | None) -> None:
        self._folder = folder

    def keep(self, batch: Batch, spares: Sequence[Spare]) -> None:
        """Write the spare replies of a batch down, all or none."""
        if self._folder is not None and spares:
            _write(self._folder / f"{batch.token}{_SUFFIX}", spares)

    def take(self, keys: Container[str]) -> Iterator[Spare]:
        """The spare replies of some keys.

        They are removed file by file, when whoever iterates comes back after the last one of a file:
        by then it must have stored them.

        Raises:
            SaberError: if a file is damaged; it names the file and what removing it means.
        """
        for path, data in state_files(self._folder, _SUFFIX):
            try:
                spares = [Spare(**json.loads(line)) for line in data.splitlines()]
            except (ValueError, TypeError) as error:
                raise SaberError(
                    f"{path} is damaged ({error}); it should hold replies that were paid. If you remove"
                    " it, they are asked, and paid, again"
                ) from None
            wanted = [spare for spare in spares if spare.key in keys]
            yield from wanted
            if len(wanted) == len(spares):
                path.unlink(missing_ok=True)
            elif wanted:
                _write(path, [spare for spare in spares if spare.key not in keys])


def _write(path: AnyPath, spares: Sequence[Spare]) -> None:
    lines = [json.dumps(asdict(spare)) + "\n" for spare in spares]
    write_atomic(path, "".join(lines).encode())
