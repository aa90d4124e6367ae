//! Progress of long work, on a terminal only.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use tokio::time::{MissedTickBehavior, interval};

/// How often progress is shown.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows what `say` tells until `work` is done. Shows nothing if standard error is no terminal.
pub(crate) async fn shown<T>(work: impl Future<Output = T>, say: impl Fn() -> String) -> T {
    let mut work = std::pin::pin!(work);
    if !io::stderr().is_terminal() {
        return work.await;
    }
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            done = &mut work => {
                draw("");
                return done;
            }
            _ = ticks.tick() => draw(&say()),
        }
    }
}

/// Replaces the terminal's last line.
fn draw(text: &str) {
    let mut terminal = io::stderr().lock();
    // Progress that cannot be shown is no reason to stop.
    drop(write!(terminal, "\r\x1b[K{text}").and_then(|()| terminal.flush()));
}
