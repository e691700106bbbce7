"""How a new start of a sandbox is told from one that was only frozen."""

import providers

# Prints another text after every start. Containers have the boot id of their host, but their first process is a new one.
BOOT = "cut -d' ' -f22 /proc/1/stat" if providers.chosen == "docker" else "cat /proc/sys/kernel/random/boot_id"
