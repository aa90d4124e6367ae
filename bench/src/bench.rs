//! The bench itself: starts the servers, measures them in rounds, shows what it found.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tempfile::TempDir;
use tokio::runtime::Builder;
use tollgate_bench::load::{Answers, HttpLoad, QuicLoad, Volume, one_answer, whole_answer};

use crate::{
    arguments::{BenchOptions, Scope},
    children::Server,
    cluster::{self, Cluster},
    processor::Cores,
    report::Findings,
    rounds::{self, Contestant, Load, Subject},
    yardstick::{self, Listening},
};

const HTTP_CONNECTIONS: usize = 32;
const QUIC_CONNECTIONS: usize = 8;
const QUIC_IN_FLIGHT: usize = 64;
/// Keys that are checked in turn.
const KEYS: usize = 4096;
/// The same where an owner has to be asked for.
const KEYS_OF_ONE_NODE: usize = 512;
/// What the yardsticks answer when there is no program to take an answer from.
const SAMPLE_ANSWER: &[u8] = include_bytes!("sample_answer.http");
const SAMPLE_QUIC_ANSWER_BYTES: usize = 90;

/// Runs the bench.
pub(crate) fn run(options: &BenchOptions) -> anyhow::Result<()> {
    let cores = Cores::divide()?;
    cores.enter_load()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let measurements = runtime.block_on(measure(options, &cores))?;
    let findings = Findings::new(cores.are_apart(), measurements);
    if options.json {
        findings.print_json()
    } else {
        findings.print_table()
    }
}

async fn measure(
    options: &BenchOptions,
    cores: &Cores,
) -> anyhow::Result<Vec<rounds::Measurement>> {
    let scratch = TempDir::new()?;
    let program = program(options, &env::current_exe()?.with_file_name("tollgate"))?;
    let clusters = match &program {
        Some(program) => Some(Clusters::start(cores, program, scratch.path()).await?),
        None => None,
    };
    let yardsticks = Yardsticks::start(cores, scratch.path(), clusters.as_ref()).await?;
    let contestants = contestants(&yardsticks, clusters.as_ref())?;
    rounds::run(&contestants, options).await
}

/// The program to measure: as told, else the one beside this; none if only yardsticks are wanted.
fn program(options: &BenchOptions, beside: &Path) -> anyhow::Result<Option<PathBuf>> {
    if options.scope == Scope::Yardsticks {
        return Ok(None);
    }
    if let Some(program) = &options.program {
        return Ok(Some(program.clone()));
    }
    anyhow::ensure!(
        beside.exists(),
        "{} is not there; build it with `cargo build --release -p tollgate`, or name it with \
         --program, or measure the yardsticks alone with --scope yardsticks",
        beside.display()
    );
    Ok(Some(beside.to_owned()))
}

/// One node alone, and two nodes with keys of each.
struct Clusters {
    one: Cluster,
    two: Cluster,
    local_keys: Vec<String>,
    remote_keys: Vec<String>,
}

impl Clusters {
    async fn start(cores: &Cores, program: &Path, scratch: &Path) -> anyhow::Result<Self> {
        let one = Cluster::start(cores, program, 1, scratch)?;
        let two = Cluster::start(cores, program, 2, scratch)?;
        let [entry, other] = two.nodes.as_slice() else {
            anyhow::bail!("not two nodes");
        };
        let local_keys = two.keys_of(entry, KEYS_OF_ONE_NODE).await?;
        let remote_keys = two.keys_of(other, KEYS_OF_ONE_NODE).await?;
        Ok(Self {
            one,
            two,
            local_keys,
            remote_keys,
        })
    }

    /// A check on one of the clusters over QUIC.
    fn quic_load(cluster: &Cluster, keys: &[String]) -> anyhow::Result<QuicLoad> {
        let bodies: anyhow::Result<Vec<Vec<u8>>> =
            keys.iter().map(|key| cluster::quic_check(key)).collect();
        Ok(QuicLoad {
            address: cluster.nodes.first().context("no nodes")?.quic,
            server_name: "localhost".to_owned(),
            config: cluster.quic_config()?,
            bodies: bodies?.into(),
            connections: QUIC_CONNECTIONS,
            in_flight: QUIC_IN_FLIGHT,
            answers: Answers::Decisions,
            volume: Volume::Requests(0),
        })
    }
}

/// The two yardsticks, which answer as many bytes as the program does.
struct Yardsticks {
    http: (Server, Listening),
    quic: (Server, Listening),
}

impl Yardsticks {
    async fn start(
        cores: &Cores,
        scratch: &Path,
        clusters: Option<&Clusters>,
    ) -> anyhow::Result<Self> {
        let (mut answer, mut quic_bytes) = (SAMPLE_ANSWER.to_vec(), SAMPLE_QUIC_ANSWER_BYTES);
        if let Some(clusters) = clusters {
            let node = clusters.one.nodes.first().context("no nodes")?;
            let (head, body) =
                whole_answer(node.http()?, &cluster::http_check(&cluster::key(0))).await?;
            answer = [head, body].concat();
            let load = Clusters::quic_load(&clusters.one, &[cluster::key(0)])?;
            let body = load.bodies.first().context("no check")?;
            let answer = one_answer(load.address, &load.server_name, load.config, body).await?;
            quic_bytes = answer.len();
        }
        let path = scratch.join("answer.http");
        fs::write(&path, answer)?;
        Ok(Self {
            http: start_yardstick(cores, "yardstick-http", "--answer", path.as_os_str())?,
            quic: start_yardstick(
                cores,
                "yardstick-quic",
                "--answer-bytes",
                quic_bytes.to_string().as_ref(),
            )?,
        })
    }
}

