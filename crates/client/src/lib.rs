//! The Rust client of Tollgate, over QUIC.
//!
//! A [`Client`] keeps one connection to one node of a cluster and any number of checks in flight on
//! it. Checks that are asked at the same time leave in one write; a lone one waits for nobody. When
//! the connection is lost the client dials the next node by itself. Must not know how a node decides:
//! it depends on what is said (`tollgate-wire`) and on quinn. Invariants: every check ends by its
//! deadline; every queue is bounded; one timer serves all checks in flight.
//!
//! ```no_run
//! # use tollgate_client::{Check, Client, ClientConfig, Pairs, Subject, Trust};
//! # async fn ask(ca_pem: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let trust = Trust::from_pem(ca_pem)?;
//! let config = ClientConfig::new("production", vec!["127.0.0.1:7601".parse()?], trust);
//! let client = Client::start(config)?;
//! let check = Check {
//!     subject: Subject::Policy {
//!         name: "default".into(),
//!         attributes: Pairs::from_iter([("ip", "203.0.113.7")]),
//!     },
//!     cost: 1,
//!     peek: false,
//! };
//! match client.check(&check).await {
//!     Ok(answer) if !answer.is_allowed() => { /* refuse */ }
//!     Ok(_) | Err(_) => { /* serve: no answer is no reason to refuse */ }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `tower` there is a layer that asks before each request of a service.

mod backoff;
mod calls;
mod client;
mod clock;
mod config;
mod credentials;
mod error;
mod link;
mod shared;
mod tls;
#[cfg(feature = "tower")]
pub mod tower;

pub use tollgate_wire::client::{
    Algorithm, Answer, CalendarUnit, Check, Fallback, Fault, FaultKind, InlineAlgorithm,
    InlineLimit, LimitAnswer, Pairs, Subject,
};

pub use self::{
    backoff::{Backoff, Next, RetryPolicy, Setback},
    client::Client,
    config::{ClientConfig, ConfigError},
    credentials::{Credentials, PemError, Trust},
    error::CheckError,
};
