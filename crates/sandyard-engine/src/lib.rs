//! Namespaces, mounts and the launcher: the kernel work behind a sandbox.
