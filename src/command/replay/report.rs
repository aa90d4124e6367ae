//! What became of the checks of a log.
//!
//! Bounds: [`MAX_CLIENTS`] clients are told apart, [`MAX_MESSAGES`] messages of errors are kept.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use serde::Serialize;

use crate::{
    command::{Exit, Failure, answers::CheckAnswer},
    output::{Table, shown},
};

/// Clients that are told apart; what is refused to more is in the sums alone.
const MAX_CLIENTS: usize = 1 << 20;
/// Messages of errors that are kept.
const MAX_MESSAGES: usize = 5;
/// Clients that are shown.
const SHOWN_CLIENTS: usize = 10;

/// What became of the checks of a log.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Lines that are no access log.
    pub(super) unreadable: u64,
    totals: Totals,
    limits: BTreeMap<String, LimitCount>,
    clients: HashMap<String, ClientCount>,
    messages: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Totals {
    sent: u64,
    admitted: u64,
    refused: u64,
    errors: u64,
    degraded: u64,
    /// Admitted since no limit of the policy applied.
    no_limit_applied: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct LimitCount {
    admitted: u64,
    refused: u64,
    degraded: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ClientCount {
    sent: u64,
    refused: u64,
}

/// A report as a program reads it.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    #[serde(flatten)]
    totals: Totals,
    unreadable: u64,
    seconds: f64,
    limits: Vec<LimitSummary<'a>>,
    most_refused: Vec<ClientSummary<'a>>,
    messages: &'a [String],
}

#[derive(Debug, Serialize)]
struct LimitSummary<'a> {
    name: &'a str,
    #[serde(flatten)]
    count: LimitCount,
}

#[derive(Debug, Serialize)]
struct ClientSummary<'a> {
    client: &'a str,
    sent: u64,
    refused: u64,
}

impl Report {
    /// Counts a check that was answered.
    pub(super) fn answered(&mut self, client: &str, answer: &CheckAnswer) {
        self.totals.sent += 1;
        self.totals.admitted += u64::from(answer.allowed);
        self.totals.refused += u64::from(!answer.allowed);
        self.totals.degraded += u64::from(answer.limits.iter().any(|limit| limit.degraded));
        self.totals.no_limit_applied += u64::from(answer.limits.is_empty());
        for limit in &answer.limits {
            let count = self.limits.entry(limit.name.clone()).or_default();
            count.admitted += u64::from(limit.allowed);
            count.refused += u64::from(!limit.allowed);
            count.degraded += u64::from(limit.degraded);
        }
        if let Some(count) = self.client(client) {
            count.sent += 1;
            count.refused += u64::from(!answer.allowed);
        }
    }

    /// Counts a check that was not answered.
    pub(super) fn failed(&mut self, client: &str, message: String) {
        self.totals.sent += 1;
        self.totals.errors += 1;
        if self.messages.len() < MAX_MESSAGES && !self.messages.contains(&message) {
            self.messages.push(message);
        }
        if let Some(count) = self.client(client) {
            count.sent += 1;
        }
    }

    /// Adds what another lane counted.
    pub(super) fn add(&mut self, other: Self) {
        self.unreadable += other.unreadable;
        self.totals.sent += other.totals.sent;
        self.totals.admitted += other.totals.admitted;
        self.totals.refused += other.totals.refused;
        self.totals.errors += other.totals.errors;
        self.totals.degraded += other.totals.degraded;
        self.totals.no_limit_applied += other.totals.no_limit_applied;
        for (name, theirs) in other.limits {
            let count = self.limits.entry(name).or_default();
            count.admitted += theirs.admitted;
            count.refused += theirs.refused;
            count.degraded += theirs.degraded;
        }
        for (client, theirs) in other.clients {
            if let Some(count) = self.client(&client) {
                count.sent += theirs.sent;
                count.refused += theirs.refused;
            }
        }
        for message in other.messages {
            if self.messages.len() < MAX_MESSAGES && !self.messages.contains(&message) {
                self.messages.push(message);
            }
        }
    }

