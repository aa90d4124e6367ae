//! Denials beside the owner that gave them, as its real counters.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use tollgate_limit::{
    Algorithm, Alignment, Ask, Cost, FixedWindow, KeyHash, LeakyBucket, Mode, Nanos, OldestSlice,
    Rule, SlidingLog, SlidingWindow, Store, StoreConfig, TokenBucket,
};

use super::{KEPT_AT_MOST, at, window};
use crate::denials::{Denials, Known, ProbeTicket};

/// One rule of each kind, of ten units in a second or so.
pub(super) fn rules() -> Vec<Rule> {
    let (limit, window) = (10, window(997));
    let sliding = |slices, oldest| {
        Algorithm::SlidingWindow(SlidingWindow {
            limit,
            window,
            slices,
            oldest,
        })
    };
    let alignment = Alignment::Epoch(window);
    let burst = 7;
    [
        sliding(1, OldestSlice::Weighted),
        sliding(10, OldestSlice::Weighted),
        sliding(10, OldestSlice::Full),
        Algorithm::SlidingLog(SlidingLog { limit, window }),
        Algorithm::FixedWindow(FixedWindow { limit, alignment }),
        Algorithm::TokenBucket(TokenBucket {
            limit,
            window,
            burst,
        }),
        Algorithm::LeakyBucket(LeakyBucket {
            limit,
            window,
            queue: 6,
        }),
    ]
    .map(Rule::new)
    .into_iter()
    .chain([Rule {
        set_aside: 3,
        ..Rule::new(sliding(10, OldestSlice::Full))
    }])
    .collect()
}

#[derive(Clone, Copy, Debug)]
struct Step {
    passed: u64,
    key: u64,
    cost: u64,
    /// From here to the owner, and back; in microseconds.
    there: u64,
    back: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    /// The answer is lost.
    Lost,
    /// The asker goes away.
    Gone,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        8 => Just(Fate::Answered),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Gone),
    ];
    let passed = prop_oneof![3 => 0_u64..2_000, 1 => 0_u64..400_000];
    let step = (
        passed,
        0_u64..2,
        1_u64..12,
        0_u64..30_000,
        0_u64..30_000,
        fate,
    );
    let step = step.prop_map(|(passed, key, cost, there, back, fate)| Step {
        passed,
        key,
        cost,
        there,
        back,
        fate,
    });
    prop::collection::vec(step, 1..300)
}

/// What happens later.
enum Event {
    Decide(Way),
    End(Way, Option<tollgate_limit::Verdict>),
}

struct Way {
    ask: Ask,
    step: Step,
    sent_at: Nanos,
    ticket: Option<ProbeTicket>,
}

/// An entry node and the owner of all keys, some way apart.
struct World {
    owner: Store,
    denials: Denials,
    now: u64,
    events: BTreeMap<(u64, usize), Event>,
    happened: usize,
    /// Probes that are out, until when.
    probes: HashMap<KeyHash, (ProbeTicket, Nanos)>,
    /// When an admission was heard last: whoever was a probe then need not be the only one any more.
    admitted: HashMap<KeyHash, Nanos>,
    /// When the question was sent whose refusal was heard last.
    refused: HashMap<KeyHash, Nanos>,
    told: usize,
}

const DEADLINE: Nanos = at(50);

impl World {
    fn new() -> Self {
        Self {
            owner: Store::new(&StoreConfig::default()),
            denials: Denials::new(),
            now: 5_000_000,
            events: BTreeMap::new(),
            happened: 0,
            probes: HashMap::new(),
            admitted: HashMap::new(),
            refused: HashMap::new(),
            told: 0,
        }
    }

    fn now(&self) -> Nanos {
        Nanos::new(self.now * 1_000)
    }

    fn later(&mut self, after: u64, event: Event) {
        self.happened += 1;
        self.events.insert((self.now + after, self.happened), event);
    }

    fn run_until(&mut self, end: u64) {
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= end
        {
            let ((then, _), event) = entry.remove_entry();
            self.now = then;
            match event {
                Event::Decide(way) => {
                    let verdict = self.owner.decide(self.now(), &way.ask, Mode::Consume);
                    let back = way.step.back;
                    self.later(back, Event::End(way, Some(verdict)));
                }
                Event::End(way, verdict) => self.end(&way, verdict),
            }
        }
        self.now = end;
    }

