//! What Tollgate is compared with: servers that move the same bytes and decide nothing.

pub(crate) mod http;
pub(crate) mod quic;

use std::{
    io::{Write, stdout},
    net::SocketAddr,
};

use serde::{Deserialize, Serialize};

/// The line that a yardstick prints once it listens.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listening {
    /// Where.
    pub(crate) address: SocketAddr,
    /// Its certificate in DER, if it has one.
    pub(crate) certificate: Vec<u8>,
}

impl Listening {
    fn announce(&self) -> anyhow::Result<()> {
        let mut stdout = stdout();
        serde_json::to_writer(&mut stdout, self)?;
        writeln!(stdout)?;
        Ok(stdout.flush()?)
    }
}
