"""One output stream of a kernel: bytes come in, text goes out."""

import codecs
import struct
from collections import deque

# After the kernel's secret word: the number of the answer that was sent when everything before the mark had been printed.
NUMBER = struct.Struct(">Q")
# Bytes that may wait for an answer. Beyond that the process is not a kernel of this server: it marked its streams and did not answer.
MAX_WAITING = 1024 * 1024


class Output:
    """Text as it was printed, cut where the kernel has answered in between.

    A kernel marks its streams before it answers. So it is known what was printed before an answer and what after it,
    however late either is read, and nobody has to wait for anybody.
    """

    def __init__(self, word: bytes):
        self._word = word
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # What may be the beginning of a mark.
        self._rest = b""
        # Texts that end in a mark, with its number; after them comes what no mark ends yet.
        self._marked: deque[tuple[str, int]] = deque()
        self._text = ""
        self._answered = 0

    def __len__(self) -> int:
        return len(self._text) + sum(len(text) for text, _ in self._marked)

    def add(self, data: bytes) -> None:
        data = self._rest + data
        while (position := data.find(self._word)) >= 0 and len(data) >= (end := position + len(self._word) + NUMBER.size):
            self._text += self._decoder.decode(data[:position])
            (number,) = NUMBER.unpack(data[end - NUMBER.size : end])
            data = data[end:]
            if number > self._answered:
                self._marked.append((self._text, number))
                self._text = ""
        remaining = self._beginning(data)
        self._rest = data[len(data) - remaining :]
        self._text += self._decoder.decode(data[: len(data) - remaining])

    def _beginning(self, data: bytes) -> int:
        """How many of the last bytes may become a mark when more have come."""
        position = data.find(self._word)
        if position >= 0:
            return len(data) - position
        longest = min(len(self._word) - 1, len(data))
        return next((size for size in range(longest, 0, -1) if self._word.startswith(data[-size:])), 0)

    def take(self) -> str:
        """What was printed before the next answer, as far as it has come."""
        taken = ""
        while self._marked and len(self) > MAX_WAITING:
            text, self._answered = self._marked.popleft()
            taken += text
        if self._marked:
            text, number = self._marked[0]
            self._marked[0] = ("", number)
        else:
            text, self._text = self._text, ""
        return taken + text

    def take_until(self, number: int) -> str:
        """What was printed before an answer. If its mark was lost, everything: it came before now."""
        if number <= self._answered:
            return ""
        self._answered = number
        taken = ""
        while self._marked:
            text, mark = self._marked.popleft()
            taken += text
            if mark >= number:
                return taken
        return taken + self.take()

    def take_all(self) -> str:
        """Everything, and what is there of a character that never came to its end."""
        taken = "".join(text for text, _ in self._marked) + self._text + self._decoder.decode(self._rest, final=True)
        self._marked.clear()
        self._text, self._rest = "", b""
        return taken
