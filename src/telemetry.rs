//! Log lines on standard error.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{LogFormat, LogSettings};

/// Starts logging for the whole process. A second start changes nothing.
pub(crate) fn start(settings: &LogSettings) {
    let filter = EnvFilter::new(&settings.level);
    let lines = fmt().with_env_filter(filter).with_writer(io::stderr);
    // Only a second start fails, and the first one stands.
    drop(match settings.format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    });
}