fn start_yardstick(
    cores: &Cores,
    role: &str,
    option: &str,
    value: &std::ffi::OsStr,
) -> anyhow::Result<(Server, Listening)> {
    let arguments = [role.into(), option.into(), value.to_owned()];
    let (server, line) = Server::start(cores, &env::current_exe()?, &arguments)?;
    let listening =
        serde_json::from_str(&line).with_context(|| format!("{role} printed {line:?}"))?;
    Ok((server, listening))
}

/// Everything that is measured, yardstick and program in turn.
fn contestants(
    yardsticks: &Yardsticks,
    clusters: Option<&Clusters>,
) -> anyhow::Result<Vec<Contestant>> {
    let keys: Vec<String> = (0..KEYS).map(cluster::key).collect();
    let (server, listening) = &yardsticks.http;
    let http = HttpLoad {
        address: listening.address,
        requests: keys.iter().map(|key| cluster::http_check(key)).collect(),
        connections: HTTP_CONNECTIONS,
        volume: Volume::Requests(0),
    };
    let mut contestants = vec![contestant(
        Subject::YardstickHttp,
        vec![server.process()],
        Load::Http(http.clone()),
    )];
    if let Some(Clusters { one, .. }) = clusters {
        let address = one.nodes.first().context("no nodes")?.http()?;
        let load = Load::Http(HttpLoad { address, ..http });
        contestants.push(contestant(Subject::CheckHttp, one.processes(), load));
    }
    let (server, listening) = &yardsticks.quic;
    let bodies: anyhow::Result<Vec<Vec<u8>>> =
        keys.iter().map(|key| cluster::quic_check(key)).collect();
    let echo = QuicLoad {
        address: listening.address,
        server_name: yardstick::quic::SERVER_NAME.to_owned(),
        config: yardstick::quic::client_config(&listening.certificate)?,
        bodies: bodies?.into(),
        connections: QUIC_CONNECTIONS,
        in_flight: QUIC_IN_FLIGHT,
        answers: Answers::Echoes,
        volume: Volume::Requests(0),
    };
    let echo_process = vec![server.process()];
    let yardstick = (Subject::YardstickQuic, Subject::LoneYardstick);
    let [echo, lone_echo] = loaded_and_lone(yardstick, &echo_process, echo);
    contestants.push(echo);
    let mut lone = vec![lone_echo];
    if let Some(Clusters {
        one,
        two,
        local_keys,
        remote_keys,
    }) = clusters
    {
        let load = Load::Quic(Clusters::quic_load(one, &keys)?);
        contestants.push(contestant(Subject::CheckQuic, one.processes(), load));
        for (subjects, keys) in [
            ((Subject::LocalOfTwo, Subject::LoneLocal), local_keys),
            (
                (Subject::ForwardedOfTwo, Subject::LoneForwarded),
                remote_keys,
            ),
        ] {
            let load = Clusters::quic_load(two, keys)?;
            let [loaded, alone] = loaded_and_lone(subjects, &two.processes(), load);
            contestants.push(loaded);
            lone.push(alone);
        }
    }
    contestants.extend(lone);
    Ok(contestants)
}

const fn contestant(subject: Subject, processes: Vec<u32>, load: Load) -> Contestant {
    Contestant {
        subject,
        processes,
        load,
    }
}

/// The same load twice: as it is, and with one frame at a time.
fn loaded_and_lone(
    (loaded, lone): (Subject, Subject),
    processes: &[u32],
    load: QuicLoad,
) -> [Contestant; 2] {
    let one_at_a_time = QuicLoad {
        connections: 1,
        in_flight: 1,
        ..load.clone()
    };
    [
        contestant(loaded, processes.to_vec(), Load::Quic(load)),
        contestant(lone, processes.to_vec(), Load::Quic(one_at_a_time)),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser as _;

    use super::program;
    use crate::arguments::Arguments;

    #[test]
    fn only_who_asks_for_yardsticks_alone_gets_them() {
        let options = |arguments: &[&str]| {
            let all = ["tollgate-bench"].iter().chain(arguments);
            Arguments::try_parse_from(all).unwrap().bench
        };
        let nowhere = Path::new("/nonexistent/tollgate");
        let error = program(&options(&["--smoke"]), nowhere).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cargo build --release -p tollgate")
        );
        let alone = program(&options(&["--scope", "yardsticks"]), nowhere).unwrap();
        assert_eq!(alone, None);
        let there = std::env::current_exe().unwrap();
        assert_eq!(program(&options(&[]), &there).unwrap(), Some(there));
    }
}
