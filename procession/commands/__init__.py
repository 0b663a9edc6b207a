"""Sub-commands of `procession`: one module each, found by name.

Theory of operation. A module `NAME.py` (or package) here is the command `NAME` (underscores become dashes; a
leading underscore hides a helper). It holds `command`, a click command whose function returns a
`procession.exits.Exit` or None. The first line of its docstring is its line in `procession --help`; it is
read from the source, not by an import, so that help stays quick however heavy the command is. Nothing is
registered: the file is the registration.
"""
