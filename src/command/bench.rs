//! `tollgate bench`: load on a running cluster, with latency percentiles.
//!
//! The load generators are those of the project's own bench. Closed loop: a fixed number of checks in
//! flight.

use std::{fmt, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use serde::Serialize;
use tokio::net::lookup_host;
use tollgate_bench::load::{
    Answers, HttpLoad, LatencySummary, LoadError, QuicLoad, Report, Volume, http_request, run_http,
    run_quic,
};
use tollgate_client::{Check, ClientConfig, Credentials, Pairs, Subject, Trust};
use tollgate_wire::client::put_check;

use super::{Exit, Failure, answers::CheckBody, files};
use crate::{
    arguments::BenchArguments,
    output::{self, Table},
    progress,
};

pub(super) async fn run(arguments: BenchArguments) -> Result<Exit, Failure> {
    let seconds = arguments.seconds;
    let say = || format!("{seconds} s of load");
    let report = match arguments.quic {
        Some(address) => progress::shown(run_quic(quic_load(address, &arguments)?), say).await,
        None => progress::shown(run_http(http_load(&arguments).await?), say).await,
    };
    let report = report.map_err(|error| failed(&error))?;
    let summary = Summary::of(&report);
    if arguments.json {
        output::json(&summary)?;
    } else {
        output::line(summary)?;
    }
    Ok(Exit::Done)
}

async fn http_load(arguments: &BenchArguments) -> Result<HttpLoad, Failure> {
    let unknown = |reason: &dyn fmt::Display| Failure::Usage(format!("{}: {reason}", arguments.to));
    let mut addresses = lookup_host(arguments.to.target())
        .await
        .map_err(|error| unknown(&error))?;
    let requests = (0..arguments.clients).map(|number| {
        let body = CheckBody::new(&arguments.policy, [("ip", client(number))]).bytes();
        http_request("POST", "/v1/check", &String::from_utf8_lossy(&body))
    });
    Ok(HttpLoad {
        address: addresses
            .next()
            .ok_or_else(|| unknown(&"the name has no address"))?,
        requests: requests.collect::<Vec<Bytes>>().into(),
        connections: usize::from(arguments.connections.unwrap_or(32)),
        volume: Volume::For(std::time::Duration::from_secs(arguments.seconds.into())),
    })
}

fn quic_load(address: SocketAddr, arguments: &BenchArguments) -> Result<QuicLoad, Failure> {
    let refused = |error: &dyn fmt::Display| Failure::Usage(error.to_string());
    let authority = arguments.authority.as_deref();
    let authority = authority.ok_or_else(|| refused(&"--quic needs --authority FILE"))?;
    let trust = Trust::from_pem(files::read(authority)?.as_bytes());
    let trust = trust.map_err(|error| refused(&error))?;
    let mut config = ClientConfig::new(&arguments.cluster, Vec::new(), trust);
    if let (Some(certificate), Some(key)) = (&arguments.certificate, &arguments.key) {
        let (certificate, key) = (files::read(certificate)?, files::read(key)?);
        let credentials = Credentials::from_pem(certificate.as_bytes(), key.as_bytes());
        config.credentials = Some(credentials.map_err(|error| refused(&error))?);
    }
    let bodies: Result<Vec<_>, _> = (0..arguments.clients)
        .map(|number| {
            let mut body = Vec::new();
            let check = Check {
                subject: Subject::Policy {
                    name: arguments.policy.as_str().into(),
                    attributes: Pairs::from_iter([("ip", client(number))]),
                },
                cost: 1,
                peek: false,
            };
            put_check(&mut body, &check).map(|()| body)
        })
        .collect();
    Ok(QuicLoad {
        address,
        server_name: arguments.cluster.clone(),
        config: config.quic().map_err(|error| refused(&error))?,
        bodies: Arc::from(bodies.map_err(|error| refused(&error))?),
        connections: usize::from(arguments.connections.unwrap_or(1)),
        in_flight: usize::from(arguments.in_flight),
        answers: Answers::Decisions,
        volume: Volume::For(std::time::Duration::from_secs(arguments.seconds.into())),
    })
}

/// The client of that number.
fn client(number: u32) -> String {
    let [_, high, middle, low] = number.to_be_bytes();
    format!("10.{high}.{middle}.{low}")
}

/// An error and what caused it.
fn failed(error: &LoadError) -> Failure {
    let cause = std::error::Error::source(error);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::Runtime(format!("{error}{cause}"))
}

/// What a load found.
#[derive(Debug, Serialize)]
struct Summary {
    answered: u64,
    seconds: f64,
    per_second: f64,
    inspected: u64,
    refused: u64,
    degraded: u64,
    latency: LatencySummary,
}

impl Summary {
    fn of(report: &Report) -> Self {
        Self {
            answered: report.answered,
            seconds: report.elapsed.as_secs_f64(),
            per_second: report.per_second(),
            inspected: report.inspected,
            refused: report.refused,
            degraded: report.degraded,
            latency: report.latencies.summary(),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::default();
        table.row(["answered".to_owned(), self.answered.to_string()]);
        table.row(["per second".to_owned(), format!("{:.0}", self.per_second)]);
        let of = format!("of {} looked at", self.inspected);
        table.row([format!("refused, {of}"), self.refused.to_string()]);
        table.row([format!("degraded, {of}"), self.degraded.to_string()]);
        for (name, micros) in [
            ("50 %", self.latency.p50_us),
            ("90 %", self.latency.p90_us),
            ("99 %", self.latency.p99_us),
            ("99.9 %", self.latency.p99_9_us),
            ("slowest", self.latency.max_us),
        ] {
            table.row([name.to_owned(), format!("{:.3} ms", micros / 1000.0)]);
        }
        table.fmt(f)
    }
}