    /// How the program exits after the replay of that log.
    pub(super) fn exit(&self, log: &impl fmt::Display) -> Result<Exit, Failure> {
        let Totals { sent, errors, .. } = self.totals;
        if sent == 0 {
            return Err(Failure::Usage(format!(
                "{log}: no line is one of an access log; write the common or combined form of \
                 Apache and nginx"
            )));
        }
        if errors > 0 {
            return Err(Failure::Runtime(format!(
                "{errors} of {sent} checks were not answered"
            )));
        }
        Ok(Exit::Done)
    }

    /// The report for a program.
    pub(super) fn summary(&self, elapsed: Duration) -> Summary<'_> {
        let limits = self.limits.iter().map(|(name, count)| LimitSummary {
            name,
            count: *count,
        });
        Summary {
            totals: self.totals,
            unreadable: self.unreadable,
            seconds: elapsed.as_secs_f64(),
            limits: limits.collect(),
            most_refused: self.most_refused(),
            messages: &self.messages,
        }
    }

    /// The report for people.
    pub(super) fn table(&self, elapsed: Duration) -> impl fmt::Display {
        let mut sections = vec![self.totals_table(elapsed)];
        let mut limits = Table::default();
        limits.row(["limit", "admitted", "refused", "degraded"]);
        for (name, count) in &self.limits {
            limits.row([
                name,
                &*shown(count.admitted),
                &shown(count.refused),
                &shown(count.degraded),
            ]);
        }
        let mut clients = Table::default();
        clients.row(["most refused", "sent", "refused"]);
        for client in self.most_refused() {
            clients.row([client.client, &shown(client.sent), &shown(client.refused)]);
        }
        sections.extend(
            [limits, clients]
                .into_iter()
                .filter(|table| !table.is_bare()),
        );
        let mut texts: Vec<String> = sections.iter().map(Table::to_string).collect();
        texts.extend(
            self.messages
                .iter()
                .map(|message| format!("error: {message}")),
        );
        texts.join("\n\n")
    }

    fn totals_table(&self, elapsed: Duration) -> Table {
        let mut table = Table::default();
        for (name, count) in [
            ("sent", self.totals.sent),
            ("admitted", self.totals.admitted),
            ("refused", self.totals.refused),
            ("errors", self.totals.errors),
            ("degraded", self.totals.degraded),
        ] {
            table.row([name.to_owned(), shown(count)]);
        }
        if self.totals.no_limit_applied > 0 {
            let count = shown(self.totals.no_limit_applied);
            table.row(["no limit applied".to_owned(), count]);
        }
        if self.unreadable > 0 {
            table.row(["unreadable lines".to_owned(), shown(self.unreadable)]);
        }
        table.row([
            "seconds".to_owned(),
            format!("{:.1}", elapsed.as_secs_f64()),
        ]);
        table
    }

    fn client(&mut self, client: &str) -> Option<&mut ClientCount> {
        if !self.clients.contains_key(client) {
            if self.clients.len() >= MAX_CLIENTS {
                return None;
            }
            self.clients
                .insert(client.to_owned(), ClientCount::default());
        }
        self.clients.get_mut(client)
    }

    fn most_refused(&self) -> Vec<ClientSummary<'_>> {
        let refused = self.clients.iter().filter(|(_, count)| count.refused > 0);
        let mut sorted: Vec<_> = refused
            .map(|(client, count)| ClientSummary {
                client,
                sent: count.sent,
                refused: count.refused,
            })
            .collect();
        sorted.sort_unstable_by(|one, other| {
            let more = other.refused.cmp(&one.refused);
            more.then_with(|| one.client.cmp(other.client))
        });
        sorted.truncate(SHOWN_CLIENTS);
        sorted
    }
}
