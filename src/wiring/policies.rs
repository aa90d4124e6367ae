//! The policies in force beside their limits, and how they came to be.
//!
//! Invariant: what is told of the newest file is about the file that was looked at last.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tollgate_api::PolicyMetrics;

use crate::config::{ConfigError, PolicySettings, Settings};

/// What the policies in force say beside their limits, and what became of newer files.
#[derive(Debug)]
pub(super) struct InForce {
    settings: ArcSwap<Settings>,
    /// Why the newest file is not in force, in one line.
    rejection: ArcSwapOption<String>,
    reloads: AtomicU64,
    failures: AtomicU64,
}

impl InForce {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings: ArcSwap::from_pointee(settings),
            rejection: ArcSwapOption::empty(),
            reloads: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    pub(super) fn settings_of(&self, policy: &str) -> PolicySettings {
        self.settings.load().of(policy)
    }

    pub(super) fn replace(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
        self.rejection.store(None);
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reject(&self, error: &ConfigError) {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        self.rejection.store(Some(Arc::new(line.to_owned())));
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn rejection(&self) -> Option<String> {
        self.rejection.load().as_deref().cloned()
    }

    pub(super) fn metrics(&self) -> PolicyMetrics {
        PolicyMetrics {
            reloads: self.reloads.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            is_rejected: self.rejection.load().is_some(),
        }
    }
}
