"""Findings that remain from before the check existed. Their number may only go down.

`remaining.txt` has a number for every folder that has some; a folder that it does not name must have none.
"""

from collections import Counter
from pathlib import Path

import lists
import scan

FILE = Path(__file__).resolve().with_name("remaining.txt")


def folder(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "crates" else parts[0]


def read() -> dict[str, int]:
    if not FILE.exists():
        return {}
    return {name: int(count) for name, count in (line.split() for line in FILE.read_text().splitlines() if line[:1] not in ("#", ""))}


def run(update: bool) -> int:
    rules, exceptions, allowed = lists.read_rules(), lists.read_exceptions(), read()
    findings: dict[str, list[lists.Finding]] = {}
    for path in scan.files([]):
        for finding in scan.file(path, rules):
            if not exceptions.allow(finding):
                findings.setdefault(folder(path), []).append(finding)
    counts = Counter({name: len(found) for name, found in findings.items()})
    if update:
        kept = {name: min(count, allowed.get(name, count)) for name, count in counts.items()}
        lines = ["# Findings of tests/words/check that remain, by folder. The numbers may only go down: tests/words/check --update."]
        FILE.write_text("\n".join(lines + [f"{name} {count}" for name, count in sorted(kept.items())]) + "\n")
        return 0
    code = 0
    for name, count in sorted(counts.items()):
        limit = allowed.get(name, 0)
        if count > limit:
            code = 1
            print(f"{name}: {count} findings, at most {limit} are allowed:")
            for finding in findings[name]:
                print(f"  {finding}")
        elif count < limit:
            print(f"{name}: {count} findings instead of {limit}: run tests/words/check --update")
    for unused in exceptions.unused():
        code = 1
        print(f"tests/words/allowed.txt:{unused.number}: matches nothing any more: remove the line")
    print(f"{sum(counts.values())} findings remain, {sum(allowed.values())} are allowed")
    return code
