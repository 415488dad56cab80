"""``python tests/starter/record_reading.py algebra``: note that a second reader has read a domain.

Run it only after somebody who did not write the solutions has read every one of them. A problem or
solution that changes later has another digest, and a test asks for a new reading.
"""

import sys
from pathlib import Path

from saber_dagster.hashing import sha256_hex
from saber_dagster.starter import StarterEntry, read_domain

RECORD = Path(__file__).with_name("second_reading.tsv")


def wording(entry: StarterEntry) -> str:
    """A digest of what was read."""
    return sha256_hex(f"{entry.problem}\0{entry.solution}\0{entry.answer}")[:16]


def record() -> dict[str, str]:
    """Id of each problem that was read and the digest of its wording then."""
    if not RECORD.exists():
        return {}
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


if __name__ == "__main__":
    read = record()
    for name in sys.argv[1:]:
        read.update({entry.id: wording(entry) for entry in read_domain(name)})
    lines = [f"{key}\t{value}\n" for key, value in sorted(read.items())]
    RECORD.write_text("".join(lines), encoding="utf-8")