    fn end(&mut self, way: &Way, verdict: Option<tollgate_limit::Verdict>) {
        let now = self.now();
        match (way.step.fate, verdict) {
            (Fate::Answered, Some(verdict)) => {
                self.denials
                    .handle_answers(way.sent_at, now, (&[way.ask], &[verdict]));
                if verdict.is_allowed() {
                    self.admitted.insert(way.ask.key, now);
                } else {
                    let refused = self.refused.entry(way.ask.key).or_default();
                    *refused = way.sent_at.max(*refused);
                }
            }
            (Fate::Answered, None) | (Fate::Lost | Fate::Gone, _) => {}
        }
        let Some(ticket) = way.ticket else { return };
        match way.step.fate {
            Fate::Answered | Fate::Lost => self.denials.handle_done(ticket),
            Fate::Gone => self.denials.handle_gone(ticket),
        }
        if self
            .probes
            .get(&ticket.key)
            .is_some_and(|probe| probe.0 == ticket)
        {
            self.probes.remove(&ticket.key);
        }
    }

    fn ask(&mut self, rule: Rule, step: Step) -> Result<(), TestCaseError> {
        let ask = Ask {
            key: KeyHash::from_halves(step.key << 40, step.key),
            rule,
            cost: Cost::new(step.cost).unwrap(),
        };
        let now = self.now();
        let until = now.saturating_add(DEADLINE);
        let probe = self.probes.get(&ask.key).filter(|probe| now < probe.1);
        let ticket = match self.denials.ask(now, until, &ask) {
            Known::Nothing => None,
            Known::Denied(verdict) => {
                self.told += 1;
                let owner = self.owner.decide(now, &ask, Mode::Peek);
                prop_assert!(
                    !owner.is_allowed(),
                    "{ask:?} is refused, but would be admitted"
                );
                prop_assert!(!verdict.is_allowed());
                prop_assert!(verdict.retry_after != Some(Nanos::ZERO));
                let since = self.refused[&ask.key];
                prop_assert!(
                    now < since.saturating_add(KEPT_AT_MOST),
                    "kept for too long"
                );
                return Ok(());
            }
            Known::Wait(until) => {
                prop_assert_eq!(Some(until), probe.map(|probe| probe.1), "for nobody");
                return Ok(());
            }
            Known::Probe(ticket) => {
                let since = probe.map(|probe| probe.1.saturating_sub(DEADLINE));
                let admitted = self.admitted.get(&ask.key);
                prop_assert!(
                    since.is_none_or(|since| admitted.is_some_and(|at| since <= *at)),
                    "two probes of a key at once"
                );
                self.probes.insert(ask.key, (ticket, until));
                Some(ticket)
            }
        };
        let way = Way {
            ask,
            step,
            sent_at: now,
            ticket,
        };
        match step.fate {
            // It reaches the owner, maybe.
            Fate::Answered | Fate::Lost => self.later(step.there, Event::Decide(way)),
            Fate::Gone => self.later(step.there, Event::End(way, None)),
        }
        Ok(())
    }
}

proptest! {
    /// INV-DENIAL-SOUND: whatever is on its way and whatever is lost, what is refused here would be refused
    /// by the owner, and of a key one probe is under way at most.
    #[test]
    fn the_owner_would_refuse_it_too(rule in 0_usize..8, steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.run_until(world.now + step.passed);
            world.ask(rules()[rule], step)?;
        }
        world.run_until(world.now + 1_000_000);
        world.denials.sweep(world.now().saturating_add(at(2_000)));
        prop_assert!(world.denials.is_empty(), "nothing is kept for ever");
    }
}

/// The property above speaks of something.
#[test]
fn a_flood_is_told_here_and_probed_now_and_then() {
    for rule in rules() {
        let mut world = World::new();
        let mut asked = 0;
        for _ in 0..3_000 {
            let step = Step {
                passed: 1_000,
                key: 1,
                cost: 1,
                there: 1_000,
                back: 1_000,
                fate: Fate::Answered,
            };
            world.run_until(world.now + step.passed);
            world.ask(rule, step).unwrap();
            asked += 1;
        }
        assert!(world.told * 10 > asked * 8, "{rule:?}: {}", world.told);
    }
}
