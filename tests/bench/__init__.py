"""Measures nonsuch against its floors and its peers in one interleaved run; judges nothing but cost."""
