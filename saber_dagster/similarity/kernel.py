"""How the kernels of this folder are compiled and their machine code is kept."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])

_HERE = Path(__file__).parent


def _cache_folder() -> str:
    """A folder of its own for each version of the sources.

    Numba looks at the file of a kernel alone. It would keep the machine code of a kernel when a
    function that was compiled into it has changed in another file, as after an update by git.
    """
    digest = hashlib.sha256()
    for path in sorted(_HERE.glob("*.py")):
        digest.update(path.read_bytes())
    base = Path(numba.config.CACHE_DIR or _HERE / "__pycache__")  # type: ignore[attr-defined]
    return str(base / f"kernels-{digest.hexdigest()[:16]}")


_CACHE_FOLDER = _cache_folder()


def kernel(function: _Function) -> _Function:
    """Compile a function when it is first called, without the GIL, and keep the machine code.

    Where no folder can be written, it is compiled in each process.
    """
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = _CACHE_FOLDER  # type: ignore[attr-defined]
    try:
        compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
    return cast(_Function, compiled)
