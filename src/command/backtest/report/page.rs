//! A report as one page of HTML that needs nothing else: no script, no network, light and dark.
//!
//! All text is escaped by `maud`; nothing is written into the page unescaped but its own style.

mod chart;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    LimitReport, PeakReport, PolicyReport, Report,
    words::{every, percent, span},
};
use crate::output::shown;

const STYLE: &str = include_str!("page/style.css");

impl Report {
    /// The page.
    pub(in super::super) fn page(&self) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { "Backtest of limits" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { "Backtest of limits" }
                    (self.head())
                    (self.table())
                    @for policy in &self.policies {
                        @for limit in &policy.limits {
                            (limit.section(policy, self.has_costs))
                        }
                    }
                }
            }
        }
        .into_string()
    }

    fn head(&self) -> Markup {
        let log = &self.log;
        html! {
            p { (shown(log.requests)) " requests from " (log.from) " to " (log.to) " (" (log.form) ")" }
            @if log.unreadable > 0 {
                p { "Lines that cannot be read: " (shown(log.unreadable)) }
                ul { @for fault in &log.faults { li { (fault) } } }
            }
            @for note in self.notes() { p.note { (note) } }
        }
    }

    fn table(&self) -> Markup {
        html! {
            table {
                tr {
                    th { "limit" } th { "algorithm" } th.n { "capacity" } th.n { "window" }
                    th.n { "admitted" } th.n { "refused" } th.n { "share" }
                    @if self.has_costs { th.n { "admitted units" } th.n { "refused units" } }
                }
                @for policy in &self.policies {
                    @for limit in &policy.limits {
                        tr {
                            td { (policy.name) "/" (limit.name) } td { (limit.algorithm) }
                            td.n { (shown(limit.capacity)) } td.n { (span(limit.window)) }
                            td.n { (shown(limit.admitted)) } td.n { (shown(limit.refused)) }
                            td.n { (percent(limit.refused_share)) }
                            @if self.has_costs {
                                td.n { (shown(limit.admitted_units)) }
                                td.n { (shown(limit.refused_units)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl LimitReport {
    fn section(&self, policy: &PolicyReport, has_costs: bool) -> Markup {
        html! {
            section {
                h2 { (policy.name) "/" (self.name) }
                @match &self.busiest_minute {
                    None => p { "Applies to no request" (self.why_none()) "." }
                    Some(busiest) => {
                        p { "Busiest minute: " (busiest.start) ", " (shown(busiest.requests)) " requests." }
                        figure {
                            figcaption {
                                "Requests " (every(self.timeline.step())) ": "
                                span.admitted { "admitted" } " and " span.refused { "refused" }
                            }
                            (chart::timeline(&self.timeline))
                        }
                        @for peak in &self.peaks { (self.peak(peak, has_costs)) }
                        (self.refused_keys())
                    }
                }
            }
        }
    }

    fn peak(&self, peak: &PeakReport, has_costs: bool) -> Markup {
        let capacity = (peak.period == self.window).then_some(self.capacity);
        html! {
            p { (peak.proposal(has_costs)) "." }
            figure {
                figcaption {
                    "Keys by the most that they ask for " (every(peak.period))
                    @if capacity.is_some() { ", " span.refused { "above the limit" } }
                }
                (chart::peaks(&peak.by_power, capacity))
            }
        }
    }

    fn refused_keys(&self) -> Markup {
        html! {
            @if !self.most_refused.is_empty() {
                table {
                    tr { th { "most refused" } th.n { (self.refused_title()) } }
                    @for key in &self.most_refused {
                        tr { td { (key.name()) } td.n { (key.count()) } }
                    }
                }
            }
        }
    }
}
