//! What is done with a check after it was answered: refund, settle, report, release; and resets.
//!
//! A receipt tells all that is needed, so any node can do it. That it is done once is decided where all
//! else is decided once: by a limit of one for the receipt's id, at that key's owner. Then the counters'
//! owners are told, and asked for the state behind the change on the same stream, so that what is told
//! is in force when this is answered.
//!
//! Before an id is claimed, room is reserved for all that its owners will have to be told (see
//! `errands`): where there is none the action is refused as unreachable, its id is good still. So after
//! the claim nothing is lost but with this node: what an owner could not be told in time keeps its room and
//! is sent again, to whoever owns the slot by then, until it is acknowledged or its window has passed.
//! Give-backs name a slice of the boot that charged, which the receipt names; to another that has its counts
//! by now they are refunds of as much. Permits are given back by number everywhere. Charges, failures and
//! refunds by question go to whoever owns the key now.
//!
//! Invariant: an action is answered within the check deadline.

pub(crate) mod once;
mod tell;

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_cluster::{Amendment, Returned};
use tollgate_limit::{
    Action, ActionError, AmendedLimit, Ask, Change, ChargedAt, CheckError, Cost, Counted, Ending,
    KeyHash, Nanos, Question, Receipt, ReceiptItem, Rule, Settling,
};
use tollgate_wire::identity::BootId;

use crate::{
    check::give_back_of,
    clock::Clock as _,
    node::{CounterUnreachable, Node},
};

use self::tell::{Telling, When};

/// What one counter is told.
type Changes = SmallVec<[Told; 2]>;

/// A change of one counter, and the name of its limit.
#[derive(Clone, Debug)]
struct Told {
    limit: Arc<str>,
    at: ChargedAt,
    amendment: Option<Amendment>,
    ask: Ask,
    /// The boot that charged: what is given back means nothing to another.
    boot: Option<BootId>,
}

impl Told {
    fn is_failure(&self) -> bool {
        let change = self.amendment.map(|amendment| amendment.change);
        change == Some(Change::Failure)
    }
}

impl Node {
    /// Does something with what a check charged. It is done even if the asker goes away.
    ///
    /// # Errors
    /// [`ActionError`]: nothing was changed.
    pub async fn act(
        self: &Arc<Self>,
        now: Nanos,
        receipt: Receipt,
        action: Action,
    ) -> Result<Vec<AmendedLimit>, ActionError> {
        // Nothing was counted, or is to be.
        if self.owner.switches.is_killed() {
            return Ok(Vec::new());
        }
        let mut told = changes_of(&receipt, &action)?;
        if told.is_empty() {
            return Ok(Vec::new());
        }
        if receipt.id.boot != self.boot.0 {
            leave_out_its_shares(&mut told)?;
        }
        let room = self.errands.reserve(told.len());
        let room = room.ok_or(ActionError::Unreachable)?;
        let age = self.age(now, &receipt);
        let when = When {
            age,
            ..self.when(now)
        };
        // A permit is gone when it is released: there is nothing to do twice.
        if action == Action::Release {
            return Ok(self.tell_all(when, told, room).await);
        }
        if age > receipt.life() {
            return Err(ActionError::Unknown);
        }
        let node = Arc::clone(self);
        // Between the claim and the telling nothing may be lost.
        let acting = tokio::spawn(async move {
            node.claim(now, &receipt).await?;
            Ok(node.tell_all(when, told, room).await)
        });
        // It ends without an answer only when the runtime does.
        acting.await.unwrap_or(Err(ActionError::Unreachable))
    }

    /// Gives back what such a check would cost, the oldest first, on every limit that it meets but those
    /// on concurrency; bans stay. The future says [`ActionError::Unreachable`] if nothing was changed.
    ///
    /// # Errors
    /// [`CheckError`]: the asker's fault, nothing was changed.
    pub fn refund(
        self: Arc<Self>,
        now: Nanos,
        question: &Question<'_>,
    ) -> Result<
        impl Future<Output = Result<Vec<AmendedLimit>, ActionError>> + Send + use<>,
        CheckError,
    > {
        let applied = self.applied(question, question.cost)?;
        let told: Changes = applied
            .iter()
            .filter(|applied| !applied.limit.is_concurrency())
            .map(|applied| {
                let ask = applied.ask();
                let change = Change::Refund;
                Told {
                    limit: applied.limit.name().into(),
                    at: ChargedAt::Owner,
                    amendment: (ask.cost > Cost::ZERO).then_some(Amendment { ask, change }),
                    ask,
                    boot: None,
                }
            })
            .collect();
        Ok(async move {
            let room = self.errands.reserve(told.len());
            let room = room.ok_or(ActionError::Unreachable)?;
            Ok(self.tell_all(self.when(now), told, room).await)
        })
    }

