//! Decided skeleton.
use tollgate_limit::{Nanos, Verdict};
use tollgate_wire::identity::BootId;

/// The most entry boots that verdicts are kept for.
pub const MAX_BOOTS: usize = 1_024;
/// The places of a new ring.
pub const MIN_RING: usize = 256;
/// The most places of a ring.
pub const MAX_RING: usize = 65_536;

/// The latest verdicts for one entry boot.
#[derive(Debug)]
pub struct DecidedRing {}

impl DecidedRing {
    /// An empty ring; verdicts are kept for `keep`: two check deadlines.
    #[must_use]
    pub fn new(_keep: Nanos) -> Self {
        todo!()
    }
    /// What was decided under this number.
    #[must_use]
    pub fn verdicts(&self, _number: u64) -> Option<&[Verdict]> {
        todo!()
    }
    /// Keeps what was decided.
    pub fn record(&mut self, _now: Nanos, _number: u64, _verdicts: &[Verdict]) {
        todo!()
    }
    /// Whether nothing was recorded for `keep`.
    #[must_use]
    pub fn is_idle(&self, _now: Nanos) -> bool {
        todo!()
    }
}

/// The rings of all entry boots.
#[derive(Debug)]
pub struct Decided {}

impl Decided {
    /// No boot yet.
    #[must_use]
    pub fn new(_keep: Nanos) -> Self {
        todo!()
    }
    /// What was decided for this boot under this number.
    #[must_use]
    pub fn verdicts(&self, _boot: BootId, _number: u64) -> Option<&[Verdict]> {
        todo!()
    }
    /// Keeps what was decided.
    pub fn record(&mut self, _now: Nanos, _boot: BootId, _number: u64, _verdicts: &[Verdict]) {
        todo!()
    }
    /// Forgets boots that were idle for `keep`.
    pub fn sweep(&mut self, _now: Nanos) {
        todo!()
    }
}
