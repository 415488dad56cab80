"""What is known of batches that are out, in files that outlive the process.

A file is written before its batch is submitted and again when the provider's name of it is known; it is
removed once every reply has been taken care of. So whatever was paid can be found again.
"""

import json
import time
from dataclasses import asdict, dataclass, field

from saber_dagster.errors import SaberError
from saber_dagster.storage import AnyPath, files_below, write_atomic

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
    """The batches of one partition that are out.

    Args:
        folder: where their files lie; None keeps nothing, so that a restart knows of none.
    """

    def __init__(self, folder: AnyPath | None) -> None:
        self.folder = folder

    def save(self, batch: Batch) -> None:
        """Write a batch down, whole or not at all."""
        if self.folder is not None:
            write_atomic(self._file(self.folder, batch), json.dumps(asdict(batch)).encode())

    def forget(self, batch: Batch) -> None:
        """Remove a batch's file."""
        if self.folder is not None:
            self._file(self.folder, batch).unlink(missing_ok=True)

    def load(self, url: str) -> list[Batch]:
        """The batches of a server, oldest first.

        Raises:
            SaberError: if a file is damaged; it names the file and what removing it means.
        """
        batches = []
        for path in files_below(self.folder, ".json") if self.folder is not None else ():
            try:
                batch = Batch(**json.loads(path.read_bytes()))
            except (ValueError, TypeError) as error:
                raise SaberError(
                    f"{path} is damaged ({error}); it should hold the state of a batch. If you remove"
                    " it, the calls of that batch are asked, and paid, again"
                ) from None
            if time.time() - batch.started > FORGOTTEN_AFTER_S:
                self.forget(batch)
            elif batch.url == url:
                batches.append(batch)
        return sorted(batches, key=lambda batch: (batch.started, batch.token))

    def _file(self, folder: AnyPath, batch: Batch) -> AnyPath:
        return folder / f"{batch.token}.json"
