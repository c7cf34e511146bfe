"""The commands that pip installs: arguments in, exit status out."""
