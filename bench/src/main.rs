//! Prints the performance table.
fn main() {}
