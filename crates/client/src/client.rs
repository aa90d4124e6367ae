//! The client: what callers hold.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rand::{
    Rng as _, SeedableRng as _,
    rngs::{StdRng, SysRng},
};
use rustls_pki_types::DnsName;
use tokio::{runtime::Handle, sync::oneshot, task::AbortHandle, time};
use tollgate_wire::client::{Answer, Check};

use crate::{
    backoff::{Backoff, Next, RetryPolicy, Setback},
    clock,
    config::{ClientConfig, ConfigError},
    error::CheckError,
    link::{self, Dialler},
    shared::Shared,
    tls,
};

/// The server name where the cluster's is no DNS name.
const DEFAULT_SERVER_NAME: &str = "tollgate";

/// A client of one cluster. Cheap to clone; all clones share the connection, which ends with the
/// last of them.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    random: Arc<Mutex<StdRng>>,
    _link: Arc<Link>,
}

/// The task that keeps the connection.
#[derive(Debug)]
struct Link(AbortHandle);

impl Drop for Link {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Client {
    /// Starts a client on the current tokio runtime. Returns at once, before it is
    /// [connected](Self::connected).
    ///
    /// # Errors
    /// [`ConfigError`]: nothing was started.
    pub fn start(config: ClientConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let runtime = Handle::try_current().map_err(|_error| ConfigError::NoRuntime)?;
        let quic = tls::quic_config(&config)?;
        let name = server_name(&config)?;
        let mut random = match config.seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::try_from_rng(&mut SysRng).map_err(std::io::Error::other)?,
        };
        let shared = Arc::new(Shared::new(config.deadline, config.max_in_flight));
        let dialler = Dialler::new(quic, config.servers, name)?;
        let of_link = random.fork();
        let task = runtime.spawn(link::run(Arc::clone(&shared), dialler, of_link));
        Ok(Self {
            shared,
            random: Arc::new(Mutex::new(random)),
            _link: Arc::new(Link(task.abort_handle())),
        })
    }

    /// Waits until the client is connected, at most `within`.
    ///
    /// # Errors
    /// [`CheckError::Disconnected`] says why it is not; it goes on dialling.
    pub async fn connected(&self, within: Duration) -> Result<(), CheckError> {
        let waited = time::timeout(within, self.shared.connected()).await;
        match (waited, self.shared.cause()) {
            (Err(_elapsed), Some(cause)) => Err(CheckError::Disconnected { cause }),
            (Ok(()), _) | (Err(_), None) => Ok(()),
        }
    }

    /// Asks whether a request may pass. Ends by the client's deadline at the latest, and at once while
    /// there is no connection: a caller that serves requests then has its answer, which is that
    /// there is none. A dropped future takes nothing back: the node may count the check.
    ///
    /// # Errors
    /// [`CheckError`] says whether anything may have been counted.
    pub async fn check(&self, check: &Check<'_>) -> Result<Answer, CheckError> {
        let (reply, end) = oneshot::channel();
        self.shared.send(check, reply)?;
        end.await.unwrap_or_else(|_dropped| {
            let cause = "the client has ended".into();
            Err(CheckError::ConnectionLost { cause })
        })
    }

    /// Asks until the request may pass, the policy is exhausted, or asking again is of no use. A
    /// refusal is waited for as long as it says, an error by exponential backoff with full jitter.
    /// A check that got no answer in time may have been counted, and is counted again when it is
    /// repeated: the error is towards refusing.
    ///
    /// # Errors
    /// The last attempt's [`CheckError`]; a last refusal is an answer.
    pub async fn check_with_retry(
        &self,
        check: &Check<'_>,
        policy: RetryPolicy,
    ) -> Result<Answer, CheckError> {
        let began = clock::now();
        let mut backoff = Backoff::new(policy);
        loop {
            let end = self.check(check).await;
            let Some(setback) = setback_of(&end) else {
                return end;
            };
            let random = self.random.lock().next_u64();
            match backoff.after(setback, clock::now().duration_since(began), random) {
                Next::Wait(wait) => time::sleep(wait).await,
                Next::GiveUp => return end,
            }
        }
    }
}

/// What another attempt could cure; `None` if none could, or none needs to.
fn setback_of(end: &Result<Answer, CheckError>) -> Option<Setback> {
    match end {
        Ok(answer) => {
            let retry_after = answer.retry_after()?;
            Some(Setback::Refused { retry_after })
        }
        Err(error) => error.is_transient().then_some(Setback::Failed),
    }
}

fn server_name(config: &ClientConfig) -> Result<String, ConfigError> {
    let legal = |name: &str| DnsName::try_from(name).is_ok();
    match &config.server_name {
        Some(name) if legal(name) => Ok(name.clone()),
        Some(name) => Err(ConfigError::ServerName { name: name.clone() }),
        None if legal(&config.cluster) => Ok(config.cluster.clone()),
        None => Ok(DEFAULT_SERVER_NAME.to_owned()),
    }
}
