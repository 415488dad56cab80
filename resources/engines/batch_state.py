"""What is known of batches that are out, in files that outlive the process.

A file is written before its batch is submitted and again when the provider's name of it is known; it is
removed once every reply has been taken care of. So whatever was paid can be found again.

The files of a partition lie in ``MODEL/PARTITION/state``. Those of the model's other partitions are read,
too: where the shards of a benchmark change, a question goes to another partition than before.
"""

import json
import time
from dataclasses import asdict, dataclass, field

from saber_dagster.errors import SaberError
from saber_dagster.storage import AnyPath, files_below, read_many, write_atomic

FORGOTTEN_AFTER_S = 60 * 86400.0
"""Providers keep the files of a batch for 30 days; a batch of this age is of no use to anybody."""


@dataclass(slots=True)
class Batch:
    """One batch of requests.

    Attributes:
        token: our own name for it, which the batch carries in its metadata.
        url: address of the server that has it.
        keys: ledger keys of its calls, which are the custom ids of its requests.
        tokens: estimate of its prompts' tokens; 0 if nobody needs to know.
        started: when its last start was sent, in seconds since 1970.
        starts: how many starts were sent.
        id: the provider's name for it; empty until that is known.
    """

    token: str
    url: str
    keys: list[str]
    tokens: int = 0
    started: float = field(default_factory=time.time)
    starts: int = 0
    id: str = ""


class BatchState:
    """The batches of one partition that are out, and those of its siblings.

    Args:
        folder: where their files lie; None keeps nothing, so that a restart knows of none.
    """

    def __init__(self, folder: AnyPath | None) -> None:
        self.folder = folder
        self._others: dict[str, AnyPath] = {}
        """Token → file, of batches that another partition has submitted."""

    def save(self, batch: Batch) -> None:
        """Write a batch down, whole or not at all."""
        if (file := self.file(batch)) is not None:
            write_atomic(file, json.dumps(asdict(batch)).encode())

    def forget(self, batch: Batch) -> None:
        """Remove a batch's file."""
        if (file := self.file(batch)) is not None:
            file.unlink(missing_ok=True)

    def owns(self, batch: Batch) -> bool:
        """Whether this partition has submitted a batch."""
        return batch.token not in self._others

    def load(self, url: str) -> list[Batch]:
        """The batches of a server that this partition or another one has out, oldest first.

        Raises:
            SaberError: if a file is damaged; it names the file and what removing it means.
        """
        batches = []
        for path, data in state_files(self.folder, ".json"):
            try:
                batch = Batch(**json.loads(data))
            except (ValueError, TypeError) as error:
                raise SaberError(
                    f"{path} is damaged ({error}); it should hold the state of a batch. If you remove"
                    " it, the calls of that batch are asked, and paid, again"
                ) from None
            if self.folder is not None and path.parent.parent.name != self.folder.parent.name:
                self._others[batch.token] = path
            if time.time() - batch.started > FORGOTTEN_AFTER_S:
                self.forget(batch)
            elif batch.url == url:
                batches.append(batch)
        return sorted(batches, key=lambda batch: (batch.started, batch.token))

    def file(self, batch: Batch) -> AnyPath | None:
        """The file of a batch; None if nothing is kept."""
        if self.folder is None:
            return None
        return self._others.get(batch.token, self.folder / f"{batch.token}.json")


def state_files(folder: AnyPath | None, suffix: str) -> list[tuple[AnyPath, bytes]]:
    """Files with such names, and their content, in a state folder and those of its siblings.

    Files that go away meanwhile are left out.
    """
    if folder is None:
        return []
    model = folder.parent.parent
    paths = sorted((p for p in files_below(model, suffix) if p.parent.name == folder.name), key=str)
    return [
        (path, data) for path, data in zip(paths, read_many(paths), strict=True) if data is not None
    ]
