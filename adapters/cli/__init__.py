"""The command line: `nonsuch`."""
