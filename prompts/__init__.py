"""Prompt templates as files; the SHA-256 of a file is its version. See ``docs/prompts.md``."""

from prompts.reading import load_prompt, parse_prompt, shipped_prompts
from prompts.template import Form, Prompt
from prompts.values import PLACEHOLDERS, example_inputs, prompt_values

__all__ = [
    "PLACEHOLDERS",
    "Form",
    "Prompt",
    "example_inputs",
    "load_prompt",
    "parse_prompt",
    "prompt_values",
    "shipped_prompts",
]
