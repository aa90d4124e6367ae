//! Asking the seeds.
use super::copy::Copied;
/// What one round of asking seeds found.
#[derive(Debug)]
pub(super) struct Sought {
    pub(super) found: Vec<Copied>,
}
