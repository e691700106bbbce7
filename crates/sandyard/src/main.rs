//! The Sandyard program.
fn main() {}
