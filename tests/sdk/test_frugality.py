"""The agent's memory stays bounded whatever passes through it."""

import io

from e2b import Sandbox

from waiting import wait_for

MEBIBYTE = 1024 * 1024
# Far above what it needs, far below what passes through.
BOUND = 48 * MEBIBYTE


class Zeros(io.RawIOBase):
    """A file of zeros that is never in memory as a whole."""

    def __init__(self, size):
        self._remaining = size

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self._remaining)
        buffer[:count] = bytes(count)
        self._remaining -= count
        return count


def peak_memory(agent):
    with open(f"/proc/{agent.pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmHWM"].split()[0]) * 1024


def test_large_files_pass_through_in_pieces(sandbox, folder, agent):
    size = 120 * MEBIBYTE
    sandbox.files.write(f"{folder}/big", io.BufferedReader(Zeros(size)))
    assert sandbox.files.get_info(f"{folder}/big").size == size
    assert sum(len(chunk) for chunk in sandbox.files.read(f"{folder}/big", format="stream")) == size
    assert peak_memory(agent) < BOUND


def test_unread_output_is_bounded(agent):
    # Only the synchronous half leaves a stream unread.
    sandbox = Sandbox.create()
    handle = sandbox.commands.run("head -c 300000000 /dev/zero; touch ~/wrote-all", background=True)
    try:
        wait_for(lambda: sandbox.files.exists("wrote-all"), "it wrote all", deadline=3)
    except AssertionError:
        pass  # Held back by the full stream, which is as good.
    assert peak_memory(agent) < BOUND
    assert sandbox.commands.run("echo fine").stdout == "fine\n"
    sandbox.commands.kill(handle.pid)
    sandbox.files.remove("wrote-all")
