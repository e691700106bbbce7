"""The program under test, and what it is started with."""

import os
from pathlib import Path


def find_program():
    """The program to test: $SANDYARD, else the newest debug build of this checkout."""
    if by_name := os.environ.get("SANDYARD"):
        return Path(by_name)
    checkout = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR", checkout / "target"))
    built = sorted(target.glob("*/debug/sandyard"), key=lambda path: path.stat().st_mtime)
    if not built:
        raise RuntimeError("no program: run `cargo build -p sandyard` first")
    return built[-1]


def environment(**more):
    """No setting of the person who runs the tests, only what is given."""
    stored = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**stored, "RUST_BACKTRACE": "1", **more}
