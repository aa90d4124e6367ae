//! Give-backs: charges of a refused check that return to their owners, once each.
//!
//! Rule 5: the entry node repeats a give-back until it is acknowledged or the limit's window has
//! passed; the owner tells repetitions by number. Where it fails the error is towards refusing.

mod queue;
mod window;

pub use self::{
    queue::{GiveBackQueue, QueueFull},
    window::{Acceptance, GIVE_BACK_WINDOW, GiveBackWindow},
};
