//! Ratios of what was measured, and how all of it is shown.

mod ratio;

use std::{
    fmt::Write as _,
    io::{Write as _, stderr, stdout},
};

use serde::Serialize;

use self::ratio::Ratio;
use crate::rounds::{Measurement, Subject};

/// All that a bench found.
#[derive(Debug, Serialize)]
pub(crate) struct Findings {
    /// Whether server and load had a core each.
    pub(crate) cores_apart: bool,
    measurements: Vec<Measurement>,
    ratios: Vec<Ratio>,
}

impl Findings {
    pub(crate) fn new(cores_apart: bool, measurements: Vec<Measurement>) -> Self {
        let ratios = ratio::all(&measurements);
        Self {
            cores_apart,
            measurements,
            ratios,
        }
    }

    /// As one line of JSON.
    pub(crate) fn print_json(&self) -> anyhow::Result<()> {
        let mut stdout = stdout();
        serde_json::to_writer(&mut stdout, self)?;
        Ok(writeln!(stdout)?)
    }

    /// As a table: medians over rounds.
    pub(crate) fn print_table(&self) -> anyhow::Result<()> {
        let mut table = String::new();
        if !self.cores_apart {
            writeln!(
                table,
                "Server and load share a core: the figures mean little."
            )?;
        }
        writeln!(
            table,
            "{:<18}{:>11}{:>11}{:>9}{:>9}{:>9}{:>9}{:>10}{:>9}{:>9}",
            "",
            "per second",
            "CPU s/1M",
            "p50 us",
            "p90",
            "p99",
            "p99.9",
            "max",
            "refused",
            "degraded"
        )?;
        for subject in self.subjects() {
            self.put_row(&mut table, subject)?;
        }
        writeln!(table)?;
        for ratio in &self.ratios {
            writeln!(table, "{ratio}")?;
        }
        Ok(stdout().write_all(table.as_bytes())?)
    }

    fn subjects(&self) -> impl Iterator<Item = Subject> {
        let first_round = self.measurements.iter().filter(|one| one.round == 1);
        first_round.map(|one| one.subject)
    }

    fn put_row(&self, table: &mut String, subject: Subject) -> std::fmt::Result {
        let rounds = || {
            self.measurements
                .iter()
                .filter(|one| one.subject == subject)
        };
        let median = |figure: fn(&Measurement) -> f64| ratio::median(rounds().map(figure));
        writeln!(
            table,
            "{:<18}{:>11.0}{:>11.2}{:>9.0}{:>9.0}{:>9.0}{:>9.0}{:>10.0}{:>9}{:>9}",
            subject.name(),
            median(|one| one.per_second),
            median(|one| one.cpu_s_per_million),
            median(|one| one.latency.p50_us),
            median(|one| one.latency.p90_us),
            median(|one| one.latency.p99_us),
            median(|one| one.latency.p99_9_us),
            median(|one| one.latency.max_us),
            rounds().map(|one| one.refused).sum::<u64>(),
            rounds().map(|one| one.degraded).sum::<u64>(),
        )
    }
}

impl Subject {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::YardstickHttp => "bare hyper",
            Self::CheckHttp => "HTTP check",
            Self::YardstickQuic => "bare quinn echo",
            Self::CheckQuic => "QUIC check",
            Self::LocalOfTwo => "local, of 2 nodes",
            Self::ForwardedOfTwo => "forwarded",
            Self::LoneYardstick => "lone echo",
            Self::LoneLocal => "lone local",
            Self::LoneForwarded => "lone forwarded",
        }
    }
}

/// Says on standard error what is being measured.
pub(crate) fn progress(round: u8, rounds: u8, subject: Subject) {
    say(&format!("round {round} of {rounds}: {}", subject.name()));
}

/// Says on standard error what went wrong.
pub(crate) fn complain(error: &anyhow::Error) {
    say(&format!("tollgate-bench: {error:#}"));
}

/// Says something on standard error. When that is closed, nobody wants to know.
pub(crate) fn say(line: &str) {
    drop(writeln!(stderr(), "{line}"));
}
