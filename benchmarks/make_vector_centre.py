"""Write saber_dagster/data/vector_centre.txt: the mean direction of the texts of CHAMP (MIT).

Run it again after a change of ``direction`` in ``resources/engines/embedded_vectors.py``:
``python -m benchmarks.make_vector_centre``.
"""

from pathlib import Path

import numpy as np

from resources.engines.embedded_vectors import CENTRE_FILE, direction
from saber_dagster.champ import champ_problems

TARGET = Path(__file__).parents[1] / "saber_dagster" / "data" / CENTRE_FILE


def render() -> str:
    """The file's text."""
    texts = [text for p in champ_problems() for text in (p.problem, p.solution)]
    mean = np.mean([direction(text) for text in texts], axis=0)
    head = (
        "# a number per dimension: written by benchmarks/make_vector_centre.py from CHAMP (MIT)\n"
    )
    return head + "".join(f"{value:.6f}\n" for value in mean)


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8", newline="\n")
