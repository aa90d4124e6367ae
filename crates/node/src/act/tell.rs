//! Telling the owner of a counter of a change, and asking for the state behind it.

use std::sync::Arc;

use futures_util::future::join_all;
use tollgate_cluster::{Amendment, Hold, Returned};
use tollgate_limit::{AmendedLimit, Ask, ChargedAt, Nanos, NodeId, Verdict};
use tollgate_wire::identity::BootId;

use super::{Changes, Told};
use crate::{
    errands::Room,
    link::NotTaken,
    node::{CounterUnreachable, Node},
    serve::Keeper,
};

/// When an action was asked for, and when it must be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct When {
    pub(super) now: Nanos,
    pub(super) deadline: Nanos,
    /// How old the charge is at least that is given back.
    pub(super) age: Nanos,
}

/// What a counter is told, and until when that is of use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Telling {
    pub(super) ask: Ask,
    pub(super) change: Option<Returned>,
}

impl Telling {
    fn new(when: When, ask: Ask, amendment: Option<Amendment>, boot: Option<BootId>) -> Self {
        let change = amendment.map(|amendment| Returned {
            amendment,
            // Then what the change is about has left the counter: later it would take what is another's.
            expires: when.now.saturating_add(amendment.life_left(when.age)),
            boot,
        });
        Self { ask, change }
    }
}

impl Node {
    /// Tells all owners at once. `room` has place for all of it.
    pub(super) async fn tell_all(
        self: &Arc<Self>,
        when: When,
        told: Changes,
        mut room: Room,
    ) -> Vec<AmendedLimit> {
        let telling = told
            .into_iter()
            .map(|told| self.tell_one(when, told, room.split()));
        join_all(telling.collect::<Vec<_>>()).await
    }

    async fn tell_one(
        self: &Arc<Self>,
        when: When,
        told: Told,
        room: Option<Room>,
    ) -> AmendedLimit {
        // A failure counts wherever the check was decided: the owner bans.
        let is_for_owner = told.at == ChargedAt::Owner || told.is_failure();
        let Told {
            limit,
            at,
            amendment,
            ask,
            boot,
        } = told;
        if amendment.is_some() {
            self.known.forget(ask.key);
        }
        if at == ChargedAt::Local
            && let Some(amendment) = &amendment
        {
            self.shares.amend(when.now, amendment);
        }
        let said = if is_for_owner {
            let telling = Telling::new(when, ask, amendment, boot);
            self.tell(when, &telling, room).await.ok()
        } else {
            None
        };
        let (now, node) = said.unzip();
        AmendedLimit {
            limit,
            rule: ask.rule,
            now,
            node,
        }
    }

    /// Tells the owner of a counter, and waits for the state behind the change. What the owner cannot be
    /// told waits in `room`; without room it is not done.
    pub(super) async fn tell(
        self: &Arc<Self>,
        when: When,
        telling: &Telling,
        room: Option<Room>,
    ) -> Result<(Verdict, NodeId), CounterUnreachable> {
        let Telling { ask, change } = *telling;
        if self.owner.hold(&[ask]) == Hold::Awaiting {
            self.owner.await_slots(&[ask]).await;
        }
        let routes = self.routes.load_full();
        let mut sent = None;
        if let Some(change) = change {
            let taken = match self.owner.keeper(&routes, ask.key.slot()) {
                Keeper::Here if self.amend_here(when.now, change) => Ok(None),
                Keeper::Here | Keeper::Nobody => Err(NotTaken(room)),
                Keeper::Peer(link) => link
                    .amend_until(when.now, change, room)
                    .map(|sequence| Some((link, sequence))),
            };
            match taken {
                Ok(on_its_way) => sent = on_its_way,
                Err(NotTaken(room)) => {
                    if let Some(room) = room {
                        self.errands.put(room, change);
                    }
                    return Err(CounterUnreachable);
                }
            }
        }
        // On the stream that the change went by: what is read is behind it.
        let reading = self.read_counter(&routes, when.deadline, ask).await?;
        // Unless the stream was made anew between the two.
        if sent.is_some_and(|(link, sequence)| !link.has_amended(sequence)) {
            return Err(CounterUnreachable);
        }
        Ok((reading.verdict, reading.owner))
    }
}
