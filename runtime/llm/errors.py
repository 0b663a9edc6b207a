"""The one exception of this package that is meant for the user's eyes.

Everything that can be wrong with what a user handed in (a file, a size, a prompt, a machine too small) is a
`ModelError` whose text is one complete message: what is wrong, and what would be right. A command line prints the
text and nothing else.
"""


class ModelError(Exception):
    """What the user asked for cannot be done; the text says why and what can be."""
