//! Who decides: identity, placement, membership rules, routing, retry, breaker and fallback.
//!
//! Pure state machines: events go in by `handle_*`, actions come out by return values and `poll_*`.
//! `now` is an instant of one monotonic clock, handed in. This crate must not know of sockets, tasks,
//! timers, clocks or randomness, nor of the gossip library and the bytes of messages.
//!
//! Invariants, by name: INV-SAME-PLACEMENT ([`Placement`]), INV-ONE-SELF ([`Membership`]),
//! INV-LATE-COUNTS-NOTHING ([`PauseWatch`]), INV-DECIDED-ONCE ([`DecidedRing`]), INV-GIVEN-BACK-ONCE
//! ([`AmendWindow`]), INV-REFUSAL-KEEPS-NOTHING ([`Settlement`]), INV-DENIAL-SOUND ([`Denials`]),
//! INV-SWITCHES-CONVERGE ([`SwitchBoard`]), INV-OWED-UNTIL-ACKNOWLEDGED ([`Reports`]).

#![warn(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::float_arithmetic,
    clippy::indexing_slicing
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "a test may panic, and its build checks every operator"
    )
)]

mod amend;
mod breaker;
mod decided;
mod denials;
mod fallback;
mod in_flight;
mod joining;
mod key_map;
mod membership;
mod motion;
mod name;
mod pause;
mod placement;
mod plan;
mod replica;
mod reports;
mod retry;
pub mod sabotage;
mod settle;
mod standby;
mod switches;

pub use self::{
    amend::{AMEND_WINDOW, Acceptance, AmendQueue, AmendWindow, Amendment, QueueFull, Returned},
    breaker::{Breaker, Opening, PING_INTERVAL, TIMEOUTS_IN_A_ROW, Turn},
    decided::{DecidedRing, MAX_RING, MIN_RING},
    denials::{Denials, KEPT_AT_MOST, Known, MAX_DENIALS, ProbeTicket},
    fallback::{LastAnswers, MAX_LAST_ANSWERS, Substitute, UNDECIDED_RETRY_AFTER, substitute_for},
    in_flight::{Full, InFlight, MAX_IN_FLIGHT, Pending},
    joining::{JOIN_TIMEOUT, JoinNews, Joining, REFUSED_AGAIN_AFTER, Seeds, WARM_TIMEOUT},
    membership::{Change, GRACE, Gone, MemberState, MemberView, Membership, VETO},
    motion::{FORGET_AFTER, HOLD, Hold, Motion, MotionAction, MotionView, RETRY, SlotStates},
    name::{ClusterName, Role, cluster_fingerprint},
    pause::{HEARTBEAT, Pause, PauseWatch},
    placement::{MAX_MEMBERS, Member, MemberIndex, Placement},
    plan::{Group, Indices, Place, Plan},
    replica::{MAX_QUEUED, Source, TakenIn, take_in},
    reports::{
        MAX_KEPT, MAX_REPORTS, OwedSlots, REPORT_INTERVAL, REPORT_SLOTS, REPORT_TIMEOUT, Report,
        ReportTo, Reports,
    },
    retry::{Attempts, Failure, LEAST_TIME_TO_ASK, NewestOwner, NextStep, next_step, stand_in},
    settle::{Answer, GiveBackTo, Settled, Settlement, Step},
    standby::{AskedAs, Behind, Course},
    switches::{Switch, SwitchBoard},
};
