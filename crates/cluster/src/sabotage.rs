//! Sabotage: rules that can be broken on purpose, so that the simulator can show that it notices.
//!
//! Each rule asks where it lives whether it is broken. Without the feature `sabotage` the answer is a
//! constant, and nothing of this is left in the program. Knows nothing of what the rules do.

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sabotage {
    /// A source forgets what it handed over without waiting for the acknowledgement.
    DeleteBeforeAck,
    /// Nothing is replicated: a standby never gets a copy.
    NoReplication,
    /// A series that comes twice counts twice.
    MergeTwice,
    /// A series that is newer by what was given back counts as before.
    MergeUndoesRefund,
    /// A standby decides on its copy though it could reach the owner.
    StandbyNeverRelays,
    /// A check that comes twice is decided twice.
    RepeatDecidedTwice,
    /// A node that was paused counts what waited.
    PausedNodeCounts,
    /// Known denials outlive a refund by seconds.
    DenialsKeptAfterRefund,
    /// A joining node decides in the slots to come before it has their counts.
    JoiningNodeOwns,
    /// The last word on a slot is said after checks were sent on to its new owner.
    FinalAfterRedirect,
}

impl Sabotage {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::DeleteBeforeAck,
        Self::NoReplication,
        Self::MergeTwice,
        Self::MergeUndoesRefund,
        Self::StandbyNeverRelays,
        Self::RepeatDecidedTwice,
        Self::PausedNodeCounts,
        Self::DenialsKeptAfterRefund,
        Self::JoiningNodeOwns,
        Self::FinalAfterRedirect,
    ];
}

#[cfg(feature = "sabotage")]
mod switch {
    use std::cell::Cell;

    use super::Sabotage;

    thread_local! {
        static BROKEN: Cell<Option<Sabotage>> = const { Cell::new(None) };
    }

    /// Breaks one rule, or none, on this thread from here on.
    pub fn set(broken: Option<Sabotage>) {
        BROKEN.set(broken);
    }

    /// Whether this rule is broken on this thread.
    #[must_use]
    pub fn is(rule: Sabotage) -> bool {
        BROKEN.get() == Some(rule)
    }
}

#[cfg(not(feature = "sabotage"))]
mod switch {
    use super::Sabotage;

    /// Whether this rule is broken: it is not.
    #[must_use]
    pub const fn is(rule: Sabotage) -> bool {
        let _ = rule;
        false
    }
}

pub use self::switch::is;
#[cfg(feature = "sabotage")]
pub use self::switch::set;
