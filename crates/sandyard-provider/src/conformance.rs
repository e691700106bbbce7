//! What must be true of every provider.
