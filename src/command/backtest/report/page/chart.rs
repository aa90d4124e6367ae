//! Bars as inline SVG.
//!
//! Knows nothing of limits but their capacity. Lengths are whole hundredths of the drawing's units, so
//! that the same report is the same bytes everywhere.

use maud::{Markup, html};
use tollgate_limit::Nanos;

use super::super::words::instant;
use crate::{
    command::backtest::timeline::{Step, Timeline},
    output::shown,
};

/// A drawing's width and height, and the height of its bars.
const WIDTH: u64 = 720;
const HEIGHT: u64 = 170;
const BARS: u64 = 130;
/// Where bars begin, below the number at the top.
const TOP: u64 = 18;
/// Hundredths of a unit.
const PARTS: u64 = 100;

/// Requests over time.
pub(super) fn timeline(timeline: &Timeline) -> Markup {
    let steps = timeline.steps();
    let all = |step: &Step| step.admitted.saturating_add(step.refused);
    let most = steps.iter().map(all).max().unwrap_or(0);
    let at = |place: u64| {
        let since = timeline.step().as_nanos().saturating_mul(place);
        instant(timeline.start().saturating_add(Nanos::new(since)))
    };
    let count = steps.len() as u64;
    drawing(
        most,
        html! {
            @for (place, step) in (0..).zip(steps) {
                @if all(step) > 0 {
                    g {
                        title {
                            (at(place)) ": " (shown(step.admitted)) " admitted, " (shown(step.refused))
                            " refused"
                        }
                        (bar("admitted", (place, count), (0, step.admitted), most))
                        (bar("refused", (place, count), (step.admitted, step.refused), most))
                    }
                }
            }
            text x="0" y=(HEIGHT - 4) { (at(0)) }
            text x=(WIDTH) y=(HEIGHT - 4) text-anchor="end" { (at(count)) }
        },
    )
}

/// How many keys have peaks of 0, 1, up to 3, up to 7, and so on; those above the capacity apart.
pub(super) fn peaks(by_power: &[u64], capacity: Option<u64>) -> Markup {
    let most = by_power.iter().copied().max().unwrap_or(0);
    let count = by_power.len() as u64;
    let middle = |place: u64| hundredths((place * 2 + 1) * WIDTH * PARTS / (count * 2).max(1));
    drawing(
        most,
        html! {
            @for (place, keys) in (0_u64..).zip(by_power) {
                @let (low, high) = range(place);
                @let class = if capacity.is_some_and(|capacity| low > capacity) { "refused" } else { "admitted" };
                g {
                    title { (shown(*keys)) " keys ask for " (shown(low)) " to " (shown(high)) }
                    (bar(class, (place, count), (0, *keys), most))
                }
                text x=(middle(place)) y=(HEIGHT - 4) text-anchor="middle" { (short(low)) }
            }
        },
    )
}

fn drawing(most: u64, content: Markup) -> Markup {
    let ground = TOP + BARS;
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" {
            line x1="0" y1=(TOP) x2=(WIDTH) y2=(TOP) {}
            line x1="0" y1=(ground) x2=(WIDTH) y2=(ground) {}
            text x="0" y=(TOP - 5) { (shown(most)) }
            (content)
        }
    }
}

/// A bar at one of several places, from one height to one above it, of the most that there is.
fn bar(class: &str, (place, places): (u64, u64), (from, length): (u64, u64), most: u64) -> Markup {
    let across = |place: u64| WIDTH * PARTS * place / places.max(1);
    let (left, right) = (across(place), across(place + 1));
    // A tenth of its width lies between a bar and the next.
    let width = (right - left) * 9 / 10;
    let (bottom, top) = (up(from, most), up(from.saturating_add(length), most));
    html! {
        @if length > 0 {
            rect class=(class) x=(hundredths(left)) width=(hundredths(width))
                y=(hundredths((TOP + BARS) * PARTS - top)) height=(hundredths((top - bottom).max(PARTS / 2))) {}
        }
    }
}

/// The height of a count, in hundredths.
fn up(count: u64, most: u64) -> u64 {
    let height = u128::from(count) * u128::from(BARS * PARTS) / u128::from(most.max(1));
    u64::try_from(height)
        .unwrap_or(BARS * PARTS)
        .min(BARS * PARTS)
}

fn hundredths(length: u64) -> String {
    format!("{}.{:02}", length / PARTS, length % PARTS)
}

/// The numbers that have so many binary digits.
fn range(digits: u64) -> (u64, u64) {
    match digits {
        0 => (0, 0),
        1..=63 => (1 << (digits - 1), (1 << digits) - 1),
        _ => (1 << 63, u64::MAX),
    }
}

/// A power of two, short: 512, 4k, 2M.
fn short(number: u64) -> String {
    for (unit, name) in [
        (1_u64 << 40, "T"),
        (1 << 30, "G"),
        (1 << 20, "M"),
        (1 << 10, "k"),
    ] {
        if number >= unit {
            return format!("{}{name}", number / unit);
        }
    }
    number.to_string()
}
