"""The table in README.md names tests that exist."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUST = HERE.parents[1] / "crates" / "sandyard-service" / "tests" / "it"

pytestmark = pytest.mark.quick


def named_tests():
    """Every `file::test` of the table; a name without a file belongs to the file before it in the same cell."""
    for cell in re.findall(r"\|([^|]*)\|$", (HERE / "README.md").read_text(), re.MULTILINE):
        file = None
        for new_file, test in re.findall(r"`([\w./]*)::(\w+)`", cell):
            file = new_file or file
            yield file, test


@pytest.mark.parametrize("file, test", sorted(set(named_tests())))
def test_named_test_exists(file, test):
    location, word = (RUST / file, "fn") if file.endswith(".rs") else (HERE / file, "def")
    assert re.search(rf"\b{word} {test}\b", location.read_text())
