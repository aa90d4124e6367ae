//! The ids of an answer: receipts of what was charged, sealed straight into its buffer.
//!
//! No node remembers the checks that it answered: what an id must tell to whoever acts on it later stands
//! in the id itself. Invariant: an id is `[A-Za-z0-9_-]`, so that it needs no escaping.

use bytes::BytesMut;
use tollgate_limit::{CheckId, Cost, Decision, HashKey, Nanos};
use tollgate_wire::receipt::{self, Contents};

use super::body::text;
use crate::checker::Checker;

/// What ids are sealed with.
#[derive(Clone, Copy)]
pub(in crate::http) struct Sealing<'a> {
    key: &'a HashKey,
    /// When the checks were answered, in Unix seconds.
    made: u64,
}

impl<'a> Sealing<'a> {
    /// That of checks that are answered at `now`.
    pub(in crate::http) fn at<C: Checker>(now: Nanos, checker: &'a C) -> Self {
        Self {
            key: checker.receipt_key(),
            made: checker.wall_seconds(now),
        }
    }

    /// Appends the id of a check: all that it charged.
    pub(super) fn write_id(self, out: &mut BytesMut, decision: &Decision) {
        self.write(out, decision, Contents::All);
    }

    /// Appends the member that holds the permits of an admitted check; nothing if it took none.
    pub(super) fn write_permit_id(self, out: &mut BytesMut, decision: &Decision) {
        let mut limits = decision.limits.iter();
        let took = limits.any(|one| one.limit.is_concurrency() && one.charged > Cost::ZERO);
        if took && decision.is_allowed() {
            text(out, ",\"permit_id\":\"");
            self.write(out, decision, Contents::Permits);
            text(out, "\"");
        }
    }

    fn write(self, out: &mut BytesMut, decision: &Decision, contents: Contents) {
        let write = |sealed: &str| text(out, sealed);
        if receipt::seal(decision, contents, self.made, self.key, write).is_err() {
            debug_assert!(false, "a policy has fewer limits than a receipt holds");
            write_short(out, decision.id);
        }
    }
}

/// An id that names the check and nothing else.
fn write_short(out: &mut BytesMut, id: CheckId) {
    text(out, &id.to_string());
}
