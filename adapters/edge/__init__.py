"""The edge: where effects happen. Loads policies, answers the kernel's steps, speaks ASGI, runs PostgreSQL."""
