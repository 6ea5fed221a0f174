"""Where effects happen: policy files, the answers to the kernel's steps, ASGI, PostgreSQL."""
