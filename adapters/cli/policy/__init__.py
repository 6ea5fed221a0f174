"""The commands of `nonsuch policy`, a module each."""
