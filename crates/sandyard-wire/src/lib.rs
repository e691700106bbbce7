//! The agent protocol: messages, framing and signatures. No I/O.
