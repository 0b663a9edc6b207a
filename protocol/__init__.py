"""The machines: pure tables, no clock, thread, process, socket or torch."""

if __name__ != "procession.protocol":  # from the repository's root it would be a second copy of every class
    raise ImportError(f"{__name__} is a folder of this repository: import procession.protocol instead")
