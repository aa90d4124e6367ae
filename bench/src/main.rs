//! Whole-program bench.
fn main() {}
