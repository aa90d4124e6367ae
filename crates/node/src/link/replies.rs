//! What the peer answers: told to those who wait, or settled late.

use smallvec::SmallVec;
use tollgate_cluster::{Charge, Failure};
use tollgate_limit::{Ask, Nanos, Verdict};
use tollgate_wire::{
    CodecError,
    peer::{GiveBack, PeerAsk, Reply, Request, Verdicts, put_request, read_reply, read_verdict},
};
use tracing::{debug, warn};

use super::{Fingerprints, GIVE_BACK, Heard, Link, PING, late::Unwanted};
use crate::clock::Clock as _;

impl Link {
    /// Takes one frame of the peer.
    pub(super) fn handle_reply(
        &self,
        now: Nanos,
        (id, mut body): (u64, &[u8]),
    ) -> Result<(), CodecError> {
        let heard = match read_reply(&mut body)? {
            Reply::Verdicts(head) => Heard::Verdicts(now, read_verdicts(head, &mut body)?),
            Reply::Counter(counter) => Heard::Counter(counter),
            Reply::NotOwner { .. } => Heard::Failed(Failure::NotOwner),
            Reply::TooLate => Heard::Failed(Failure::TooLate),
            Reply::Done => {
                self.state.lock().give_backs.acknowledge(id & !GIVE_BACK);
                return Ok(());
            }
            Reply::Pong {
                placement,
                policies,
            } => {
                if id == PING {
                    self.handle_pong(Fingerprints {
                        placement,
                        policies,
                    });
                }
                return Ok(());
            }
            Reply::Fault(problem) => {
                warn!(peer = %self.peer, problem, "peer does not understand");
                Heard::Failed(Failure::Timeout)
            }
        };
        self.tell(now, id, heard);
        Ok(())
    }

    fn tell(&self, now: Nanos, number: u64, heard: Heard) {
        let mut state = self.state.lock();
        match state.in_flight.take(number) {
            Some(pending) => {
                state.breaker.handle_answer();
                drop(state);
                self.counters
                    .latencies
                    .record(now.saturating_sub(pending.sent_at));
                // The asker may have gone away: then nobody needs to know.
                drop(pending.payload.tell.send(heard));
            }
            None => {
                let Heard::Verdicts(_, verdicts) = heard else {
                    return;
                };
                let unwanted = state.late.handle_reply(number, verdicts);
                drop(state);
                self.undo(now, unwanted);
            }
        }
    }

    /// A check that timed out here ended as refused: what its owner charges late goes back.
    pub(crate) fn handle_refused(&self, number: u64, asks: SmallVec<[Ask; 2]>) {
        let unwanted = self.state.lock().late.handle_refused(number, asks);
        self.undo(self.clock.now(), unwanted);
    }

    fn undo(&self, now: Nanos, unwanted: Option<Unwanted>) {
        let Some(Unwanted { asks, verdicts }) = unwanted else {
            return;
        };
        if !verdicts.iter().all(Verdict::is_allowed) {
            return;
        }
        for (ask, verdict) in asks.iter().zip(&verdicts) {
            let charge = Charge {
                key: ask.key,
                rule: ask.rule,
                cost: ask.cost,
                slice: verdict.charged_slice,
            };
            self.give_back(now, &charge);
        }
    }

    /// Gives a charge back, sent again until it is acknowledged or its window has passed.
    pub(crate) fn give_back(&self, now: Nanos, charge: &Charge) {
        let pushed = self
            .state
            .lock()
            .give_backs
            .push(now, *charge, charge.rule.window());
        match pushed {
            Ok(sequence) => self.send_give_back(sequence, charge),
            Err(error) => {
                warn!(peer = %self.peer, %error, "a charge stays: the error is to refuse");
            }
        }
    }

    pub(super) fn send_give_back(&self, sequence: u64, charge: &Charge) {
        let Some(lane) = self.lane_of(charge.key) else {
            return;
        };
        let put = lane.put(|writer| {
            let shape = writer.shape(&charge.rule)?;
            let request = Request::GiveBack(GiveBack {
                sequence,
                ask: PeerAsk::new(shape, charge.key, charge.cost),
                slice: charge.slice,
            });
            writer.frame(GIVE_BACK | sequence, Nanos::MAX, |body| {
                put_request(body, &request)
            })
        });
        if put.is_err() {
            debug!(peer = %self.peer, "give-back waits: the next tick sends it again");
        }
    }

    fn handle_pong(&self, fingerprints: Fingerprints) {
        let mut state = self.state.lock();
        state.fingerprints = Some(fingerprints);
        if let Some(turn) = state.breaker.handle_pong() {
            self.turn(&state, turn);
        }
    }
}

fn read_verdicts(head: Verdicts, body: &mut &[u8]) -> Result<SmallVec<[Verdict; 1]>, CodecError> {
    let mut verdicts = SmallVec::new();
    for _ in 0..head.count {
        verdicts.push(read_verdict(body)?);
    }
    if body.is_empty() {
        Ok(verdicts)
    } else {
        Err(CodecError::TrailingBytes)
    }
}
