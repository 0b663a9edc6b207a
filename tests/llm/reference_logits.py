"""Run by test_reference in an environment of its own: what `transformers` makes of a GGUF file.

stdin: JSON {"gguf": path, "texts": [text], "prompts": [[token]]}. Writes into the folder named as first argument:
logits0.npy, logits1.npy, ... float32 [tokens, vocabulary] for each prompt, tokens0.npy, ... for each text.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

job = json.load(sys.stdin)
path = Path(job["gguf"])
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
out = {f"tokens{i}": np.array(tokenizer(text).input_ids) for i, text in enumerate(job["texts"])}
with torch.inference_mode():
    for i, prompt in enumerate(job["prompts"]):
        out[f"logits{i}"] = model(torch.tensor([prompt])).logits[0].numpy()
for name, array in out.items():
    np.save(Path(sys.argv[1]) / f"{name}.npy", array)
