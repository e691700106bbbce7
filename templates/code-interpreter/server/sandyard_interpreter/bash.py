"""Bash: an interactive shell whose terminal is our socket.

Interactive, because only then does an interrupt end everything that runs and nothing else: functions, loops and
variables stay. The shell reads our lines from its input and, from there too, the code; the code itself runs with an
empty input and with the output streams of the context. Other output of the shell is discarded.
"""

import contextlib
import re
import shlex

from . import events
from .channel import Channel
from .kernel import Kernel
from .spawner import ending_of, spawn

# 7 and 8 are where the code prints, 9 is our socket. History expansion would change an exclamation mark in code, and an
# interactive shell says `exit` when it does. The shell is deaf to interrupts except while code runs: it would drop the
# line that it reads, and take the code that follows for commands.
PROLOGUE = rb"""
set +o history +H; PS1= PS2= PS4='+ '; unset HISTFILE INPUTRC; exec 9>&0
exit() { builtin exit "${1-$?}" 2>/dev/null; }
__sandyard_deaf() { trap '' INT; }
__sandyard_report() { printf '%s %s\0' "$1" "$__sandyard_status" >&9; }
__sandyard_deaf
"""
READ = "__sandyard_status=130; IFS= read -r -d '' -u 9 __sandyard_code\n"
# The server may interrupt code once it knows that it has started, so the trap is set before the start is reported.
EVALUATE = (
    "trap - INT; printf '%s started\\0' {number} >&9; "
    'eval "$__sandyard_code" </dev/null >&7 2>&8 7>&- 8>&- 9>&-; __sandyard_status=$?\n'
)
# Without a quote: should an interrupt cut one of these lines, the rest of it does no harm.
DEAF = "__sandyard_deaf\n"
REPORT = "__sandyard_report {number}\n"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Bash(Kernel):
    """Speaks with the shell in its own words: lines in, exit codes out."""

    program = "bash"
    # Of the request that runs: a report may come twice, see `interrupt`.
    _number = 0

    @classmethod
    async def open(cls, cwd: str) -> "Bash":
        channel = Channel()
        ends = channel.kernel_ends
        # What the shell itself prints are prompts and echoes.
        shell = "HISTFILE=/dev/null INPUTRC=/dev/null exec bash --norc --noprofile -i >/dev/null 2>&1"
        command = ["bash", "-c", f"exec 7>&1 8>&2; {shell}"]
        process = spawn("bash", command, cwd, channel, stdin=ends.control)
        kernel = cls(channel, process.pid, lambda: ending_of(process))
        await channel.send(PROLOGUE)
        return kernel

    def encode(self, code: str, changed: dict[str, str | None], own_variables: dict[str, str]) -> bytes:
        self._number += 1
        code = code.replace("\0", "")
        before = [assignment(name, value) for name, value in changed.items() if NAME.fullmatch(name)]
        after = []
        for name, value in own_variables.items():
            if NAME.fullmatch(name):
                before.append(f"__sandyard_{name}=${{{name}-}} __sandyard_had_{name}=${{{name}+1}}; {assignment(name, value)}")
                after.append(
                    f'if [[ $__sandyard_had_{name} ]]; then export {name}="$__sandyard_{name}"; else unset {name}; fi; '
                    f"unset __sandyard_{name} __sandyard_had_{name}"
                )
        # Each on a line of its own: an interrupt skips the rest of the line that runs, not those that follow.
        lines = "".join(map(line_of, before)) + READ + code + "\0" + EVALUATE.format(number=self._number) + DEAF
        lines += "".join(map(line_of, after)) + REPORT.format(number=self._number)
        return lines.encode("utf-8", "replace")

    def decode(self, received: bytearray) -> list[dict]:
        answers = []
        while b"\0" in received:
            report, _, rest = bytes(received).partition(b"\0")
            received[:] = rest
            number, _, status = report.decode("ascii", "replace").partition(" ")
            if number != str(self._number):
                continue
            if status == "started":
                answers.append({"type": "started"})
                continue
            self._number += 1
            if status == "130":
                answers.append(events.error("KeyboardInterrupt", "the code was interrupted"))
            elif status != "0":
                answers.append(exit_status(status))
            answers.append({"type": "done"})
        return answers

    def last_event(self, code: int | None) -> dict | None:
        # Scripts often end in `exit`; that takes the variables with it, but is no accident.
        if code is None or code < 0:
            return super().last_event(code)
        return exit_status(str(code)) if code else None

    def signal(self) -> None:
        super().signal()
        # The shell drops the line that it reads when it is interrupted; if that was the report, here is another.
        with contextlib.suppress(OSError):
            self._channel.control.send(("\n" + DEAF + REPORT.format(number=self._number)).encode())


def exit_status(status: str) -> dict:
    return events.error("ExitStatus", status, f"the last command ended with exit status {status}")


def assignment(name: str, value: str | None) -> str:
    return f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"


def line_of(command: str) -> str:
    """A command as one line for the shell's input, whatever its text holds."""
    if "\n" in command or not command.isprintable() or not command.isascii():
        octal = "".join(f"\\{byte:03o}" for byte in command.encode("utf-8", "replace"))
        return f"eval $'{octal}'\n"
    return command + "\n"
