//! A report for people, as text.

use std::fmt;

use super::{
    Caveat, LimitReport, PolicyReport, Report,
    words::{percent, span},
};
use crate::output::{Table, shown};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n\n{}", self.log_lines(), self.totals())?;
        for policy in &self.policies {
            for limit in &policy.limits {
                write!(f, "\n\n{}", limit.details(policy, self.has_costs))?;
            }
        }
        for note in self.notes() {
            write!(f, "\n\n{note}")?;
        }
        Ok(())
    }
}

impl Report {
    fn log_lines(&self) -> String {
        let log = &self.log;
        let mut lines = vec![format!(
            "{} requests from {} to {} ({})",
            shown(log.requests),
            log.from,
            log.to,
            log.form
        )];
        if log.unreadable > 0 {
            lines.push(format!(
                "lines that cannot be read: {}",
                shown(log.unreadable)
            ));
            lines.extend(log.faults.iter().map(|fault| format!("  {fault}")));
        }
        lines.join("\n")
    }

    fn totals(&self) -> Table {
        let mut table = Table::default();
        let mut head = vec![
            "limit",
            "algorithm",
            "capacity",
            "window",
            "admitted",
            "refused",
            "share",
        ];
        if self.has_costs {
            head.extend(["admitted units", "refused units"]);
        }
        table.row(head);
        for policy in &self.policies {
            for limit in &policy.limits {
                let mut row = vec![
                    format!("{}/{}", policy.name, limit.name),
                    limit.algorithm.to_owned(),
                    shown(limit.capacity),
                    span(limit.window),
                    shown(limit.admitted),
                    shown(limit.refused),
                    percent(limit.refused_share),
                ];
                if self.has_costs {
                    row.extend([shown(limit.admitted_units), shown(limit.refused_units)]);
                }
                table.row(row);
            }
            if policy.limits.len() > 1 {
                let mut row = vec![format!("{}, all limits", policy.name)];
                row.extend([(); 3].map(|()| String::new()));
                row.extend([shown(policy.admitted), shown(policy.refused)]);
                table.row(row);
            }
        }
        table
    }

    /// What a reader must know to trust the numbers, each a sentence.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for policy in &self.policies {
            notes.extend(policy.skipped.iter().map(|name| {
                format!(
                    "{}/{name} was passed over: it counts permits, and a log does not say when they are \
                     given back.",
                    policy.name
                )
            }));
            for limit in &policy.limits {
                notes.extend(limit.caveats.iter().map(|caveat| {
                    let words = match caveat {
                        Caveat::InShadow => {
                            "is in shadow: what it refuses is admitted all the same"
                        }
                        Caveat::CountsFailures => {
                            "counts failures: it was tested as if no request had been a success"
                        }
                    };
                    format!("{}/{} {words}.", policy.name, limit.name)
                }));
            }
            if let Some(fault) = &policy.fault {
                notes.push(format!(
                    "{} requests are no check of policy {}: {fault}.",
                    shown(policy.faulty),
                    policy.name
                ));
            }
        }
        if self.counters.evicted.max(self.counters.evicted_at_limit) > 0 {
            notes.push(format!(
                "The counters did not fit into {} MiB: {} were dropped, {} of these at their limit. So \
                 fewer requests were refused than would be with memory for all.",
                self.counters.max_bytes >> 20,
                shown(self.counters.evicted.saturating_add(self.counters.evicted_at_limit)),
                shown(self.counters.evicted_at_limit),
            ));
        }
        if !self.exceeded.is_empty() {
            notes.push(format!(
                "These refuse a larger share than --max-refused-share: {}.",
                self.exceeded.join(", ")
            ));
        }
        notes
    }
}

impl LimitReport {
    fn details(&self, policy: &PolicyReport, has_costs: bool) -> String {
        let mut lines = vec![format!("{}/{}", policy.name, self.name)];
        let Some(busiest) = &self.busiest_minute else {
            lines.push(format!("  applies to no request{}", self.why_none()));
            return lines.join("\n");
        };
        lines.push(format!(
            "  busiest minute: {}, {} requests",
            busiest.start,
            shown(busiest.requests)
        ));
        let proposals = self.peaks.iter().map(|peak| peak.proposal(has_costs));
        lines.extend(proposals.map(|proposal| format!("  {proposal}")));
        if !self.most_refused.is_empty() {
            let mut table = Table::default();
            table.row(["  most refused".to_owned(), self.refused_title().to_owned()]);
            for key in &self.most_refused {
                table.row([format!("  {}", key.name()), key.count()]);
            }
            lines.push(table.to_string());
        }
        lines.join("\n")
    }

    /// What a limit that applied to nothing waits for.
    pub(super) fn why_none(&self) -> String {
        if self.key.is_empty() {
            return ": none matches".to_owned();
        }
        format!(": none matches and has {}", self.key.join(" and "))
    }

    /// What the counts of refused keys are.
    pub(super) const fn refused_title(&self) -> &'static str {
        if self.most_refused_exact {
            "refused"
        } else {
            "refused, about"
        }
    }
}

impl super::KeyReport {
    /// The key by its values.
    pub(super) fn name(&self) -> String {
        if self.values.is_empty() {
            return "(one counter for all)".to_owned();
        }
        self.values.join(", ")
    }

    /// How often it was refused, and how exact that is.
    pub(super) fn count(&self) -> String {
        match self.too_high_by {
            0 => shown(self.refused),
            too_high_by => format!(
                "{} to {}",
                shown(self.refused.saturating_sub(too_high_by)),
                shown(self.refused)
            ),
        }
    }
}
