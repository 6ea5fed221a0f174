"""The kernel decides; it reads no clock, opens no socket and knows no framework."""
