//! Measures servers in interleaved rounds, so that what else the machine does falls on all of them.

use serde::Serialize;
use tollgate_bench::load::{
    HttpLoad, LatencySummary, LoadError, QuicLoad, Report, Volume, run_http, run_quic,
};

use crate::{arguments::BenchOptions, processor::cpu_seconds, report};

/// The most requests of a smoke run for each that is in flight.
const REQUESTS_PER_PLACE: u64 = 200;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// The bare hyper server.
    YardstickHttp,
    /// Checks over HTTP on one node.
    CheckHttp,
    /// The bare quinn echo.
    YardstickQuic,
    /// Checks over QUIC on one node.
    CheckQuic,
    /// Checks over QUIC on two nodes, of keys that the asked node owns.
    LocalOfTwo,
    /// Checks over QUIC on two nodes, of keys that the other node owns.
    ForwardedOfTwo,
    /// The bare quinn echo, one frame at a time.
    LoneYardstick,
    /// As `LocalOfTwo`, one check at a time.
    LoneLocal,
    /// As `ForwardedOfTwo`, one check at a time.
    LoneForwarded,
}

/// One server under one load.
#[derive(Debug)]
pub(crate) struct Contestant {
    pub(crate) subject: Subject,
    /// Whose processor time counts.
    pub(crate) processes: Vec<u32>,
    pub(crate) load: Load,
}

/// A load.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    Http(HttpLoad),
    Quic(QuicLoad),
}

/// What one contestant did in one round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measurement {
    pub(crate) subject: Subject,
    pub(crate) round: u8,
    pub(crate) answered: u64,
    pub(crate) inspected: u64,
    pub(crate) refused: u64,
    pub(crate) degraded: u64,
    pub(crate) per_second: f64,
    /// Processor time that the servers used under this load, in seconds.
    pub(crate) cpu_s: f64,
    /// The same for a million requests.
    pub(crate) cpu_s_per_million: f64,
    pub(crate) latency: LatencySummary,
}

/// Measures each contestant once in each round.
pub(crate) async fn run(
    contestants: &[Contestant],
    options: &BenchOptions,
) -> anyhow::Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for round in 1..=options.rounds() {
        for contestant in contestants {
            report::progress(round, options.rounds(), contestant.subject);
            contestant.load.run(options.warm_up()).await?;
            let before = cpu_seconds(&contestant.processes)?;
            let report = contestant.load.run(options.volume()).await?;
            let cpu_s = cpu_seconds(&contestant.processes)? - before;
            measurements.push(Measurement::new(contestant.subject, round, cpu_s, &report));
        }
    }
    Ok(measurements)
}

impl Load {
    async fn run(&self, volume: Volume) -> Result<Report, LoadError> {
        let volume = match volume {
            Volume::Requests(requests) => Volume::Requests(requests.min(self.enough())),
            Volume::For(_) => volume,
        };
        match self.clone() {
            Self::Http(load) => run_http(HttpLoad { volume, ..load }).await,
            Self::Quic(load) => run_quic(QuicLoad { volume, ..load }).await,
        }
    }

    /// Requests that show that it works: fewer when they go one by one.
    fn enough(&self) -> u64 {
        let in_flight = match self {
            Self::Http(load) => load.connections,
            Self::Quic(load) => load.connections.saturating_mul(load.in_flight),
        };
        REQUESTS_PER_PLACE.saturating_mul(u64::try_from(in_flight).unwrap_or(u64::MAX))
    }
}

impl Measurement {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 answers")]
    fn new(subject: Subject, round: u8, cpu_s: f64, report: &Report) -> Self {
        Self {
            subject,
            round,
            answered: report.answered,
            inspected: report.inspected,
            refused: report.refused,
            degraded: report.degraded,
            per_second: report.per_second(),
            cpu_s,
            cpu_s_per_million: cpu_s * 1e6 / (report.answered.max(1) as f64),
            latency: report.latencies.summary(),
        }
    }
}
