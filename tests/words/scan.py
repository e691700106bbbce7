"""Takes files apart into names and prose, and holds both against the rules."""

import re
import subprocess
from pathlib import Path

import sources
from lists import Finding, Rules

REPOSITORY = Path(__file__).resolve().parents[2]
SKIPPED = ("tests/words/", "target/", "Cargo.lock", "fuzz/Cargo.lock", "LICENSE")


def files(paths: list[str]) -> list[str]:
    """The files below some paths that Git knows or would know, relative to the repository."""
    absolute = [str(Path(path).resolve()) for path in paths]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *absolute],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout.splitlines()
    return [path for path in listed if not path.startswith(SKIPPED) and (REPOSITORY / path).is_file()]


def file(path: str, rules: Rules) -> list[Finding]:
    findings = []
    for name in file_names(path):
        findings += check_name(path, sources.Name(1, name, "file"), rules)
    reader = sources.reader(path)
    if reader is None:
        return findings
    try:
        text = (REPOSITORY / path).read_text()
    except UnicodeDecodeError:
        return findings
    names, prose = reader(path, text)
    rights = {name.line for name in names if name.text == "right"}
    for name in names:
        if name.text == "left" and any(abs(name.line - line) <= 3 for line in rights):
            continue
        findings += check_name(path, name, rules)
    for passage in prose:
        findings += check_prose(path, passage, rules)
    unique = {}
    for finding in findings:
        unique.setdefault((finding.line, finding.word, finding.shown), finding)
    return sorted(unique.values(), key=lambda finding: finding.line)


def file_names(path: str) -> list[str]:
    """The file's name, and its folder's name when the file stands for the folder."""
    parts = Path(path)
    names = [parts.name.split(".")[0]]
    if parts.name in ("mod.rs", "__init__.py", "conftest.py"):
        names.append(parts.parent.name)
    return names


def split(name: str) -> list[str]:
    """`WayOut`, `way_out` and `WAY_OUT` are all `way`, `out`."""
    return [part.lower() for part in re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).replace("-", "_").split("_") if part]


def check_name(path: str, name: "sources.Name", rules: Rules) -> list[Finding]:
    components = split(name.text)
    whole = "_".join(components)
    findings = []

    def add(word: str, instead: str) -> None:
        findings.append(Finding(path, name.line, "name", word, name.text, instead))

    for part, instead in rules.parts.items():
        size = len(part)
        if any(tuple(components[at : at + size]) == part for at in range(len(components) - size + 1)):
            add("_".join(part), instead)
    if whole in rules.names:
        add(whole, rules.names[whole])
    elif name.kind != "local" and whole in rules.items:
        add(whole, rules.items[whole])
    return findings


def check_prose(path: str, passage: "sources.Prose", rules: Rules) -> list[Finding]:
    findings = []
    text = passage.text
    for pattern, word, instead in rules.phrases + rules.regexes:
        for match in pattern.finditer(text):
            line = passage.line + text.count("\n", 0, match.start())
            shown = re.sub(r"\s+", " ", match[0])
            findings.append(Finding(path, line, "phrase", word, shown, instead))
    if passage.documentation:
        stripped = text.strip()
        for pattern, word, instead in rules.alone:
            if pattern.fullmatch(stripped):
                findings.append(Finding(path, passage.line, "documentation", word, stripped, instead))
    return findings
