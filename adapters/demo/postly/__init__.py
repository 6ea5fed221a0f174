"""Postly: posts, orders with refunds, and payouts of two organisations, served to agents and people."""
