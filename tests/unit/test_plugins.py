"""Users' own modules and classes with every kind of fault."""

import datetime
import sys

import pytest

from resources.engines import engine_identity, load_engine
from saber_dagster.errors import SaberError
from saber_dagster.retrieval.base import load_retriever

ENGINE = """\
from saber_dagster.engines import PromptRef

class Mine:
    model = "mine"
    revision = "1"

    def __init__(self, size=1):
        self.size = size

    def params(self, task):
        return {"size": self.size}

    def prompt(self, task):
        return PromptRef("p", "0" * 64)

    def messages(self, call):
        return []

    def answer(self, calls):
        return iter(())
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of a user's; returns its file."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text, name="users_module"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        return path

    yield write
    for name in ("users_module", "users_helper"):
        sys.modules.pop(name, None)


SPEC = "python:users_module:Mine"


def load(kind, **options):
    return load_engine(SPEC, options) if kind == "engine" else load_retriever(SPEC, **options)


def message_of(kind, **options):
    with pytest.raises(SaberError) as caught:
        load(kind, **options)
    assert SPEC in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["engine", "retriever"])
@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("x = 1\nclass Mine\n    pass\n", "cannot be imported: SyntaxError: expected ':'", 2),
        ("x = 1\n1 / 0\n", "cannot be imported: ZeroDivisionError: division by zero", 2),
        ("import sys\n\nsys.exit('usage')\n", "cannot be imported: SystemExit: usage", 3),
        ("import no_such_module_here\n", "ModuleNotFoundError: No module named 'no_such", 1),
        (
            "class Mine:\n    def __init__(self, a=1):\n        raise KeyError('weights')\n",
            "the class raised KeyError: 'weights'",
            3,
        ),
    ],
)
def test_a_module_or_class_that_raises_is_placed(module, kind, text, said, line):
    path = module(text)
    message = message_of(kind)
    assert said in message
    assert f"({path}:{line})" in message
    assert "Mend " in message


def test_a_module_that_is_not_there_is_a_matter_of_the_path():
    with pytest.raises(SaberError, match=r"No module named 'absent_here'.*PYTHONPATH"):
        load_engine("python:absent_here.part:Mine", {})


def test_the_place_is_the_innermost_line_of_the_users_own_files(module):
    helper = module("import json\n\ndef read(text):\n    return json.loads(text)\n", "users_helper")
    module(
        "from users_helper import read\n\nclass Mine:\n    def __init__(self):\n        read('{')\n"
    )
    message = message_of("engine")
    assert "JSONDecodeError" in message
    assert f"({helper}:4)" in message


def test_options_are_compared_with_what_the_class_takes(module):
    module(ENGINE.replace("size=1", "size, *, shape=2"))
    message = message_of("engine")
    assert "needs the option(s) size. Its options are size, shape" in message
    message = message_of("engine", size=1, sape=2)
    assert "has no option 'sape', did you mean 'shape'? Its options are size, shape" in message
    assert "__init__" not in message
    with pytest.raises(SaberError, match=r"engine openai needs the option\(s\) model\. .*base_url"):
        load_engine("openai", {})


def test_a_class_may_take_any_options(module):
    module(ENGINE.replace("size=1", "**options").replace("= size", "= options['other']"))
    assert engine_identity(load("engine", other=3), "t")["params"] == {"size": 3}


@pytest.mark.parametrize(
    ("declared", "good", "bad", "wanted"),
    [
        ("int", 3, "3", "a whole number"),
        ("int", 3, 3.5, "a whole number"),
        ("int", 3, True, "a whole number"),
        ("float", 3, "x", "a number"),
        ("str", "x", 20260501, "text (quote it)"),
        ("bool", False, 0, "true or false"),
        ("str | None", None, 1, "text (quote it) or null"),
        ("'int | float'", 2.5, [1], "a whole number or a number"),
    ],
)
def test_options_are_of_the_plain_types_that_the_class_declares(
    module, declared, good, bad, wanted
):
    module(ENGINE.replace("size=1", f"size: {declared} = 1"))
    assert load("engine", size=good)
    assert f"option size is {bad!r}; it must be {wanted}" in message_of("engine", size=bad)


@pytest.mark.parametrize(
    "declared", ["list[str]", "'NoSuchName'", "dict | None", "object", "'Any'"]
)
def test_other_types_are_left_to_the_class(module, declared):
    module(ENGINE.replace("size=1", f"size: {declared} = 1"))
    for value in (["a"], "a", 1):
        assert load("engine", size=value)


def test_an_option_that_is_no_json_is_named(module):
    module(ENGINE)
    for value in (datetime.date(2026, 5, 1), float("nan")):
        assert "option size is no JSON value" in message_of("engine", size=value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('revision = "1"', "revision = 1", "revision is 1; it must be a str"),
        ('revision = "1"', 'revision = ""', "revision is ''"),
        ('model = "mine"', "model = None", "model is None"),
        (
            'revision = "1"',
            "revision = property(lambda self: 1 / 0)",
            "revision raised ZeroDivisionError: division by zero",
        ),
        (
            'model = "mine"',
            "model = property(lambda self: self.nothing)",
            "model raised AttributeError: 'Mine' object has no attribute 'nothing'",
        ),
        ("def messages", "def letters", "lacks messages"),
    ],
)
def test_a_wrong_model_or_revision_is_named_when_the_engine_is_loaded(module, old, new, said):
    module(ENGINE.replace(old, new))
    assert said in message_of("engine")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('{"size": self.size}', "None", "params('topic') returned None; it must be a dict"),
        ('{"size": self.size}', '{"size": {1}}', "params('topic') is not JSON (Object of type set"),
        ('{"size": self.size}', '{"size": float("nan")}', "params('topic') is not JSON"),
        ('{"size": self.size}', '{"size": 1 / 0}', "params('topic') raised ZeroDivisionError"),
        ('PromptRef("p", "0" * 64)', '"p"', "prompt('topic') returned 'p'; it must be a PromptRef"),
        ('PromptRef("p", "0" * 64)', 'PromptRef("p", 5)', "sha256 is 5; it must be a str"),
        (
            'PromptRef("p", "0" * 64)',
            "open('/no/such')",
            "prompt('topic') raised FileNotFoundError",
        ),
    ],
)
def test_wrong_parameters_or_prompts_are_named(module, old, new, said):
    path = module(ENGINE.replace(old, new))
    with pytest.raises(SaberError) as caught:
        engine_identity(load("engine"), "topic")
    assert str(caught.value).startswith(f"engine {SPEC}: {said}")
    assert ("raised" in said) == (f"({path}:" in str(caught.value))


def test_attributes_that_a_wrapper_passes_on_are_there(module):
    module(
        ENGINE.replace("Mine", "Inner")
        + "\nclass Mine:\n    def __init__(self):\n        self.inner = Inner()\n\n"
        "    def __getattr__(self, name):\n        return getattr(self.inner, name)\n"
    )
    assert load("engine").model == "mine"
    assert engine_identity(load("engine"), "t")["revision"] == "1"


def test_a_users_own_saber_error_is_passed_on_with_its_engine(module):
    module(
        "from saber_dagster.errors import SaberError\n\nclass Mine:\n"
        "    def __init__(self):\n        raise SaberError('set MY_KEY first')\n"
    )
    assert message_of("engine") == f"engine {SPEC}: set MY_KEY first"
