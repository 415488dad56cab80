"""What is quoted in a fault can be printed."""

import json

from saber_dagster.errors import Fault, InputError

HALF = "\ud83d"


def test_a_lost_half_of_a_character_is_shown_as_its_code():
    fault = Fault(f"{HALF}.csv", 3, f"i{HALF}d", f"{HALF!r} is not read", f"Did you mean {HALF}?")
    shown = str(fault).encode().decode()
    assert shown == r"\ud83d.csv:3: i\ud83dd: '\ud83d' is not read. Did you mean \ud83d?"
    assert json.dumps(fault.as_row(), ensure_ascii=False).encode()
    assert shown in str(InputError([fault]))


def test_other_characters_stay():
    fault = Fault("é.csv", 0, "τ", "😀 \x00", "…")
    assert (fault.file, fault.field, fault.problem) == ("é.csv", "τ", "😀 \x00")
