"""What boot took and nobody needs any more goes back to the system."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from nonsuch.adapters.edge.memory import give_back

GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")
LOOK = """
from nonsuch.adapters.edge.memory import give_back

def resident():
    told = open("/proc/self/status").read()
    return int(told.partition("VmRSS:")[2].split()[0]) // 1024

before = resident()
held = [bytearray(4_096) for _ in range(20_000)]  # 80 MB, too small for maps of their own
last = held[-1]  # above them all: the heap cannot just be made shorter
del held
kept = resident() - before
give_back()
print(kept, resident() - before)
"""


@pytest.mark.skipif(not GLIBC, reason="only glibc keeps it, and can be told not to")
def test_free_memory_goes_back() -> None:
    told = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True).stdout
    kept, left = map(int, told.split())
    assert kept > 60
    assert left < 10


def test_where_it_cannot_be_told_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    give_back()
