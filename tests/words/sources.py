"""Names and prose of a source file, by its language. Comments of neighbouring lines are one passage, so that a phrase is
found across a line break."""

import ast
import io
import json
import re
import tokenize
from dataclasses import dataclass


@dataclass
class Name:
    line: int
    text: str
    kind: str  # "file", "item" or "local"


@dataclass
class Prose:
    line: int
    text: str
    documentation: bool = False


def reader(path: str):
    name = path.rsplit("/", 1)[-1]
    if path == "docs/openapi.json":
        return openapi
    if "." not in name:
        return shell
    match name.rsplit(".", 1)[1]:
        case "rs":
            return rust
        case "py":
            return python
        case "js" | "mjs" | "jsx" | "ts":
            return javascript
        case "sh":
            return shell
        case "toml" | "ini" | "yaml" | "yml":
            return settings
        case "md":
            return lambda path, text: ([], [Prose(1, re.sub(r"\]\([^)]*\)", "]", text))])
        case _:
            return None


def is_test(path: str) -> bool:
    return "/tests/" in "/" + path or path.endswith(("tests.rs", "_tests.rs")) or "/testing" in path


# --- Rust ---------------------------------------------------------------------------------------------------------

RUST = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
      | (?P<string>[bc]?"(?:[^"\\]|\\.)*")
      | (?P<char>b?'(?:[^'\\\n]|\\[^u\n]|\\x[0-9a-fA-F]{2}|\\u\{[^}]*\})')
      | (?P<lifetime>'[a-z_]+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<space>\s+)
      | (?P<number>\d[\w.]*)
      | (?P<mark>::|=>|->|.)""",
    re.S | re.X,
)
ITEMS = {"fn", "struct", "enum", "trait", "type", "const", "static", "mod", "union"}
KEYWORDS = {"mut", "ref", "self", "Self", "box", "pub", "crate", "super", "in", "else", "_", "true", "false", "fn", "dyn", "impl"}


def rust(path: str, text: str):
    tokens, comments, strings = [], [], []
    line = 1
    for match in RUST.finditer(text):
        kind, value = match.lastgroup, match[0]
        if kind == "hashes":
            kind = "raw"
        if kind == "comment":
            comments.append((line, value))
        elif kind in ("string", "raw"):
            strings.append((line, value))
            tokens.append((line, "string", value))
        elif kind != "space":
            tokens.append((line, kind, value))
        line += value.count("\n")
    names = rust_names(tokens)
    prose = passages([(at, comment_text(value), mark(value)) for at, value in comments])
    if not is_test(path):
        tested = test_module(text)
        prose += [Prose(at, rust_string(value)) for at, value in strings if at < tested]
    return names, prose


def mark(comment: str) -> str:
    return "doc" if comment.startswith(("///", "//!")) else "plain"


def comment_text(comment: str) -> str:
    if comment.startswith("/*"):
        return re.sub(r"^/\*+!?|\*+/$", "", comment)
    return re.sub(r"^//[/!]?", "", comment)


def rust_string(value: str) -> str:
    """The text of a literal; a line ended by a backslash goes on in the next."""
    return re.sub(r"\\\n", " \n", value.replace("\\n", "  ").replace('\\"', '"'))


def test_module(text: str) -> float:
    """The line on which the tests of a file begin."""
    found = re.search(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)
    return text.count("\n", 0, found.start()) + 1 if found else float("inf")


def passages(comments: list[tuple[int, str, str]]) -> list[Prose]:
    """Joins comments on consecutive lines."""
    joined, last = [], None
    for line, text, kind in comments:
        if last is not None and last[0] + 1 == line and last[1] == kind:
            joined[-1].text += "\n" + text.strip()
        else:
            joined.append(Prose(line, text, kind == "doc"))
        last = (line + text.count("\n"), kind)
    return joined


def rust_names(tokens: list[tuple[int, str, str]]) -> list[Name]:
    names, at = [], 0
    depth, enums = 0, []
    while at < len(tokens):
        line, kind, value = tokens[at]
        following = tokens[at + 1] if at + 1 < len(tokens) else (line, "", "")
        before = tokens[at - 1][2] if at else ""
        if value in ITEMS and kind == "word" and following[1] == "word" and following[2] not in KEYWORDS:
            names.append(Name(following[0], following[2], "item"))
            if value == "enum":
                enums.append(depth)
        elif value == "let":
            names += let_pattern(tokens, at + 1)
        elif value == "for" and following[1] == "word" and at + 2 < len(tokens) and tokens[at + 2][2] == "in":
            names.append(Name(following[0], following[2], "local"))
        elif value == "{":
            depth += 1
        elif value == "}":
            depth -= 1
            if enums and enums[-1] == depth:
                enums.pop()
        elif kind == "word" and value not in KEYWORDS:
            if following[2] == ":" and before in ("{", ",", "(", "|", ")", "]", "pub", "mut", "") and value not in ("where",):
                names.append(Name(line, value, "field"))
            elif enums and depth == enums[-1] + 1 and value[0].isupper() and before in ("{", ",", "]"):
                names.append(Name(line, value, "item"))
        at += 1
    return names


def let_pattern(tokens, at: int) -> list[Name]:
    names = []
    for index in range(at, min(at + 40, len(tokens))):
        line, kind, value = tokens[index]
        following = tokens[index + 1][2] if index + 1 < len(tokens) else ""
        if value in ("=", ";", ":"):
            break
        if kind == "word" and value not in KEYWORDS and value[0].islower() and following not in ("(", "{", "::", ":"):
            names.append(Name(line, value, "local"))
    return names


# --- the others ---------------------------------------------------------------------------------------------------


def python(path: str, text: str):
    names, prose = [], []
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return shell(path, text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(Name(node.lineno, node.name, "item"))
        elif isinstance(node, ast.arg):
            names.append(Name(node.lineno, node.arg, "field"))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(Name(node.lineno, node.id, "local"))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.append(Name(node.lineno, node.attr, "field"))
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                prose.append(Prose(first.lineno, first.value.value, True))
    comments = [
        (token.start[0], token.string.lstrip("#"), "plain")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    return names, prose + passages(comments)


def javascript(path: str, text: str):
    names = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in re.finditer(r"\b(function\*?|class|const|let|var)\s+([A-Za-z_$][\w$]*)", line):
            names.append(Name(number, match[2], "item" if match[1] in ("function", "class") else "local"))
    return names, passages(line_comments(text, r"(?:^|\s)//(.*)$"))


def shell(path: str, text: str):
    names = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\s*([A-Za-z_][\w-]*)\(\)", line):
            names.append(Name(number, match[1], "item"))
        if match := re.match(r"\s*(?:local|export|readonly)?\s*([A-Za-z_]\w*)=", line):
            names.append(Name(number, match[1], "local"))
    return names, passages(line_comments(text, r"(?:^|\s)#(?!!)(.*)$"))


def settings(path: str, text: str):
    return [], passages(line_comments(text, r"(?:^|\s)#(.*)$"))


def line_comments(text: str, pattern: str):
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(pattern, line):
            yield number, match[1], "plain"


def openapi(path: str, text: str):
    """Summaries and descriptions; the line is that of the first equal text."""
    prose, where = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        where.setdefault(line.strip().rstrip(","), number)

    def walk(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("summary", "description") and isinstance(inner, str):
                    line = where.get(f"{json.dumps(key)}: {json.dumps(inner, ensure_ascii=False)}", 1)
                    prose.append(Prose(line, inner.replace("\n", " "), True))
                else:
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(json.loads(text))
    return [], prose
