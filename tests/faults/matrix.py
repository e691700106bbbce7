"""All faults of the matrix by name, and the table of what callers got."""

from pathlib import Path

from disk_faults import DatabaseDeviceLost, DataDirectoryReadOnly, DataDiskFull, SandboxDeviceLost, SlowDisk
from kill_faults import AgentKilled, LauncherKilled, ServerKilled
from memory_faults import SandboxMemoryExhausted, ServerMemoryExhausted
from remote_faults import DatabaseServerGone, ProviderCutOff
from verbs import VERBS

FAULTS = {
    "data disk full": DataDiskFull,
    "data directory read-only": DataDirectoryReadOnly,
    "data disk slow (2 s)": SlowDisk,
    "database device lost": DatabaseDeviceLost,
    "database server gone": DatabaseServerGone,
    "sandbox device lost": SandboxDeviceLost,
    "sandbox memory exhausted": SandboxMemoryExhausted,
    "server memory exhausted": ServerMemoryExhausted,
    "server killed": ServerKilled,
    "launcher killed": LauncherKilled,
    "agent killed": AgentKilled,
    "provider cut off": ProviderCutOff,
}

# What callers got, by cell: the words of all answers in the order they came.
answers = {}


def note(fault, verb, replies):
    parts = ["lost" if reply is None else "ok" if reply.status_code == 200 else reply.json()["code"] for reply in replies]
    answers[fault, verb] = ", ".join(dict.fromkeys(parts))


def table():
    """The matrix as Markdown: what callers got while the fault lasted."""
    rows = [["fault", *VERBS], ["---"] * (len(VERBS) + 1)]
    rows += [[fault, *(answers.get((fault, verb), "") for verb in VERBS)] for fault in FAULTS]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"
