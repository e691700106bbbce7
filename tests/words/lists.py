"""Reads `words.txt` and `allowed.txt`."""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass
class Finding:
    path: str
    line: int
    kind: str
    word: str
    shown: str
    instead: str

    def __str__(self) -> str:
        shown = "" if self.shown == self.word else f" in `{self.shown}`"
        return f"{self.path}:{self.line}: {self.kind} `{self.word}`{shown}: {self.instead}"


@dataclass
class Rules:
    """Words by kind; each leads to what to write instead."""

    parts: dict[tuple[str, ...], str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    items: dict[str, str] = field(default_factory=dict)
    phrases: list[tuple[re.Pattern, str, str]] = field(default_factory=list)
    regexes: list[tuple[re.Pattern, str, str]] = field(default_factory=list)
    alone: list[tuple[re.Pattern, str, str]] = field(default_factory=list)


def lines(path: Path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, [cell.strip() for cell in line.split("|")]


def read_rules(path: Path = HERE / "words.txt") -> Rules:
    rules = Rules()
    for number, cells in lines(path):
        if cells[0] == "regex":
            pattern, instead, example = regex_cells(cells)
            rules.regexes.append((re.compile(pattern, re.I), example, instead))
            continue
        if len(cells) != 3:
            raise SystemExit(f"{path}:{number}: expected `kind | words | use instead`")
        kind, words, instead = cells
        for word in words.split(","):
            word = word.strip()
            match kind:
                case "part":
                    rules.parts[tuple(word.split("_"))] = instead
                case "name":
                    rules.names[word] = instead
                case "item":
                    rules.items[word] = instead
                case "phrase":
                    rules.phrases.append((phrase(word), word, instead))
                case "alone":
                    rules.alone.append((re.compile(phrase_text(word), re.I), word, instead))
                case _:
                    raise SystemExit(f"{path}:{number}: unknown kind `{kind}`")
    return rules


def regex_cells(cells: list[str]) -> tuple[str, str, str]:
    """A regular expression may contain the character that separates cells."""
    return re.sub(" ", r"\\s", "|".join(cells[1:-2])), cells[-2], cells[-1]


def phrase_text(word: str) -> str:
    """A phrase as a regular expression: spaces match any white space, `(a/b)` is a choice, `*` is one word."""
    text = re.escape(word).replace(r"\ ", r"\s+").replace(r"\*", r"[\w`'’-]+")
    return re.sub(r"\\\((.*?)\\\)", lambda choice: "(?:" + choice[1].replace("/", "|") + ")", text)


def phrase(word: str) -> re.Pattern:
    return re.compile(r"(?<![\w-])" + phrase_text(word) + r"(?![\w-])", re.I)


@dataclass
class Exception_:
    number: int
    glob: str
    word: str
    used: bool = False


class Exceptions:
    def __init__(self, entries: list[Exception_]):
        self.entries = entries

    def allow(self, finding: Finding) -> bool:
        for entry in self.entries:
            if entry.word in (finding.word, finding.shown) and fnmatch(finding.path, entry.glob):
                entry.used = True
                return True
        return False

    def unused(self) -> list[Exception_]:
        return [entry for entry in self.entries if not entry.used]


def read_exceptions(path: Path = HERE / "allowed.txt") -> Exceptions:
    entries = []
    for number, cells in lines(path):
        if len(cells) != 3 or not cells[2]:
            raise SystemExit(f"{path}:{number}: expected `path | word | reason`")
        entries.append(Exception_(number, cells[0], cells[1]))
    return Exceptions(entries)
