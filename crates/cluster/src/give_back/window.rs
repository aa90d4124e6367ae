//! Window skeleton.

/// How many sequence numbers back a give-back is still told from its repetition.
pub const GIVE_BACK_WINDOW: usize = 1_024;

/// What to do with a give-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It is new: give back, and acknowledge.
    Fresh,
    /// It was done before: acknowledge only.
    Repeated,
    /// It may have been done before: acknowledge only.
    TooOld,
}

/// The owner's memory of the give-backs of one entry boot.
#[derive(Clone, Debug)]
pub struct GiveBackWindow {}

impl GiveBackWindow {
    /// No give-back yet.
    #[must_use]
    pub fn new() -> Self {
        todo!()
    }
    /// A give-back has come.
    pub fn accept(&mut self, _sequence: u64) -> Acceptance {
        todo!()
    }
}

impl Default for GiveBackWindow {
    fn default() -> Self {
        Self::new()
    }
}
