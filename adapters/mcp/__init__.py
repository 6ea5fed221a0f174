"""MCP: bytes to calls, outcomes to bytes, in three revisions; no SDK, no session, no socket."""
