r"""Builds a tokenizer from the vocabulary in a GGUF file's metadata, on the `tokenizers` package.

Two kinds are read:
- "gpt2": byte-pair merges over bytes that are spelt as printable characters (a space is "Ġ"). How a text is cut into
  words before merging is not in the file, only that cutter's name, and a wrong one gives wrong tokens without any
  error: so the names we know are listed here, and an unknown one is refused.
- "llama": SentencePiece pieces with scores and no merges ("▁" is a space). SentencePiece joins the neighbours whose
  union scores best; as a merge that is: each way to cut a piece into two pieces, ordered by the union's score.
  Characters outside the vocabulary fall back to the pieces "<0x00>" to "<0xFF>".

Token types in the file: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine
from tokenizers.models import BPE

from .errors import ModelError
from .tokenizer import Tokenizer

_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 2, 3, 4, 6
_END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>")

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{%s}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _words() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _digits_then_words() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _words()])


def _pattern(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


# Cutter, and whether a word that is a token as a whole is taken without merging.
_CUTTERS: dict[str, tuple[Callable[[], pre_tokenizers.PreTokenizer], bool]] = {
    "gpt-2": (_words, False),
    "smollm": (_digits_then_words, False),
    "starcoder": (_digits_then_words, False),
    "refact": (_digits_then_words, False),
    "command-r": (_digits_then_words, False),
    "llama-bpe": (lambda: _pattern(_LLAMA3 % "1,3"), True),
    "llama3": (lambda: _pattern(_LLAMA3 % "1,3"), True),
    "llama-v3": (lambda: _pattern(_LLAMA3 % "1,3"), True),
    "qwen2": (lambda: _pattern(_LLAMA3 % "1"), False),
}


def tokenizer_from_metadata(metadata: Mapping[str, Any], path: str) -> Tokenizer:
    """The tokenizer described under "tokenizer." in the metadata, string arrays included.

    Raises ModelError: no vocabulary, a kind or a pre-tokenizer that is not known, byte pairs without merges.
    """

    def get(key: str) -> Any:
        return metadata.get(f"tokenizer.ggml.{key}")

    kind, tokens = get("model"), get("tokens")
    if not tokens:
        raise ModelError(f"{path} has no vocabulary")
    given = get("token_type")
    types: list[int] = [1] * len(tokens) if given is None else [int(t) for t in given]
    if len(types) != len(tokens):
        raise ModelError(f"{path} is damaged: {len(tokens)} tokens, {len(types)} token types")
    space_prefix = False
    if kind == "gpt2":
        merges = get("merges")
        if not merges:
            raise ModelError(f"{path}: its byte-pair tokenizer has no merges, so text cannot be encoded")
        engine = _byte_pairs(tokens, merges, get("pre"), path)
        pieces = [
            _spelt(token) if t not in (_CONTROL, _USER_DEFINED) else token.encode()
            for token, t in zip(tokens, types, strict=True)
        ]
    elif kind == "llama":
        scores = get("scores")
        if scores is None or len(scores) != len(tokens):
            raise ModelError(f"{path}: its SentencePiece tokenizer has no scores, so text cannot be encoded")
        space_prefix = bool(metadata.get("tokenizer.ggml.add_space_prefix", True))
        engine = _sentence_pieces(tokens, [float(s) for s in scores], types, space_prefix)
        pieces = [_sentence_piece(token, t) for token, t in zip(tokens, types, strict=True)]
    else:
        raise ModelError(f"{path}: tokenizer model {kind!r} is not known; 'gpt2' and 'llama' are")

    names = {token: i for i, (token, t) in enumerate(zip(tokens, types, strict=True)) if t == _CONTROL}
    literal = [token for token, t in zip(tokens, types, strict=True) if t == _USER_DEFINED]
    engine.add_special_tokens([AddedToken(name, normalized=False) for name in names])
    engine.add_tokens([AddedToken(token, normalized=False) for token in literal])
    for number in names.values():
        pieces[number] = b""

    def encode(text: str, special: bool) -> list[int]:
        engine.encode_special_tokens = not special
        return list(engine.encode(text, add_special_tokens=False).ids)

    eos = get("eos_token_id")
    stop = {names[name] for name in _END_OF_TURN if name in names}
    stop |= {int(i) for i in (eos, get("eot_token_id"), get("eom_token_id")) if i is not None}
    add_bos = get("add_bos_token")
    return Tokenizer(
        encoder=encode,
        pieces=pieces,
        names=names,
        stop=frozenset(stop),
        bos=get("bos_token_id"),
        eos=eos,
        add_bos=bool(add_bos) if add_bos is not None else kind == "llama",
        template=metadata.get("tokenizer.chat_template"),
        space_prefix=space_prefix,
    )


def _byte_pairs(tokens: Sequence[str], merges: Sequence[str], pre: str | None, path: str) -> Engine:
    if pre not in _CUTTERS:
        raise ModelError(
            f"{path}: pre-tokenizer {pre!r} is not known, and guessing would give wrong tokens; "
            f"known: {', '.join(sorted(_CUTTERS))}"
        )
    cutter, ignore_merges = _CUTTERS[pre]
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if any(len(pair) != 2 for pair in pairs):
        raise ModelError(f"{path} is damaged: a merge in its vocabulary is not a pair")
    engine = Engine(BPE(_numbers(tokens), [(a, b) for a, b in pairs], ignore_merges=ignore_merges))
    engine.pre_tokenizer = cutter()
    return engine


def _sentence_pieces(
    tokens: Sequence[str], scores: Sequence[float], types: Sequence[int], space_prefix: bool
) -> Engine:
    numbers = _numbers(tokens)
    merges: list[tuple[float, int, str, str]] = []
    for number, (token, kind) in enumerate(zip(tokens, types, strict=True)):
        if kind not in (1, _USER_DEFINED):
            continue
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in numbers and right in numbers:
                merges.append((-scores[number], number, left, right))
    merges.sort(key=lambda merge: merge[:2])
    unknown = next((token for token, kind in zip(tokens, types, strict=True) if kind == _UNKNOWN), None)
    model = BPE(
        numbers,
        [(left, right) for *_, left, right in merges],
        unk_token=unknown,
        fuse_unk=True,
        byte_fallback=True,
    )
    engine = Engine(model)
    spaces: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    engine.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), *spaces] if space_prefix else spaces)
    return engine


def _numbers(tokens: Sequence[str]) -> dict[str, int]:
    """Number by token; of equal tokens the first."""
    numbers: dict[str, int] = {}
    for number, token in enumerate(tokens):
        numbers.setdefault(token, number)
    return numbers


def _sentence_piece(token: str, kind: int) -> bytes:
    if kind == _BYTE and (match := re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", token)):
        return bytes.fromhex(match[1])
    return token.replace("▁", " ").encode()


def _byte_alphabet() -> dict[str, int]:
    """The byte that each character of a "gpt2" token stands for: printable Latin-1 for itself, the rest from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(rest)}


_ALPHABET = _byte_alphabet()


def _spelt(token: str) -> bytes:
    try:
        return bytes(_ALPHABET[character] for character in token)
    except KeyError:  # a token added by hand, in plain text
        return token.encode()