    /// Forgets all that is counted for a key, its ban too, wherever its owner is. Sent again until the
    /// check deadline and not after: a reset that comes late would forget what it was not asked to.
    ///
    /// # Errors
    /// [`CounterUnreachable`] within the check deadline: whether it is reset is not known, ask again.
    pub async fn reset(
        self: &Arc<Self>,
        key: KeyHash,
        rule: Rule,
    ) -> Result<(), CounterUnreachable> {
        let ask = Ask {
            key,
            rule,
            cost: Cost::ZERO,
        };
        let amendment = Amendment {
            ask,
            change: Change::Reset,
        };
        self.shares.reset(key);
        self.known.forget(key);
        let when = self.when(self.now());
        let change = Some(Returned {
            amendment,
            expires: when.deadline,
            boot: None,
        });
        let telling = Telling { ask, change };
        self.tell(when, &telling, None).await.map(drop)
    }

    fn when(&self, now: Nanos) -> When {
        let deadline = now.saturating_add(self.config.timeouts.check_deadline.into());
        When {
            now,
            deadline,
            age: Nanos::ZERO,
        }
    }

    /// How old a receipt is at least: it tells whole seconds only.
    fn age(&self, now: Nanos, receipt: &Receipt) -> Nanos {
        let seconds = self.clock.unix_seconds(now).saturating_sub(receipt.made);
        Nanos::from_millis(seconds.saturating_sub(1).saturating_mul(1000))
    }
}

/// The receipt is another node's, or of another boot: what was charged to the local shares there can be
/// changed there only. But failures are for the owner, too.
fn leave_out_its_shares(told: &mut Changes) -> Result<(), ActionError> {
    for told in told.iter_mut().filter(|told| told.at == ChargedAt::Local) {
        if !told.is_failure() {
            return Err(ActionError::Unknown);
        }
        told.at = ChargedAt::Owner;
    }
    Ok(())
}

/// What the counters are told.
fn changes_of(receipt: &Receipt, action: &Action) -> Result<Changes, ActionError> {
    let mut told = Changes::new();
    for item in &receipt.items {
        let change = match action {
            Action::Refund if item.is_permit() => continue,
            Action::Refund => Some(give_back_of(&item.charge)),
            Action::Release if item.is_permit() => Some(give_back_of(&item.charge)),
            Action::Release => continue,
            Action::Settle(_) if item.is_permit() => continue,
            Action::Settle(settling) => match settled(item, settling) {
                None => continue,
                Some(cost) => difference(item, cost),
            },
            Action::Report(_) if item.counted == Counted::Requests => continue,
            Action::Report(Ending::Success) => Some(give_back_of(&item.charge)),
            Action::Report(Ending::Failure) => Some(Amendment {
                ask: ask_of(item, item.charge.cost),
                change: Change::Failure,
            }),
        };
        told.push(Told {
            limit: item.limit.as_str().into(),
            at: item.at,
            amendment: change,
            ask: ask_of(item, item.charge.cost),
            boot: change
                .filter(|change| !change.outlives_owner())
                .map(|_| BootId(item.charge.boot)),
        });
    }
    let name = match action {
        // A check that was refused has nothing to give back, which is no fault.
        Action::Refund => return Ok(told),
        Action::Settle(_) => "settle",
        Action::Report(_) => "report on",
        Action::Release => "release",
    };
    // A check that met no limit has nothing either, and whoever settles it need not know.
    if told.is_empty() && !receipt.items.is_empty() {
        return Err(ActionError::Nothing { action: name });
    }
    Ok(told)
}

/// The real cost of a charge; `None` if it is not told.
fn settled(item: &ReceiptItem, settling: &Settling) -> Option<Cost> {
    match &item.cost_source {
        tollgate_limit::CostSource::Request => settling.cost,
        tollgate_limit::CostSource::Attribute(name) => {
            let mut costs = settling.attributes.iter();
            costs
                .find(|(known, _)| known == name)
                .map(|(_, cost)| *cost)
        }
    }
}

/// What makes the real cost of the charged one: more is charged now, less goes back to where it was.
fn difference(item: &ReceiptItem, real: Cost) -> Option<Amendment> {
    let charged = item.charge.cost;
    let between = |more: Cost, less: Cost| {
        let units = more.units().saturating_sub(less.units());
        Cost::new(units).unwrap_or(Cost::ZERO)
    };
    match real.cmp(&charged) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(Amendment {
            ask: ask_of(item, between(real, charged)),
            change: Change::Charge,
        }),
        std::cmp::Ordering::Less => Some(Amendment {
            ask: ask_of(item, between(charged, real)),
            change: Change::GiveBack {
                slice: item.charge.slice,
            },
        }),
    }
}

const fn ask_of(item: &ReceiptItem, cost: Cost) -> Ask {
    Ask {
        key: item.charge.key,
        rule: item.charge.rule,
        cost,
    }
}
