//! One batch of a stream: what was read at once is decided by one clock reading and answered together.

use std::sync::{Arc, atomic::Ordering};

use smallvec::SmallVec;
use tollgate_cluster::Acceptance;
use tollgate_limit::{Ask, Change, Nanos, Rule, Verdict};
use tollgate_wire::{
    CodecError, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, frame,
    peer::{
        Amend, CheckHead, PeerAsk, Reply, Request, put_reply, put_verdicts, read_ask, read_request,
    },
};

use super::{Owner, Problem, boots::Boot};
use crate::{
    frames::{FrameReader, FramesError},
    link::MAX_SHAPES,
    view::View,
};

/// What is known of one stream.
#[derive(Debug)]
pub(super) struct Stream {
    boot: Arc<Boot>,
    shapes: Vec<Rule>,
    asks: Vec<Ask>,
    verdicts: SmallVec<[Verdict; 4]>,
}

/// The circumstances of one batch.
#[derive(Clone, Copy)]
struct Batch<'a> {
    owner: &'a Owner,
    view: &'a View,
    now: Nanos,
    is_late: bool,
}

impl Stream {
    pub(super) fn new(boot: Arc<Boot>) -> Self {
        Self {
            boot,
            shapes: Vec::new(),
            asks: Vec::new(),
            verdicts: SmallVec::new(),
        }
    }

    /// Answers all whole frames that were read, into `out`.
    pub(super) fn answer(
        &mut self,
        owner: &Owner,
        now: Nanos,
        frames: &mut FrameReader,
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        let view = owner.view.load();
        let batch = Batch {
            owner,
            view: &view,
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
            self.answer_frame(batch, (frame.id, frame.body), out)?;
        }
        Ok(())
    }

    fn answer_frame(
        &mut self,
        batch: Batch<'_>,
        (id, mut body): (u64, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), Problem> {
        match read_request(&mut body).map_err(malformed)? {
            Request::Check(head) => self.check(batch, (id, head, body), out),
            Request::Shape { number, rule } => self.learn(number, rule),
            Request::Amend(amend) => {
                let reply = self.amend(batch, &amend)?;
                put(out, id, &reply)
            }
            Request::Read(ask) => {
                let ask = self.resolve(&ask)?;
                let reply = if is_own(batch.view, &ask) {
                    Reply::Counter(batch.owner.store.read(batch.now, ask.key, &ask.rule))
                } else {
                    not_owner(batch.view)
                };
                put(out, id, &reply)
            }
            Request::Ping => {
                let placement = batch.view.placement.fingerprint();
                let policies = batch.owner.policies_fingerprint.load(Ordering::Relaxed);
                put(
                    out,
                    id,
                    &Reply::Pong {
                        placement,
                        policies,
                    },
                )
            }
            Request::Hello(_) => Err(Problem::Malformed("a second hello".to_owned())),
            Request::Follow => Err(Problem::Malformed("not behind checks".to_owned())),
            Request::Switches(_) => put(out, id, &Reply::Done),
        }
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
        let counters = &batch.owner.counters;
        let mut decided = self.boot.decided.lock();
        if let Some(verdicts) = decided.verdicts(id) {
            counters.repeated.raise();
            return frame::put(out, id, |body| put_verdicts(body, None, verdicts))
                .map_err(malformed);
        }
        if batch.is_late {
            counters.too_late.raise();
            return put(out, id, &Reply::TooLate);
        }
        if !self.asks.iter().all(|ask| is_own(batch.view, ask)) {
            counters.not_owner.raise();
            return put(out, id, &not_owner(batch.view));
        }
        self.verdicts.clear();
        let store = &batch.owner.store;
        store.decide_all(batch.now, &self.asks, head.mode, &mut self.verdicts);
        counters.decided_for_peers.raise();
        decided.record(batch.now, id, &self.verdicts);
        frame::put(out, id, |body| put_verdicts(body, None, &self.verdicts)).map_err(malformed)
    }

    fn amend(&self, batch: Batch<'_>, amend: &Amend) -> Result<Reply, Problem> {
        let ask = self.resolve(&amend.ask)?;
        let Amend {
            sequence, change, ..
        } = *amend;
        // Held until it is done, so that nobody is told of it before.
        let mut amended = self.boot.amended.lock();
        let acceptance = match is_own(batch.view, &ask) {
            true => amended.accept(sequence),
            false => amended.refuse(sequence),
        };
        Ok(match acceptance {
            Acceptance::Fresh => {
                batch.owner.store.amend(batch.now, &ask, change);
                if matches!(change, Change::GiveBack { .. }) {
                    batch.owner.counters.given_back.raise();
                }
                Reply::Done
            }
            Acceptance::Repeated | Acceptance::TooOld => Reply::Done,
            Acceptance::Refused => not_owner(batch.view),
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

fn is_own(view: &View, ask: &Ask) -> bool {
    view.own.is_some() && view.placement.owner(ask.key.slot()) == view.own
}

fn not_owner(view: &View) -> Reply {
    Reply::NotOwner {
        placement: view.placement.fingerprint(),
    }
}

fn put(out: &mut Vec<u8>, id: u64, reply: &Reply) -> Result<(), Problem> {
    frame::put(out, id, |body| put_reply(body, reply)).map_err(malformed)
}

fn malformed(error: CodecError) -> Problem {
    Problem::Malformed(error.to_string())
}
