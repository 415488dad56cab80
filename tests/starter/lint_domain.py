"""``python tests/starter/lint_domain.py algebra``: what is wrong with one domain's file, at once."""

import sys
from collections import Counter
from itertools import combinations

from answer_programs import programs
from answer_reading import agree

from saber_dagster.starter import read_domain, starter_techniques
from saber_dagster.text import words

for domain in sys.argv[1:]:
    entries = read_domain(domain)
    known, ids = starter_techniques(), {e.id for e in entries}
    print(
        domain,
        len(entries),
        "problems;",
        sum(e.answer is not None for e in entries),
        "with an answer",
    )
    used = Counter(t for e in entries for t in e.techniques)
    print("techniques with fewer than 4:", {t: n for t, n in used.items() if n < 4})
    checks = programs(domain)
    for e in entries:
        for t in e.techniques:
            if t not in known:
                print(e.id, "unknown technique", t)
        for other in e.looks_like:
            if other not in ids:
                print(e.id, "looks like unknown", other)
        if e.level not in ("olympiad", "university"):
            print(e.id, "level", e.level)
        if min(len(e.problem), len(e.solution)) < 40 or (e.problem + e.solution).count("$") % 2:
            print(e.id, "short text or odd number of $")
        if e.answer is not None:
            try:
                found = checks[e.id]()
                if not agree(found, e.answer):
                    print(e.id, "program", found, "answer", e.answer)
            except Exception as error:
                print(e.id, type(error).__name__, error)
    for e, f in combinations(entries, 2):
        a, b = set(words(e.problem)), set(words(f.problem))
        share = len(a & b) / max(1, len(a | b))
        if share > 0.5 and set(e.techniques) & set(f.techniques):
            print(e.id, f.id, f"problems share {share:.0%} of their words and a technique")
