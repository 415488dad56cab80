"""Every final answer of the starter corpus is computed again by a program of its own.

The programs are the functions of ``answers_DOMAIN.py``, named by the problem's id: ``alg_001`` for
``alg-001``. Each works from the problem, not from the written solution.
"""

import pytest
from answer_programs import programs
from answer_reading import agree

from saber_dagster.starter import DOMAINS, read_domain


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_answer_has_its_program_and_every_program_its_answer(domain):
    answered = {entry.id for entry in read_domain(domain) if entry.answer is not None}
    assert set(programs(domain)) == answered


@pytest.mark.parametrize(
    "entry",
    [pytest.param(e, id=e.id) for d in DOMAINS for e in read_domain(d) if e.answer is not None],
)
def test_the_program_finds_the_answer(entry):
    found = programs(entry.domain)[entry.id]()
    assert agree(found, entry.answer), f"{entry.id}: program {found}, answer {entry.answer}"
