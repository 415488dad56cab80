"""Write saber_dagster/data/word_weights.tsv: how rare words and formula parts are in mathematics.

The weight of a token is ln((N + 1) / (n + 1)): n of the N problems of CHAMP (with their solutions;
the PyPI package champ-dataset, MIT) contain it. Tokens of one problem only are not listed; they and
all tokens that CHAMP lacks have the weight of n = 1. Run it again after a change of
``resources/engines/embedded_words.py``: ``python -m benchmarks.make_word_weights``.
"""

import math
from collections import Counter
from pathlib import Path

from resources.engines.embedded_words import DEFAULT_WEIGHT
from saber_dagster.champ import champ_problems
from saber_dagster.phrases import BREAK, formula_groups, read_text

TARGET = Path(__file__).parents[1] / "saber_dagster" / "data" / "word_weights.tsv"
LEAST_PROBLEMS = 2


def render() -> str:
    """The file's text."""
    found: Counter[str] = Counter()
    problems = champ_problems()
    for problem in problems:
        read = [read_text(text) for text in (problem.problem, problem.solution)]
        found.update({token for parts in read for token in (*parts, *formula_groups(parts))})
    del found[BREAK]
    total = len(problems) + 1
    weights = {t: math.log(total / (n + 1)) for t, n in found.items() if n >= LEAST_PROBLEMS}
    weights[DEFAULT_WEIGHT] = math.log(total / 2)
    rows = (f"{token}\t{weight:.4f}\n" for token, weight in sorted(weights.items()))
    head = "# token\tweight: written by benchmarks/make_word_weights.py from CHAMP (MIT)\n"
    return head + "".join(rows)


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8", newline="\n")
    print(f"{TARGET.name}: {render().count(chr(10)) - 1} tokens")
