"""The files of the source tree, for the gate scripts: what a person wrote, without builds, state and caches."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"target", "corpus", "artifacts", "__pycache__"}
HIDDEN_BUT_OURS = {".ci"}


def files():
    """Every file, by path below the root, in order."""

    def walk(directory):
        for path in sorted(directory.iterdir()):
            hidden = path.name.startswith(".") and path.name not in HIDDEN_BUT_OURS
            if path.is_symlink() or hidden or path.name in LEFT_OUT:
                continue
            if path.is_dir():
                yield from walk(path)
            else:
                yield path

    return [path.relative_to(ROOT) for path in walk(ROOT)]


def finish(name, checked, faults):
    """Prints what was checked, or each fault, and ends with the status that says which."""
    for fault in faults:
        print(f"{name}: {fault}", file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"{name}: {checked}")
