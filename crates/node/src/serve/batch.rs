//! One batch of a stream: what was read at once is decided by one clock reading and answered together.

use std::sync::{Arc, atomic::Ordering};

use smallvec::SmallVec;
use tollgate_cluster::{Acceptance, Hold};
use tollgate_limit::{Ask, Change, DecidedBy, Nanos, Rule, Verdict};
use tollgate_wire::{
    CodecError, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, frame,
    identity::BootId,
    peer::{
        Amend, CheckHead, PeerAsk, Reply, Request, Said, Way, put_reply, put_verdicts, read_ask,
        read_request,
    },
};

use super::{
    Owner, Problem,
    boots::{Boot, Caller},
    later::{Answer, Later},
    outbox::Outbox,
};
use crate::{
    frames::{FrameReader, FramesError},
    link::MAX_SHAPES,
};

/// What is known of one stream.
#[derive(Debug)]
pub(super) struct Stream {
    caller: Caller,
    boot: Arc<Boot>,
    /// The caller whose check was relayed last, and what is remembered of it.
    relayed: Option<(Caller, Arc<Boot>)>,
    /// Made when the first answer must wait.
    outbox: Option<Arc<Outbox>>,
    shapes: Vec<Rule>,
    asks: Vec<Ask>,
    verdicts: SmallVec<[Verdict; 4]>,
}

/// What a stream is from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    /// One of checks.
    On,
    /// A replica stream.
    Follow,
}

/// The circumstances of one batch.
#[derive(Clone, Copy)]
struct Batch<'a> {
    owner: &'a Arc<Owner>,
    now: Nanos,
    is_late: bool,
}

impl Stream {
    pub(super) fn new(caller: Caller, boot: Arc<Boot>) -> Self {
        Self {
            caller,
            boot,
            relayed: None,
            outbox: None,
            shapes: Vec::new(),
            asks: Vec::new(),
            verdicts: SmallVec::new(),
        }
    }

    /// The caller's boot.
    pub(super) const fn boot_id(&self) -> BootId {
        let (boot, _link) = self.caller;
        boot
    }

    /// Where answers that had to wait are; `None` if none had to.
    pub(super) fn outbox(&self) -> Option<Arc<Outbox>> {
        self.outbox.clone()
    }

    /// Answers all whole frames that were read, into `out`.
    pub(super) fn answer(
        &mut self,
        owner: &Arc<Owner>,
        now: Nanos,
        frames: &mut FrameReader,
        out: &mut Vec<u8>,
    ) -> Result<Goes, Problem> {
        let batch = Batch {
            owner,
            now,
            is_late: owner.pause.is_late(now),
        };
        while let Some(frame) = frames.next().map_err(FramesError::from)? {
            let known = (OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION).contains(&frame.version);
            if !known {
                let problem = format!("version {} is not understood", frame.version);
                put(out, frame.id, &Reply::Fault(problem))?;
                continue;
            }
            if self.answer_frame(batch, (frame.id, frame.body), out)? == Goes::Follow {
                return Ok(Goes::Follow);
            }
        }
        Ok(Goes::On)
    }

