"""What lives in PostgreSQL; needs the extra ``postgres``."""
