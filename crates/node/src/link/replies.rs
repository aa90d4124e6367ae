//! What the peer answers: told to those who wait, or settled late.

use smallvec::SmallVec;
use tollgate_cluster::{Amendment, Failure, QueueFull, Returned};
use tollgate_limit::{Ask, Change, Cost, Nanos, Verdict};
use tollgate_wire::{
    CodecError,
    identity::BootId,
    peer::{Amend, PeerAsk, Reply, Request, Verdicts, put_request, read_reply, read_verdict},
};
use tracing::{debug, warn};

use super::{
    AMEND, Fingerprints, Heard, Link, NotTaken, PING,
    late::{Late, Unwanted},
};
use crate::{clock::Clock as _, errands::Room};

impl Link {
    /// Takes one frame of the peer.
    pub(super) fn handle_reply(
        &self,
        now: Nanos,
        (id, mut body): (u64, &[u8]),
    ) -> Result<(), CodecError> {
        let heard = match read_reply(&mut body)? {
            Reply::Verdicts(Verdicts { count, said }) => {
                Heard::Verdicts(now, said, read_verdicts(count, &mut body)?)
            }
            Reply::Counter(counter) => Heard::Counter(counter),
            Reply::NotOwner { .. } if is_amendment(id) => {
                let returned = self.state.lock().amendments.take_back(id & !AMEND);
                self.errands.hand_back(now, &self.peer, returned);
                return Ok(());
            }
            Reply::NotOwner { .. } => Heard::Failed(Failure::NotOwner),
            Reply::TooLate => Heard::Failed(Failure::TooLate),
            Reply::Done => {
                if is_amendment(id) {
                    self.state.lock().amendments.acknowledge(id & !AMEND);
                }
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
                let Heard::Verdicts(_, said, verdicts) = heard else {
                    return;
                };
                let unwanted = state.late.handle_reply(number, Late { said, verdicts });
                drop(state);
                self.undo(now, unwanted);
            }
        }
    }

    /// A check that timed out here was answered without the peer: what it charges late goes back.
    pub(crate) fn handle_unused(&self, number: u64, asks: SmallVec<[Ask; 2]>) {
        let unwanted = self.state.lock().late.handle_unused(number, asks);
        self.undo(self.clock.now(), unwanted);
    }

    /// A check that timed out here was answered by what the peer charged, heard another way.
    pub(crate) fn handle_used(&self, number: u64) {
        self.state.lock().late.handle_used(number);
    }

    fn undo(&self, now: Nanos, unwanted: Option<Unwanted>) {
        let Some(Unwanted { asks, late }) = unwanted else {
            return;
        };
        let boot = match late.said {
            None => None,
            // What an owner charged that was asked for this node is that one's affair: this node asked it too,
            // or nobody knows of the charge, which errs towards refusing.
            Some(said) if said.node != self.peer.as_str() => return,
            Some(said) => Some(said.boot),
        };
        for amendment in charges_of(&asks, &late.verdicts) {
            self.give_back(now, amendment, boot);
        }
    }

    /// Gives a charge back to the boot of the peer that charged, if it is told; to another it is a refund. Sent
    /// again until it is acknowledged or its window has passed. If too much is outstanding the charge stays: the error is to
    /// refuse.
    pub(crate) fn give_back(&self, now: Nanos, amendment: Amendment, boot: Option<BootId>) {
        let change = Returned {
            amendment,
            expires: now.saturating_add(amendment.life()),
            boot: boot.filter(|_| !amendment.outlives_owner()),
        };
        match self.amend_until(now, change, None) {
            Ok(_) => {}
            Err(NotTaken(_no_room)) => {
                warn!(peer = %self.peer, "a charge stays: too much is outstanding");
            }
        }
    }

    /// Changes a counter of the peer, sent again until it is acknowledged or has expired; `room` is kept
    /// as long. Its number.
    ///
    /// # Errors
    /// [`NotTaken`]: nothing is sent.
    pub(crate) fn amend_until(
        &self,
        now: Nanos,
        change: Returned,
        room: Option<Room>,
    ) -> Result<u64, NotTaken> {
        let mut state = self.state.lock();
        let Returned {
            amendment, expires, ..
        } = change.for_owner(state.amendments.owner());
        if state.is_retired || expires <= now {
            return Err(NotTaken(room));
        }
        let pushed = state.amendments.push_until(expires, amendment, room);
        drop(state);
        let sequence = pushed.map_err(|QueueFull(room)| NotTaken(room))?;
        self.send_amendment(sequence, &amendment);
        Ok(sequence)
    }

    /// Whether the peer has said that it did what has this number.
    pub(crate) fn has_amended(&self, sequence: u64) -> bool {
        !self.state.lock().amendments.is_outstanding(sequence)
    }

    pub(super) fn send_amendment(&self, sequence: u64, amendment: &Amendment) {
        let Amendment { ask, change } = amendment;
        let Some(lane) = self.lane_of(ask.key) else {
            return;
        };
        let put = lane.put(|writer| {
            let shape = writer.shape(&ask.rule)?;
            let request = Request::Amend(Amend {
                sequence,
                ask: PeerAsk::new(shape, ask.key, ask.cost),
                change: *change,
            });
            writer.frame(AMEND | sequence, Nanos::MAX, |body| {
                put_request(body, &request)
            })
        });
        if put.is_err() {
            debug!(peer = %self.peer, "an amendment waits: the next tick sends it again");
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

/// Whether a reply of this id is to an amendment.
const fn is_amendment(id: u64) -> bool {
    id & AMEND != 0
}

/// What an owner charged for a check: nothing if a limit refused that is enforced.
fn charges_of(asks: &[Ask], verdicts: &[Verdict]) -> SmallVec<[Amendment; 2]> {
    let both = || asks.iter().zip(verdicts);
    if both().any(|(ask, verdict)| ask.rule.is_enforced() && !verdict.is_allowed()) {
        return SmallVec::new();
    }
    let charged = both().filter(|(ask, verdict)| verdict.is_allowed() && ask.cost > Cost::ZERO);
    charged
        .map(|(ask, verdict)| Amendment {
            ask: *ask,
            change: Change::GiveBack {
                slice: verdict.charged_slice,
            },
        })
        .collect()
}

fn read_verdicts(count: u8, body: &mut &[u8]) -> Result<SmallVec<[Verdict; 1]>, CodecError> {
    let mut verdicts = SmallVec::new();
    for _ in 0..count {
        verdicts.push(read_verdict(body)?);
    }
    if body.is_empty() {
        Ok(verdicts)
    } else {
        Err(CodecError::TrailingBytes)
    }
}
