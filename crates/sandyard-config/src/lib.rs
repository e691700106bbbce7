//! Settings: from flags, environment and file, checked, and their reference.
#![forbid(unsafe_code)]
