//! Amendments: changes of counters that reach their owners once each, such as the charge of a refused
//! check that goes back.
//!
//! Rule 5: the entry node repeats an amendment until it is acknowledged or until what it would change has
//! left the counter anyway; the owner tells repetitions by number. Where a give-back fails the error is
//! towards refusing.

mod life;
mod queue;
mod window;

pub use self::{
    queue::{AmendQueue, Amendment, QueueFull, Returned},
    window::{AMEND_WINDOW, Acceptance, AmendWindow},
};
