//! Who asks: HTTP, and the client protocol over any byte stream.
//!
//! One check is one pass: parse, ask the [`Checker`], render; the only wait is the checker's own. What
//! decides and what runs the cluster is seen through two traits alone, [`Checker`] and [`Operator`].
//! Must not know of placement, peers, quinn or TLS, and reads no clock: time comes from the checker.

mod checker;
mod client_stream;
pub mod duration;
#[cfg(test)]
mod fakes;
mod families;
mod fault;
mod http;
mod operator;

pub use self::{
    checker::{Acted, Checked, Checker},
    client_stream::{MAX_WAITING, StreamError, serve_stream},
    families::{FamiliesCollide, Family, HeaderFamilies},
    http::{Http, HttpConfig, MAX_BODY, MAX_CHECKS, Reach, ServeError, Token, TokenError, serve},
    operator::{
        Breaker, ClusterView, CounterError, CounterQuery, CounterView, FollowerMetrics,
        LatencyHistogram, LimitMetrics, MemberView, MetricsSnapshot, MotionView, Operator,
        OwnerMetrics, PeerMetrics, PolicyMetrics, Readiness, ReplicaMetrics, StoreMetrics, Switch,
        Switches,
    },
};
