//! Rules in words.

use tollgate_api::duration;
use tollgate_limit::{Algorithm, Alignment, Enforcement, OldestSlice, Rule, Window};

/// What a rule admits, and on which terms.
pub(super) fn rule(rule: &Rule) -> String {
    let mut text = algorithm(&rule.algorithm);
    if rule.set_aside > 0 {
        text.push_str(&format!(", {} of it set aside for others", rule.set_aside));
    }
    if let Some(ban) = rule.ban {
        text.push_str(&format!(", bans for {}", duration::render(ban.length)));
        if ban.escalation > 1000 {
            let (whole, thousandths) = (ban.escalation / 1000, ban.escalation % 1000);
            let factor = format!("{whole}.{thousandths:03}");
            let factor = factor.trim_end_matches('0').trim_end_matches('.');
            let longest = duration::render(ban.longest);
            text.push_str(&format!(", then {factor} times as long, up to {longest}"));
        }
    }
    match rule.enforcement {
        Enforcement::Enforced => {}
        Enforcement::Shadow => text.push_str(", shadow: never refuses"),
    }
    text
}

fn algorithm(algorithm: &Algorithm) -> String {
    let name = algorithm.name();
    match algorithm {
        Algorithm::SlidingWindow(rule) => {
            let hard = match rule.oldest {
                OldestSlice::Weighted => "",
                OldestSlice::Full => ", hard",
            };
            let (per, slices) = (per(rule.limit, rule.window), rule.slices);
            format!("{per}, {name}, {slices} slices{hard}")
        }
        Algorithm::SlidingLog(rule) => format!("{}, {name}", per(rule.limit, rule.window)),
        Algorithm::FixedWindow(rule) => match rule.alignment {
            Alignment::Epoch(window) => format!("{}, {name}", per(rule.limit, window)),
            Alignment::Calendar(unit, zone) => {
                format!(
                    "{} per {} in {}, {name}",
                    rule.limit,
                    unit.name(),
                    zone.name()
                )
            }
        },
        Algorithm::TokenBucket(rule) => {
            let per = per(rule.limit, rule.window);
            format!("{per}, {name}, burst {}", rule.burst)
        }
        Algorithm::LeakyBucket(rule) => {
            let per = per(rule.limit, rule.window);
            format!("{per}, {name}, queue {}", rule.queue)
        }
        Algorithm::Concurrency(rule) => {
            let ttl = duration::render(rule.ttl.span());
            format!("{} at once, {name}, each for {ttl} at most", rule.limit)
        }
    }
}

fn per(limit: u64, window: Window) -> String {
    format!("{limit} per {}", duration::render(window.span()))
}
