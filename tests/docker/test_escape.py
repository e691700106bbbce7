"""Ways out of a container that do not ask the server: rights, limits, and files of the host's kernel."""

# Numbers of capabilities(7): CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE.
DOCUMENTED = {0, 1, 3, 4, 5, 6, 7, 8, 10}

FORK_UNTIL_REFUSED = """
import os, signal, time
children = []
try:
    while len(children) < 5000:
        child = os.fork()
        if not child:
            time.sleep(600)
            os._exit(0)
        children.append(child)
except OSError:
    pass
print(len(children))
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def capabilities(api, sandbox, field, user):
    text = api.run(sandbox, f"grep {field} /proc/self/status", user=user)["output"]
    mask = int(text.split()[1], 16)
    return {number for number in range(64) if mask >> number & 1}


def test_processes_inside_cannot_gain_rights(api, sandbox):
    for user in ("user", "root"):
        assert api.run(sandbox, "grep NoNewPrivs /proc/self/status", user=user)["output"].split() == ["NoNewPrivs:", "1"]
        for field in ("CapBnd", "CapPrm", "CapEff", "CapInh", "CapAmb"):
            assert capabilities(api, sandbox, field, user) <= DOCUMENTED, (user, field)
    # A program with the set-user-id bit, made by root inside, stays its caller's.
    api.run(sandbox, "cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id", user="root")
    assert api.run(sandbox, "/tmp/id -u")["output"] == api.run(sandbox, "id -u")["output"] != "0\n"
    for command in ("unshare --user --map-root-user true", "unshare --mount true", "mount -t tmpfs none /mnt", "mknod /tmp/disk b 8 0"):
        assert api.run(sandbox, command, user="root")["exit_code"] != 0, command


def test_the_number_of_processes_is_bounded(api, make):
    sandbox = make(pids_limit=64)
    api.write(sandbox, "/tmp/fork.py", FORK_UNTIL_REFUSED)
    created = int(api.run(sandbox, "python3 /tmp/fork.py")["stdout"])
    # The limit, and room for the agent's own processes.
    assert 16 <= created < 64 + 64
    assert api.run(sandbox, "echo alive")["output"] == "alive\n"


def test_memory_is_bounded_for_all_processes_together(api, make):
    sandbox = make(memory_limit="128m")
    # Each alone would fit. `wait` waits for the first that ends, which the kernel has killed.
    api.write(sandbox, "/tmp/greedy.py", "import time; x = bytearray(60 << 20); time.sleep(600)")
    api.write(sandbox, "/tmp/greedy.sh", "for n in 1 2 3 4; do python3 /tmp/greedy.py & done; wait -n; echo $?; pkill -f greedy.py")
    assert api.run(sandbox, "bash /tmp/greedy.sh 2>/dev/null")["stdout"].strip() == "137"
    assert api.run(sandbox, "echo alive")["output"] == "alive\n"


def test_settings_of_the_hosts_kernel_cannot_be_written(api, sandbox):
    locations = ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/irq", "/sys/kernel")
    for location in locations:
        found = api.run(sandbox, f"find {location} -type f -writable 2>/dev/null | head -3; : 2>/dev/null >> {location}", user="root")
        assert not found["stdout"] and found["exit_code"] != 0, (location, found)
    hidden = api.run(sandbox, "cat /proc/kcore /proc/keys /proc/timer_list /sys/firmware/* 2>/dev/null | wc -c", user="root")
    assert hidden["stdout"].strip() == "0"


def test_no_file_of_the_hosts_proc_can_be_written(api, sandbox):
    """Files beside those of processes are the host's: a program that may write to `/proc/pressure` makes the kernel measure for it."""
    # Root may open every file for writing; those without a permission to write are not written by that.
    others = r"-not -regex '/proc/([0-9]+|self|thread-self)(/.*)?' -type f -perm /222 -writable"
    find = f"find /proc -maxdepth 3 -regextype posix-extended {others}"
    # What Docker hides is the null device. To open a file is enough, and changes nothing.
    opened = f"{find} 2>/dev/null | while read -r file; do [ -c $file ] || {{ : >> $file; }} && [ ! -c $file ] && echo $file; done"
    for user in ("user", "root"):
        assert api.run(sandbox, f"({opened}) 2>/dev/null; true", user=user)["stdout"].split() == [], user
