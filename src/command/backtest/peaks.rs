//! How much each key asks for at most in one period, and what most keys stay within.
//!
//! Periods are aligned to the epoch. Must not know of limits: what is asked for is counted, admitted or
//! not.
//!
//! Bound: as many keys as it is made for. With more, a part of the keys is kept, chosen by their hashes
//! alone: half of them, a quarter, and so on. A key that is in the smaller part was in the larger one from
//! its first request, so that each kept peak is exact, and the shares are those of a fair sample.

use std::collections::HashMap;

use tollgate_limit::{KeyHash, Nanos};

/// Peaks of many keys.
#[derive(Debug)]
pub(super) struct Peaks {
    period: Nanos,
    most_keys: usize,
    keys: HashMap<KeyHash, Peak>,
    /// Keys are kept whose hash ends in so many zeros.
    zeros: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// The period that was counted last.
    number: u64,
    units: u64,
    most: u64,
}

/// What keys ask for at most in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeakSummary {
    /// The period.
    pub(super) period: Nanos,
    /// Keys, or how many there are about.
    pub(super) keys: u64,
    /// Whether every key was looked at.
    pub(super) exact: bool,
    /// 99 % of keys ask for at most this.
    pub(super) p99: u64,
    /// 99.9 % of keys ask for at most this.
    pub(super) p999: u64,
    /// The most that a key asks for, of those looked at.
    pub(super) most: u64,
    /// How many of the keys looked at have a peak of 0, 1, up to 3, up to 7, and so on.
    pub(super) by_power: Vec<u64>,
}

impl Peaks {
    /// Nothing counted.
    pub(super) fn new(period: Nanos, most_keys: usize) -> Self {
        Self {
            period,
            most_keys: most_keys.max(1),
            keys: HashMap::new(),
            zeros: 0,
        }
    }

    /// Counts what a key asked for. Times must not go back.
    pub(super) fn count(&mut self, now: Nanos, key: KeyHash, units: u64) {
        if !ends_in(key, self.zeros) {
            return;
        }
        let number = now.as_nanos() / self.period.as_nanos().max(1);
        let peak = self.keys.entry(key).or_default();
        if peak.number != number {
            (peak.number, peak.units) = (number, 0);
        }
        peak.units = peak.units.saturating_add(units);
        peak.most = peak.most.max(peak.units);
        while self.keys.len() > self.most_keys && self.zeros < u64::BITS {
            self.zeros = self.zeros.saturating_add(1);
            let zeros = self.zeros;
            self.keys.retain(|key, _| ends_in(*key, zeros));
        }
    }

    /// What most keys stay within; `None` if there was no key.
    pub(super) fn summary(&self) -> Option<PeakSummary> {
        let mut peaks: Vec<u64> = self.keys.values().map(|peak| peak.most).collect();
        peaks.sort_unstable();
        let most = *peaks.last()?;
        let mut by_power = Vec::new();
        for peak in &peaks {
            let power = (u64::BITS - peak.leading_zeros()) as usize;
            if by_power.len() <= power {
                by_power.resize(power.saturating_add(1), 0_u64);
            }
            if let Some(count) = by_power.get_mut(power) {
                *count = count.saturating_add(1);
            }
        }
        let kept = peaks.len() as u64;
        Some(PeakSummary {
            period: self.period,
            keys: kept.checked_shl(self.zeros).unwrap_or(u64::MAX),
            exact: self.zeros == 0,
            p99: at_thousandth(&peaks, 990),
            p999: at_thousandth(&peaks, 999),
            most,
            by_power,
        })
    }
}

fn ends_in(key: KeyHash, zeros: u32) -> bool {
    key.low().trailing_zeros() >= zeros
}

/// The least of the sorted values that so many thousandths of them are at most.
fn at_thousandth(sorted: &[u64], thousandths: usize) -> u64 {
    let rank = sorted.len().saturating_mul(thousandths).div_ceil(1000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tollgate_limit::{HashKey, KeyHash, KeyHasher, Nanos};

    use super::Peaks;

    const MINUTE: Nanos = Nanos::from_millis(60_000);

    fn key(number: u64) -> KeyHash {
        let mut hasher = KeyHasher::new(&HashKey::new([0; 16]));
        hasher.part(&number.to_le_bytes());
        hasher.finish()
    }

    #[test]
    fn a_peak_is_of_one_aligned_minute() {
        let mut peaks = Peaks::new(MINUTE, 10);
        assert_eq!(peaks.summary(), None);
        for (millis, units) in [(0, 2), (59_999, 3), (60_000, 4), (120_000, 1)] {
            peaks.count(Nanos::from_millis(millis), key(1), units);
        }
        peaks.count(Nanos::from_millis(120_000), key(2), 1);
        let summary = peaks.summary().unwrap();
        assert_eq!((summary.keys, summary.exact, summary.most), (2, true, 5));
        assert_eq!(summary.by_power, [0, 1, 0, 1]);
    }

    #[test]
    fn so_many_of_a_thousand_keys_stay_within() {
        let mut peaks = Peaks::new(MINUTE, 1000);
        for number in 1..=1000 {
            peaks.count(Nanos::ZERO, key(number), number);
        }
        let summary = peaks.summary().unwrap();
        assert_eq!((summary.p99, summary.p999, summary.most), (990, 999, 1000));
    }

    #[test]
    fn with_too_many_keys_a_fair_part_is_kept() {
        let mut peaks = Peaks::new(MINUTE, 1000);
        for request in 0..10 {
            for number in 1..=20_000 {
                let units = u64::from(request < number % 10);
                peaks.count(Nanos::from_millis(request), key(number), units);
            }
        }
        let summary = peaks.summary().unwrap();
        assert!(!summary.exact);
        assert!(peaks.keys.len() <= 1000, "{}", peaks.keys.len());
        assert!((16_000..25_000).contains(&summary.keys), "{}", summary.keys);
        assert_eq!((summary.p99, summary.most), (9, 9), "kept peaks are whole");
    }
}
