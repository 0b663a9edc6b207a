"""Text survives its way to tokens and back, whole or in a stream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from procession.runtime.llm.errors import ModelError
from procession.runtime.llm.source import open_model
from procession.runtime.llm.tokenizer import BYTE_BOS, BYTE_EOS, Tokenizer, byte_tokenizer
from procession.runtime.llm.vocabulary import tokenizer_from_metadata

TEXTS = [
    "What is the capital of France?",
    "  two spaces,\n\nlines and\ttabs ",
    "1234567890 3.14 ½ ²",
    "Grüße, naïve café — “quotes” 北京 العربية 🦊👩‍👩‍👧",
    "it's we'll I'd DON'T",
    "<|im_end|> is only text here",
    "\x00\x01\x7f",
]


def streamed(tokenizer: Tokenizer, tokens: list[int]) -> list[str]:
    stream = tokenizer.detokenizer()
    return [*(stream.push(token) for token in tokens), stream.finish()]


@given(st.text())
def test_bytes_round_trip(text: str) -> None:
    tokenizer = byte_tokenizer()
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    pieces = streamed(tokenizer, tokens)
    assert "".join(pieces) == text
    assert all(len(piece) <= 1 for piece in pieces), "a character is printed when it is whole"


def test_byte_tokenizer_knows_its_control_tokens_only_when_asked() -> None:
    tokenizer = byte_tokenizer()
    assert tokenizer.encode("a<eos><bos>", special=True) == [97, BYTE_EOS, BYTE_BOS]
    assert tokenizer.encode("<eos>") == list(b"<eos>")
    assert tokenizer.prompt("a") == [BYTE_BOS, 97]
    assert tokenizer.stop == {BYTE_EOS}
    with pytest.raises(ModelError, match="no chat template"):
        tokenizer.chat([{"role": "user", "content": "hello"}])


def test_unfinished_character_is_replaced_at_the_end() -> None:
    assert streamed(byte_tokenizer(), list("é".encode())[:1]) == ["", "\ufffd"]


@pytest.fixture(scope="module")
def smollm2() -> Tokenizer:
    return open_model("smollm2").tokenizer()


@pytest.mark.model
@pytest.mark.parametrize("text", TEXTS)
def test_smollm2_round_trips(smollm2: Tokenizer, text: str) -> None:
    tokens = smollm2.encode(text)
    assert smollm2.decode(tokens) == text
    assert "".join(streamed(smollm2, tokens)) == text
    assert not smollm2.stop.intersection(tokens)


@pytest.mark.model
def test_smollm2_cuts_numbers_into_digits(smollm2: Tokenizer) -> None:
    assert [smollm2.pieces[token] for token in smollm2.encode("in 2024")] == [
        b"in",
        b" ",
        b"2",
        b"0",
        b"2",
        b"4",
    ]


@pytest.mark.model
def test_smollm2_chat(smollm2: Tokenizer) -> None:
    text = smollm2.render([{"role": "user", "content": "Hello"}])
    assert text.startswith("<|im_start|>system\n")
    assert text.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
    tokens = smollm2.prompt("Hello")
    assert tokens == smollm2.encode(text, special=True)
    assert tokens[0] == 1
    assert tokens.count(2) == 2
    assert smollm2.names["<|im_end|>"] in smollm2.stop


def spelt(text: str) -> str:
    """As byte-pair vocabularies spell it; enough for the words below."""
    return text.replace(" ", "Ġ")


def byte_pairs(**changes: Any) -> dict[str, Any]:
    tokens = [*"abcdelowrht", "Ġ", "he", "ll", "hell", "hello", "<end>", "<user>"]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 2) + [3, 4],
        "tokenizer.ggml.merges": ["h e", "l l", "he ll", "hell o"],
        "tokenizer.ggml.eos_token_id": len(tokens) - 2,
    }
    return metadata | {f"tokenizer.{key}": value for key, value in changes.items()}


def test_byte_pairs_merge_in_order() -> None:
    tokenizer = tokenizer_from_metadata(byte_pairs(), "file")
    pieces = [tokenizer.pieces[token] for token in tokenizer.encode("hello well")]
    assert pieces == [b"hello", b" ", b"w", b"e", b"ll"]


def test_control_tokens_are_silent_and_user_defined_ones_are_not() -> None:
    tokenizer = tokenizer_from_metadata(byte_pairs(), "file")
    end, user = tokenizer.names["<end>"], len(tokenizer.pieces) - 1
    assert tokenizer.encode("he<end>he<user>", special=True) == [12, end, 12, user]
    assert tokenizer.decode([12, end, 12, user]) == "hehe<user>"
    assert tokenizer.stop == {end}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ggml.merges": None}, "no merges"),
        ({"ggml.merges": ["a b c"]}, "not a pair"),
        ({"ggml.pre": "never-heard-of"}, "pre-tokenizer 'never-heard-of' is not known"),
        ({"ggml.pre": None}, "pre-tokenizer None is not known"),
        ({"ggml.model": "bert"}, "tokenizer model 'bert' is not known"),
        ({"ggml.tokens": None}, "no vocabulary"),
        ({"ggml.token_type": [1]}, "token types"),
        ({"ggml.model": "llama"}, "no scores"),
    ],
)
def test_vocabularies_that_cannot_be_used(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        tokenizer_from_metadata(byte_pairs(**changes), "file")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{% for %}", "cannot be rendered"),
        ("{{ messages.__class__.__mro__ }}", "cannot be rendered"),
    ],
)
def test_templates_that_fail(template: str, message: str) -> None:
    tokenizer = tokenizer_from_metadata(byte_pairs(chat_template=template), "file")
    with pytest.raises(ModelError, match=message):
        tokenizer.prompt("hello")


def sentence_pieces(**changes: Any) -> Tokenizer:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [2, 3, 3] + [6] * 256
    scores = [0.0] * 259
    # Scores fall with each piece: "ab" is joined before "bc".
    for rank, piece in enumerate(["▁", "a", "b", "c", "ab", "bc", "▁ab", "abc", "▁a"]):
        tokens.append(piece)
        types.append(1)
        scores.append(-float(rank))
    metadata: dict[str, Any] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    return tokenizer_from_metadata(metadata | {f"tokenizer.{k}": v for k, v in changes.items()}, "file")


def test_sentence_pieces_join_the_best_score_first() -> None:
    tokenizer = sentence_pieces()
    pieces = [tokenizer.pieces[token] for token in tokenizer.encode("abc bc")]
    assert pieces == [b" ab", b"c", b" ", b"bc"]
    assert tokenizer.prompt("a")[0] == 1


@pytest.mark.parametrize("prefix", [True, False])
@given(text=st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs"])))
def test_sentence_pieces_round_trip(prefix: bool, text: str) -> None:
    tokenizer = sentence_pieces(**{"ggml.add_space_prefix": prefix})
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    if not prefix:
        assert "".join(streamed(tokenizer, tokens)) == text
