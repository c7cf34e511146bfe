"""The commands installed by pip: arguments in, exit status out."""
