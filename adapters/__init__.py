"""Adapters translate between a surface and the kernel; those in ``edge`` carry out what the kernel asks."""
