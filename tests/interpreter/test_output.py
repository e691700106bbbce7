"""How output and answers are put into order, byte by byte."""

import struct

import pytest
from sandyard_interpreter.output import MAX_WAITING, Output

WORD = b"\0" + bytes(range(200, 216))


def mark(number):
    return WORD + struct.pack(">Q", number)


PRINTED = "ä1".encode() + mark(1) + "ö2\0".encode() + mark(2) + mark(3) + "ü".encode()


@pytest.mark.parametrize("size", [1, 2, 7, 24, 25, 26, 1000])
def test_marks_cut_the_text_however_it_comes(size):
    output = Output(WORD)
    for location in range(0, len(PRINTED), size):
        output.add(PRINTED[location : location + size])
    assert [output.take_until(number) for number in (1, 2, 3)] == ["ä1", "ö2\0", ""]
    assert output.take() == "ü"


def test_nothing_is_taken_beyond_an_answer_that_has_not_come():
    output = Output(WORD)
    output.add(b"before" + mark(1) + b"after")
    assert [output.take(), output.take()] == ["before", ""]
    assert len(output) == len("after")
    assert [output.take_until(1), output.take()] == ["", "after"]


def test_an_answer_without_its_mark_comes_after_everything():
    output = Output(WORD)
    output.add(b"before")
    assert output.take_until(1) == "before"
    output.add(b"more" + mark(1) + b" and more")
    assert output.take() == "more and more"


def test_a_mark_without_its_answer_is_passed_by_the_next():
    output = Output(WORD)
    output.add(b"a" + mark(1) + b"b" + mark(2) + b"c")
    assert [output.take_until(2), output.take()] == ["ab", "c"]


def test_a_mark_without_its_answer_does_not_hold_back_everything():
    output = Output(WORD)
    output.add(b"a" + mark(1) + b"b" + mark(2))
    printed = 0
    for _ in range(100):
        output.add(b"x" * 65536)
        printed += len(output.take())
        assert len(output) <= MAX_WAITING
    assert printed + len(output) == 2 + 100 * 65536
    # Should they come after all, they come now.
    assert output.take_until(1) == output.take_until(2) == ""


def test_what_only_begins_like_a_mark_is_text():
    output = Output(WORD)
    output.add(b"a\0")
    assert output.take() == "a"
    output.add(b"b" + WORD[:5])
    assert output.take() == "\0b"
    assert output.take_all() == WORD[:5].decode("utf-8", "replace")


def test_all_is_taken_with_the_half_of_a_character():
    output = Output(WORD)
    output.add(b"a" + mark(7) + "bü".encode()[:-1])
    assert output.take_all() == "ab\ufffd"
    assert [len(output), output.take()] == [0, ""]


def test_a_character_goes_on_after_a_mark():
    output = Output(WORD)
    first, second = "ü".encode()[:1], "ü".encode()[1:]
    output.add(first + mark(1) + second)
    assert [output.take_until(1), output.take()] == ["", "ü"]
