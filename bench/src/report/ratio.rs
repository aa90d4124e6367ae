//! Ratios: what one subject costs against another in the same round; the median over rounds counts.

use std::fmt;

use serde::Serialize;

use crate::rounds::{Measurement, Subject};

/// Less processor time than this is not told apart from none: ten clock ticks.
const MIN_CPU_S: f64 = 0.1;

/// A ratio of two subjects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    of: Subject,
    to: Subject,
    figure: Figure,
    /// The most that it should be.
    at_most: Option<f64>,
    /// The median over rounds; absent if the rounds were too short to tell.
    median: Option<f64>,
    by_round: Vec<f64>,
}

/// What of two subjects is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Figure {
    /// The servers' processor time for a request.
    Cpu,
    /// The median latency.
    Latency,
}

/// What is compared, and the most that it should be.
const COMPARISONS: [(Subject, Subject, Figure, Option<f64>); 8] = [
    (
        Subject::CheckHttp,
        Subject::YardstickHttp,
        Figure::Cpu,
        Some(1.2),
    ),
    (
        Subject::CheckQuic,
        Subject::YardstickQuic,
        Figure::Cpu,
        Some(4.0),
    ),
    (
        Subject::CheckQuic,
        Subject::CheckHttp,
        Figure::Cpu,
        Some(0.2),
    ),
    (
        Subject::ForwardedOfTwo,
        Subject::LocalOfTwo,
        Figure::Cpu,
        Some(2.0),
    ),
    (
        Subject::YardstickQuic,
        Subject::YardstickHttp,
        Figure::Cpu,
        None,
    ),
    (
        Subject::LoneLocal,
        Subject::LoneYardstick,
        Figure::Latency,
        None,
    ),
    (
        Subject::LoneForwarded,
        Subject::LoneLocal,
        Figure::Latency,
        None,
    ),
    // The client's round trip to the entry node, and the entry node's to the owner.
    (
        Subject::LoneForwarded,
        Subject::LoneYardstick,
        Figure::Latency,
        None,
    ),
];

/// All ratios of subjects that were measured.
pub(super) fn all(measurements: &[Measurement]) -> Vec<Ratio> {
    let ratios = COMPARISONS.iter().map(|(of, to, figure, at_most)| {
        let by_round = by_round(measurements, *of, *to, *figure);
        let median = (!by_round.is_empty()).then(|| median(by_round.iter().copied()));
        Ratio {
            of: *of,
            to: *to,
            figure: *figure,
            at_most: *at_most,
            median,
            by_round,
        }
    });
    let measured = |subject| measurements.iter().any(|one| one.subject == subject);
    ratios
        .filter(|ratio| measured(ratio.of) && measured(ratio.to))
        .collect()
}

fn by_round(measurements: &[Measurement], of: Subject, to: Subject, figure: Figure) -> Vec<f64> {
    let of = measurements.iter().filter(|one| one.subject == of);
    let pairs = of.filter_map(|of| {
        let same_round = |one: &&Measurement| one.subject == to && one.round == of.round;
        Some((of, measurements.iter().find(same_round)?))
    });
    let ratios = pairs.filter_map(|(of, to)| match figure {
        Figure::Cpu if of.cpu_s < MIN_CPU_S || to.cpu_s < MIN_CPU_S => None,
        Figure::Cpu => Some(of.cpu_s_per_million / to.cpu_s_per_million),
        Figure::Latency => Some(of.latency.p50_us / to.latency.p50_us),
    });
    ratios.collect()
}

/// The median; of an even number the upper one of the middle two, of none 0.
pub(super) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = match self.figure {
            Figure::Cpu => "CPU",
            Figure::Latency => "p50",
        };
        let name = format!("{figure} of {} / {}", self.of.name(), self.to.name());
        write!(f, "{name:<44}")?;
        let Some(median) = self.median else {
            return write!(f, " too short to tell");
        };
        write!(f, "{median:>7.2}")?;
        if let Some(at_most) = self.at_most {
            let verdict = if median <= at_most { "met" } else { "MISSED" };
            write!(f, "  (at most {at_most}: {verdict})")?;
        }
        let rounds: Vec<String> = self
            .by_round
            .iter()
            .map(|one| format!("{one:.2}"))
            .collect();
        write!(f, "  [{}]", rounds.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use tollgate_bench::load::LatencySummary;

    use super::*;

    fn measurement(subject: Subject, round: u8, cpu_s_per_million: f64) -> Measurement {
        Measurement {
            subject,
            round,
            answered: 1_000_000,
            inspected: 0,
            refused: 0,
            degraded: 0,
            per_second: 1.0,
            cpu_s: cpu_s_per_million,
            cpu_s_per_million,
            latency: LatencySummary::default(),
        }
    }

    #[test]
    fn a_ratio_is_of_one_round_and_the_median_counts() {
        let (check, yardstick) = (Subject::CheckHttp, Subject::YardstickHttp);
        let measurements = [
            measurement(yardstick, 1, 10.0),
            measurement(check, 1, 11.0),
            measurement(yardstick, 2, 100.0),
            measurement(check, 2, 300.0),
            measurement(yardstick, 3, 1.0),
            measurement(check, 3, 1.5),
        ];
        let ratios = all(&measurements);
        assert_eq!(ratios.len(), 1);
        assert_eq!(ratios[0].by_round, [1.1, 3.0, 1.5]);
        assert_eq!(ratios[0].median, Some(1.5));
        assert!(ratios[0].to_string().contains("MISSED"));
    }

    #[test]
    fn too_little_processor_time_is_no_ratio() {
        let measurements = [
            measurement(Subject::YardstickHttp, 1, 0.01),
            measurement(Subject::CheckHttp, 1, 0.02),
        ];
        assert_eq!(all(&measurements)[0].median, None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < f64::EPSILON);
        assert!(median(std::iter::empty()).abs() < f64::EPSILON);
    }
}