    fn answer_frame(
        &mut self,
        batch: Batch<'_>,
        (id, mut body): (u64, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<Goes, Problem> {
        match read_request(&mut body).map_err(malformed)? {
            Request::Check(head) => self.check(batch, (id, head, body), out)?,
            Request::Shape { number, rule } => self.learn(number, rule)?,
            Request::Amend(amend) => {
                let reply = self.amend(batch, &amend)?;
                put(out, id, &reply)?;
            }
            Request::Read(ask) => {
                let ask = self.resolve(&ask)?;
                let reply = match batch.owner.hold(&[ask]) {
                    Hold::Yes | Hold::Overdue => {
                        Reply::Counter(batch.owner.store.read(batch.now, ask.key, &ask.rule))
                    }
                    Hold::Awaiting | Hold::Given(_) | Hold::No => batch.owner.not_owner(),
                };
                put(out, id, &reply)?;
            }
            Request::Ping => {
                let placement = batch.owner.view.load().placement.fingerprint();
                let policies = batch.owner.policies_fingerprint.load(Ordering::Relaxed);
                put(
                    out,
                    id,
                    &Reply::Pong {
                        placement,
                        policies,
                    },
                )?;
            }
            Request::Switches(switches) => {
                if batch.owner.switches.merge(&switches) {
                    batch.owner.tell_switches();
                }
                put(out, id, &Reply::Done)?;
            }
            Request::Follow => return Ok(Goes::Follow),
            Request::Hello(_) => return Err(Problem::Malformed("a second hello".to_owned())),
        }
        Ok(Goes::On)
    }

    fn check(
        &mut self,
        batch: Batch<'_>,
        (id, head, mut body): (u64, CheckHead, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        self.asks.clear();
        for _ in 0..head.asks {
            let ask = read_ask(&mut body).map_err(malformed)?;
            let ask = self.resolve(&ask)?;
            self.asks.push(ask);
        }
        if !body.is_empty() {
            return Err(malformed(CodecError::TrailingBytes));
        }
        let owner = batch.owner;
        let (boot, name) = match head.way {
            Way::Owner | Way::Standby { number: 0, .. } => (&self.boot, (self.caller, id)),
            // Whom the caller asked first may have passed it on to this node, which knows it by that name.
            Way::Standby { link, number } => {
                named(&mut self.relayed, owner, ((self.caller.0, link), number))
            }
            Way::Relayed { boot, link, number } => {
                named(&mut self.relayed, owner, ((boot, link), number))
            }
        };
        let (_caller, number) = name;
        let hold = owner.hold(&self.asks);
        let is_relayed = matches!(head.way, Way::Relayed { .. });
        if matches!(hold, Hold::Yes | Hold::Overdue) || (hold == Hold::No && is_relayed) {
            let mut decided = boot.decided.lock();
            // What was decided here before the slot went away, too.
            if let Some(verdicts) = decided.verdicts(number) {
                owner.counters.repeated.raise();
                return put_all(out, id, (None, verdicts));
            }
            if hold == Hold::No {
                owner.counters.not_owner.raise();
                return put(out, id, &owner.not_owner());
            }
            if batch.is_late {
                owner.counters.too_late.raise();
                return put(out, id, &Reply::TooLate);
            }
            self.verdicts.clear();
            let verdicts = &mut self.verdicts;
            let store = &owner.store;
            if store.try_decide_all(batch.now, &self.asks, head.mode, verdicts) {
                owner.counters.decided_for_peers.raise();
                decided.record(batch.now, number, verdicts);
                let is_overdue = hold == Hold::Overdue;
                let said = is_overdue.then(|| owner.said(DecidedBy::Owner, true));
                return put_all(out, id, (said.as_ref(), verdicts));
            }
        }
        let budget = Nanos::new(u64::from(head.budget_micros) * 1000);
        let later = Later {
            owner: Arc::clone(owner),
            asks: self.asks.as_slice().into(),
            mode: head.mode,
            way: head.way,
            boot: Arc::clone(boot),
            name,
            deadline: batch.now.saturating_add(budget),
        };
        self.answer_later(id, later, out)
    }

    fn answer_later(&mut self, id: u64, later: Later, out: &mut Vec<u8>) -> Result<(), Problem> {
        let outbox = self.outbox.get_or_insert_with(|| Arc::new(Outbox::new()));
        let Some(place) = outbox.reserve() else {
            later.owner.counters.too_late.raise();
            return put(out, id, &Reply::TooLate);
        };
        let outbox = Arc::clone(outbox);
        tokio::spawn(async move {
            let Some(answer) = later.answer().await else {
                return;
            };
            let written = outbox.put(place, |out| {
                frame::put(out, id, |body| match &answer {
                    Answer::Verdicts(said, verdicts) => put_verdicts(body, said.as_ref(), verdicts),
                    Answer::Other(reply) => put_reply(body, reply),
                })
            });
            if let Err(error) = written {
                tracing::debug!(%error, "a late answer was not written");
            }
        });
        Ok(())
    }

    fn amend(&self, batch: Batch<'_>, amend: &Amend) -> Result<Reply, Problem> {
        let ask = self.resolve(&amend.ask)?;
        let Amend {
            sequence, change, ..
        } = *amend;
        let holds = matches!(batch.owner.hold(&[ask]), Hold::Yes | Hold::Overdue);
        // Held until it is done, so that nobody is told of it before.
        let mut amended = self.boot.amended.lock();
        let slot = ask.key.slot();
        let is_back = matches!(change, Change::GiveBack { .. });
        if !holds && is_back && batch.owner.mover.has_stood_in(slot) {
            return Ok(match amended.accept(sequence) {
                Acceptance::Fresh => {
                    // Only this node writes its series: the owner is told of it.
                    batch.owner.store.amend(batch.now, &ask, change);
                    batch.owner.mover.owe([slot]);
                    batch.owner.counters.given_back.raise();
                    Reply::Done
                }
                Acceptance::Repeated | Acceptance::TooOld => Reply::Done,
                Acceptance::Refused => batch.owner.not_owner(),
            });
        }
        if !holds {
            return Ok(match amended.refuse(sequence) {
                Acceptance::Repeated | Acceptance::TooOld | Acceptance::Fresh => Reply::Done,
                Acceptance::Refused => batch.owner.not_owner(),
            });
        }
        let acceptance = amended.accept(sequence);
        Ok(match acceptance {
            Acceptance::Fresh => {
                if !batch.owner.store.try_amend(batch.now, &ask, change) {
                    // It was handed over this instant.
                    amended.take_back(sequence);
                    return Ok(batch.owner.not_owner());
                }
                if is_back {
                    batch.owner.counters.given_back.raise();
                }
                Reply::Done
            }
            Acceptance::Repeated | Acceptance::TooOld => Reply::Done,
            Acceptance::Refused => batch.owner.not_owner(),
        })
    }

    /// A number is the next free one, or one that is given again.
    fn learn(&mut self, number: u16, rule: Rule) -> Result<(), Problem> {
        let place = usize::from(number);
        if place == self.shapes.len() && number < MAX_SHAPES {
            self.shapes.push(rule);
            return Ok(());
        }
        match self.shapes.get_mut(place) {
            Some(known) => *known = rule,
            None => return Err(Problem::Malformed(format!("shape number {number}"))),
        }
        Ok(())
    }

    fn resolve(&self, ask: &PeerAsk) -> Result<Ask, Problem> {
        let rule = self.shapes.get(usize::from(ask.shape));
        let rule = *rule.ok_or_else(|| Problem::Malformed(format!("no shape {}", ask.shape)))?;
        Ok(Ask {
            key: ask.key(),
            rule,
            cost: ask.cost().map_err(malformed)?,
        })
    }
}

/// What is remembered of the caller that a check is named by, and that name.
fn named<'a>(
    known: &'a mut Option<(Caller, Arc<Boot>)>,
    owner: &Owner,
    name: (Caller, u64),
) -> (&'a Arc<Boot>, (Caller, u64)) {
    let (caller, _number) = name;
    if known.as_ref().is_some_and(|(known, _)| *known != caller) {
        *known = None;
    }
    let (_caller, boot) = known.get_or_insert_with(|| (caller, owner.boots.of(caller)));
    (boot, name)
}

fn put_all(
    out: &mut Vec<u8>,
    id: u64,
    (said, verdicts): (Option<&Said>, &[Verdict]),
) -> Result<(), Problem> {
    frame::put(out, id, |body| put_verdicts(body, said, verdicts)).map_err(malformed)
}

fn put(out: &mut Vec<u8>, id: u64, reply: &Reply) -> Result<(), Problem> {
    frame::put(out, id, |body| put_reply(body, reply)).map_err(malformed)
}

fn malformed(error: CodecError) -> Problem {
    Problem::Malformed(error.to_string())
}
