"""Proves that every entry of the list is found, in every language, and that ordinary English is not."""

import re

import lists
import scan
import sources


def camel(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))


def example(word: str) -> str:
    """A text that a phrase of the list matches: the first of each choice."""
    return re.sub(r"\(([^/)]*)[^)]*\)", r"\1", word).replace("*", "thing")


def names_in(path: str, text: str, rules: lists.Rules) -> set[str]:
    names, _ = sources.reader(path)(path, text)
    return {finding.word for name in names for finding in scan.check_name(path, name, rules)}


def phrases_in(path: str, text: str, rules: lists.Rules) -> set[str]:
    _, prose = sources.reader(path)(path, text)
    return {finding.word for passage in prose for finding in scan.check_prose(path, passage, rules)}


CLEAN_RUST = '''
//! Counts what is left of a quota. There is no other owner; the server keeps the row for seven days.
/// Number of requests left in this minute.
fn requests_left(quota: u32) -> u32 { let remaining = quota; remaining }
struct Alignment { padding_left: u32, line: String }
fn one_or_more(text: &str) -> Option<char> { text.chars().find(|c| *c == '"') }
'''


def run() -> int:
    rules = lists.read_rules()
    failures = []

    def expect(found: set[str], word: str, what: str) -> None:
        if word not in found:
            failures.append(f"`{word}` was not found in {what}")

    for part in rules.parts:
        word = "_".join(part)
        expect(names_in("crates/x/src/a.rs", f"fn before_{word}_after() {{}}", rules), word, "a function of Rust")
        expect(names_in("crates/x/src/a.rs", f"struct New{camel(word)} {{}}", rules), word, "a type of Rust")
        expect(names_in("crates/x/src/a.rs", f"enum A {{ B, {camel(word)}(u8) }}", rules), word, "a variant of Rust")
        expect(names_in("crates/x/src/a.rs", f"struct A {{ pub {word}: u8 }}", rules), word, "a field of Rust")
        expect(names_in("tests/a.py", f"def test_{word}(): pass", rules), word, "a function of Python")
        expect({f.word for f in scan.check_name("x", sources.Name(1, word, "file"), rules)}, word, "the name of a file")
    for word in rules.names:
        expect(names_in("crates/x/src/a.rs", f"fn f() {{ let mut {word} = 1; }}", rules), word, "a variable of Rust")
        expect(names_in("tests/a.py", f"{word}_ = 1" if word in PYTHON_KEYWORDS else f"{word} = 1", rules), word, "a variable of Python")
    for word in list(rules.names) + list(rules.items):
        expect(names_in("crates/x/src/a.rs", f"mod {word} {{}}", rules), word, "a module of Rust")
    for _, word, _ in rules.phrases:
        text = example(word)
        expect(phrases_in("crates/x/src/a.rs", f"// A {text} b.\nfn f() {{}}", rules), word, "a comment of Rust")
        expect(phrases_in("crates/x/src/a.rs", f'const A: &str = "a {text} b";', rules), word, "a text of Rust")
        expect(phrases_in("a.md", f"A {text} b.", rules), word, "a document")
        split = text.replace(" ", "\n# ", 1)
        expect(phrases_in("tests/a.py", f"# A {split} b.", rules), word, "a comment of Python, across lines")
    for _, word, _ in rules.regexes:
        expect(phrases_in("crates/x/src/a.rs", f"// A {word}\nfn f() {{}}", rules), word, "a comment of Rust")
    for _, word, _ in rules.alone:
        expect(phrases_in("crates/x/src/a.rs", f"/// {example(word)}\nstruct A;", rules), word, "documentation of Rust")
        expect(phrases_in("docs/openapi.json", f'{{"a": {{"description": "{example(word)}"}}}}', rules), word, "OpenAPI")
    for found in (names_in("crates/x/src/a.rs", CLEAN_RUST, rules), phrases_in("crates/x/src/a.rs", CLEAN_RUST, rules)):
        if found:
            failures.append(f"found in ordinary English: {', '.join(sorted(found))}")
    for failure in failures:
        print(failure)
    entries = len(rules.parts) + len(rules.names) + len(rules.items) + len(rules.phrases) + len(rules.regexes) + len(rules.alone)
    print(f"words: {entries} entries, {len(failures)} not found")
    return 1 if failures else 0


PYTHON_KEYWORDS = {"or", "and", "not", "is", "in", "with", "from", "as"}
