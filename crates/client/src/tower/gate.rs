//! Asks about one request and says what becomes of it.
//!
//! Knows neither the service nor its body. Invariants: ends within the deadline; counts once.

use bytes::Bytes;
use http::{Response, request::Parts};
use tokio::time;

use super::{
    config::LayerConfig,
    rates::RateHeaders,
    refusal,
    statistics::{Counters, Statistics},
};
use crate::{Answer, CheckError, Client, Fault};

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Gate {
    client: Client,
    config: LayerConfig,
    counters: Counters,
}

/// What becomes of a request.
pub(super) enum Passage {
    /// It goes on, and its response gets these headers.
    Pass(RateHeaders),
    /// It is answered with this.
    Refuse(Response<Bytes>),
}

impl Gate {
    pub(super) fn new(client: Client, config: LayerConfig) -> Self {
        Self {
            client,
            config,
            counters: Counters::default(),
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.counters.read()
    }

    /// Asks, at most until the deadline.
    pub(super) async fn ask(&self, request: &Parts) -> Passage {
        let check = self.config.question.check(request);
        let asked = time::timeout(self.config.deadline, self.client.check(&check)).await;
        let deadline = self.config.deadline;
        match asked.unwrap_or(Err(CheckError::DeadlineExceeded { deadline })) {
            Ok(mut answer) => {
                // A limit in shadow is told to operators, never to those whom it would limit.
                answer.limits.retain(|limit| !limit.shadow);
                self.answered(&answer)
            }
            // What the request itself has wrong must not open its limits.
            Err(CheckError::Fault(fault)) if is_of_request(&fault) => {
                self.counters.faults.count();
                Passage::Refuse(refusal::faulty(&fault))
            }
            Err(error) => {
                self.unanswered(&error);
                Passage::Pass(RateHeaders::default())
            }
        }
    }

    fn answered(&self, answer: &Answer) -> Passage {
        let rates = RateHeaders::new(answer, self.config.headers, &self.config.wall_clock);
        if answer.is_allowed() {
            self.counters.allowed.count();
            return Passage::Pass(rates);
        }
        self.counters.refused.count();
        let mut response = refusal::respond(answer);
        rates.put(response.headers_mut());
        Passage::Refuse(response)
    }

    fn unanswered(&self, error: &CheckError) {
        tracing::debug!(%error, "a request passed without an answer");
        match error {
            CheckError::Disconnected { .. }
            | CheckError::ConnectionLost { .. }
            | CheckError::DeadlineExceeded { .. }
            | CheckError::TooManyInFlight { .. } => self.counters.passed_unanswered.count(),
            CheckError::Unsendable(_) | CheckError::Fault(_) => self.counters.faults.count(),
        }
    }
}

/// Whether an attribute is wrong, or one is absent that a limit requires.
fn is_of_request(fault: &Fault) -> bool {
    let field = fault.field.as_deref();
    field.is_some_and(|field| field.starts_with("attributes."))
}
