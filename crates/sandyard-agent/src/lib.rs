//! The first process of every sandbox: processes, terminals, files, watches and ports.
