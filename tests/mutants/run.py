"""`python tests/mutants/run.py`: judges every mutant, prints the table, leaves JSON in `results/`."""

import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.exit(subprocess.call([sys.executable, "-m", "tests.mutants.runner", *sys.argv[1:]], cwd=root))
