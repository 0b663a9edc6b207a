"""What must hold: composed models, properties, the explorer, and trace validation."""

if __name__ != "procession.specs":  # from the repository's root it would be a second copy of every class
    raise ImportError(f"{__name__} is a folder of this repository: import procession.specs instead")
