//! Who is asking: passwords, tokens, keys, roles, scopes, lock-out, signed links.
#![forbid(unsafe_code)]
