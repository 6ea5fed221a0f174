"""The commands of `nonsuch db`, a module each."""
