//! The end of a liveness run: one placement, one holder of each slot, nothing on its way, nothing degraded.

use tollgate_limit::{KeyHash, Nanos};

use super::{node::Node, workload::Key};
use crate::history::{self, History};

/// How long before the end of the run answers are as if nothing had happened.
const QUIET: Nanos = Nanos::from_millis(2_500);
/// So much is told of one run.
const MAX_TOLD: usize = 8;
/// One slot of so many is looked at, beside those of the keys.
const SAMPLE: usize = 997;

/// What is there at the end.
#[derive(Debug)]
pub(super) struct End<'a> {
    pub(super) now: Nanos,
    pub(super) nodes: Vec<&'a Node>,
    pub(super) keys: &'a [Key],
}

impl End<'_> {
    /// What is counted, and what is not as it should be.
    pub(super) fn look(&self) -> (Vec<history::End>, Vec<String>) {
        let mut unsettled = Vec::new();
        let mut prints: Vec<_> = self.nodes.iter().map(|node| node.fingerprint()).collect();
        prints.dedup();
        if prints.len() != 1 {
            unsettled.push(format!("{} placements", prints.len()));
        }
        for node in &self.nodes {
            if node.is_moving() {
                unsettled.push(format!("slots or counts on their way: {}", node.describe()));
            }
        }
        for slot in (0..u64::from(u16::MAX)).step_by(SAMPLE) {
            self.held_once(
                KeyHash::from_halves(slot << 48, 0),
                "a slot",
                &mut unsettled,
            );
        }
        let mut ends = Vec::new();
        for key in self.keys {
            self.held_once(key.key, &key.name, &mut unsettled);
            let mut holders = self.nodes.iter().filter(|node| node.holds(key.key));
            if let (true, Some(node)) = (key.lasts, holders.next()) {
                ends.push(history::End {
                    key: key.name.clone(),
                    counted: node.counted(node.clock(self.now), &key.ask(1)),
                });
            }
        }
        unsettled.truncate(MAX_TOLD);
        (ends, unsettled)
    }

    fn held_once(&self, key: KeyHash, name: &str, unsettled: &mut Vec<String>) {
        let holders = self.nodes.iter().filter(|node| node.holds(key)).count();
        if holders != 1 {
            let slot = key.slot().number();
            unsettled.push(format!("{holders} nodes decide in slot {slot} of {name}"));
        }
    }
}

/// Answers that should not be degraded any more.
pub(super) fn late_answers(history: &History, end: Nanos) -> Vec<String> {
    let quiet = end.saturating_sub(QUIET);
    let late = history.answers.iter().filter(|it| it.asked >= quiet);
    let degraded = late.filter(|answer| answer.degraded);
    let told = degraded.take(MAX_TOLD).map(|answer| {
        let (check, key, asked, by) = (answer.check, &answer.key, answer.asked, answer.by);
        format!(
            "check {check} of {key} at {asked:?} from {} by {by:?}: degraded",
            answer.entry
        )
    });
    told.collect()
}
