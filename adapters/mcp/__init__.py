"""MCP: bytes to calls and outcomes to bytes, in three revisions of the protocol; no SDK, no session, no socket."""
