"""Our model against an independent one: `transformers`, loading the same file.

It costs a download and a minute, so it runs only when asked to: PROCESSION_REFERENCE=1. `transformers` goes into a
virtual environment under the test's temporary folder that sees this environment's packages (torch among them) and
changes none of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from procession.runtime.llm.llama import Llama
from procession.runtime.llm.parallel import Groups, Layout
from procession.runtime.llm.source import open_model, smollm2_path
from procession.runtime.llm.step import SequenceStep, Step

TEXTS = [
    "What is the capital of France?",
    "In 1969, 2 men walked on the Moon; 3.5 days' flight.",
    "def add(a, b):\n    return a + b\n\n\nprint(add(2, 40))",
    "Grüße aus 北京 — it's 🦊 o'clock, we'll see…",
]


def reference_python(folder: Path) -> str:
    """An interpreter that has what this one has, and transformers."""
    venv.create(folder, with_pip=False)
    python = str(folder / "bin" / "python")
    site = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True, timeout=60
    ).strip()
    (Path(site) / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    install = [python, "-m", "pip", "install", "--quiet", "transformers==5.19.*", "accelerate"]
    subprocess.run(install, check=True, timeout=400)
    return python


@pytest.mark.reference
@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    os.environ.get("PROCESSION_REFERENCE") != "1",
    reason="installs transformers and compares with it only with PROCESSION_REFERENCE=1",
)
def test_logits_and_tokens_agree_with_transformers(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    weights = open_model("smollm2")
    tokenizer = weights.tokenizer()
    prompts = [tokenizer.prompt(text) for text in TEXTS]
    job = {"gguf": str(smollm2_path()), "texts": TEXTS, "prompts": prompts}
    script = Path(__file__).with_name("reference_logits.py")
    python = reference_python(tmp_path / "venv")
    subprocess.run(
        [python, str(script), str(tmp_path)], input=json.dumps(job), text=True, check=True, timeout=300
    )
    model = Llama(weights, Groups(Layout(0, 1, 1)), torch.float32, 512)
    worst = 0.0
    for i, (text, prompt) in enumerate(zip(TEXTS, prompts, strict=True)):
        assert tokenizer.encode(text) == np.load(tmp_path / f"tokens{i}.npy").tolist(), text
        right = np.load(tmp_path / f"logits{i}.npy")
        # The whole prompt at once, and token by token: two paths through attention.
        for position, token in enumerate(prompt):
            logits = model.forward(Step((SequenceStep(0, (token,), position),)))
            assert logits is not None
            error = np.abs(logits[0].numpy() - right[position]).max() / np.abs(right[position]).max()
            worst = max(worst, float(error))
        logits = model.forward(Step((SequenceStep(1, tuple(prompt), 0),)))
        assert logits is not None
        worst = max(worst, float(np.abs(logits[0].numpy() - right[-1]).max() / np.abs(right[-1]).max()))
    record_property("relative_error", worst)
    print(f"\nlargest difference of logits, relative to the largest logit: {worst:.1e}", file=sys.stderr)
    assert worst < 1e-3
