"""Text to tokens and back, whatever the vocabulary is.

Encoding belongs to the vocabulary's kind and comes in as a function (see `vocabulary`). Decoding is the same for all:
each token stands for some bytes, and text is the UTF-8 of the bytes in a row. A character may be spread over several
tokens, so streaming goes through a `Detokenizer`, which holds back the bytes of an unfinished character. Control
tokens (end of turn and the like) stand for no bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .errors import ModelError


class Detokenizer:
    """Tokens in, text out, as early as it is whole characters. Bytes that are not UTF-8 become U+FFFD."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that `token` completes; empty in the middle of a character."""
        return self._decoder.decode(self._pieces[token])

    def finish(self) -> str:
        """What is left at the end of the stream: U+FFFD for an unfinished character, else nothing."""
        return self._decoder.decode(b"", True)


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """One vocabulary.

    `encoder(text, special)` parses the names of control tokens in the text only if `special`; `pieces` holds each
    token's bytes; `names` the control tokens by name; `stop` the tokens that end a generation; `bos` the token that
    opens a text where the model wants one; `template` the chat template (Jinja), if any. With `space_prefix` the
    encoder puts a space before a text, and `decode` takes it off again.
    """

    encoder: Callable[[str, bool], list[int]]
    pieces: Sequence[bytes]
    names: Mapping[str, int]
    stop: frozenset[int]
    bos: int | None = None
    eos: int | None = None
    add_bos: bool = False
    template: str | None = None
    space_prefix: bool = False

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The tokens of `text`; names of control tokens are ordinary text unless `special`."""
        return self.encoder(text, special)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of a whole sequence; the inverse of `encode`."""
        text = b"".join(self.pieces[token] for token in tokens).decode("utf-8", "replace")
        return text[1:] if self.space_prefix and text.startswith(" ") else text

    def detokenizer(self) -> Detokenizer:
        """A fresh stream of text from tokens."""
        return Detokenizer(self.pieces)

    def prompt(self, text: str) -> list[int]:
        """The tokens of a user's prompt: one turn of a chat where the model has a template, else the bare text."""
        if self.template is not None:
            return self.chat([{"role": "user", "content": text}])
        start = [self.bos] if self.add_bos and self.bos is not None else []
        return start + self.encode(text)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The tokens of a conversation, up to where the model's answer begins. Raises ModelError without a template
        or where the template refuses the conversation."""
        return self.encode(self.render(messages), special=True)

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The conversation as the template writes it."""
        if self.template is None:
            raise ModelError("this model has no chat template")
        # Imported here: only models that have a template need it.
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(message: str) -> str:
            raise ModelError(f"the chat template refuses the conversation: {message}")

        def name(token: int | None) -> str:
            return next((name for name, number in self.names.items() if number == token), "")

        # The template comes out of a file that anybody may have made, hence the sandbox.
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = refuse
        try:
            return environment.from_string(self.template).render(
                messages=messages,
                add_generation_prompt=True,
                bos_token=name(self.bos),
                eos_token=name(self.eos),
            )
        except TemplateError as error:
            raise ModelError(f"the model's chat template cannot be rendered: {error}") from error


BYTE_BOS, BYTE_EOS = 256, 257


def byte_tokenizer() -> Tokenizer:
    """A token a byte; 256 begins a text and 257 ends it."""
    names = {"<bos>": BYTE_BOS, "<eos>": BYTE_EOS}

    def encode(text: str, special: bool) -> list[int]:
        if not special:
            return list(text.encode())
        tokens: list[int] = []
        for part in _split(text, tuple(names)):
            tokens += [names[part]] if part in names else part.encode()
        return tokens

    return Tokenizer(
        encoder=encode,
        pieces=[bytes([byte]) for byte in range(256)] + [b"", b""],
        names=names,
        stop=frozenset({BYTE_EOS}),
        bos=BYTE_BOS,
        eos=BYTE_EOS,
        add_bos=True,
    )


def _split(text: str, names: tuple[str, ...]) -> list[str]:
    """`text` cut so that each of `names` in it is a part of its own."""
    parts = [text]
    for name in names:
        cut: list[str] = []
        for part in parts:
            if part in names:
                cut.append(part)
                continue
            pieces = part.split(name)
            for index, piece in enumerate(pieces):
                cut += [name, piece] if index else [piece]
        parts = cut
    return parts
