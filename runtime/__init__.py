"""The processes: operating-system facts become events, effects become system calls."""

if __name__ != "procession.runtime":  # from the repository's root it would be a second copy of every class
    raise ImportError(f"{__name__} is a folder of this repository: import procession.runtime instead")
