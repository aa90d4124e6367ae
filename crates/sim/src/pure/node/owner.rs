//! The owner's and the standby's part: decides what other nodes ask, once, or passes it on.

use std::collections::BTreeMap;

use tollgate_cluster::{AskedAs, Behind, Course, DecidedRing, HOLD, Hold};
use tollgate_limit::{Ask, DecidedBy, Mode, Nanos};

use tollgate_wire::peer::{Said, Way};

use super::{
    CHECK_DEADLINE, Node, Output, Timer,
    entry::{Asked, Heard, Purpose},
};
use crate::pure::{
    frames::{Asks, CheckFrame, Origin, Reply, Verdicts, link_to},
    placements::node_of,
};

/// A check of another node that waits for the counts of its slot.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    caller: usize,
    frame: CheckFrame,
    until: Nanos,
}

/// Checks that were passed on, by caller and its number: since when, and what was said of each in the end.
pub(super) type PassedOn = BTreeMap<(Origin, u64), (Nanos, Option<Reply>)>;

/// A check that was passed on.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    caller: usize,
    frame: CheckFrame,
    until: Nanos,
}

impl Node {
    /// Another node asks.
    pub(super) fn asked_by(&mut self, now: Nanos, caller: usize, frame: CheckFrame) {
        if self.watch.is_late(now) {
            let number = frame.number;
            return self.reply(caller, Reply::TooLate { number });
        }
        let until = now.saturating_add(frame.budget);
        self.decide_or_pass_on(
            now,
            Parked {
                caller,
                frame,
                until,
            },
        );
    }

    /// What a check is called for ever: as the owner was asked first, if it was.
    fn origin(&self, caller: usize, frame: &CheckFrame) -> Option<(Origin, u64)> {
        let caller_boot = self.boot_of_caller(caller)?;
        let own = ((caller_boot, link_to(self.me)), frame.number);
        Some(match frame.way {
            Way::Owner | Way::Standby { number: 0, .. } => own,
            Way::Standby { link, number } => ((caller_boot, link), number),
            Way::Relayed { boot, link, number } => ((boot, link), number),
        })
    }

    pub(super) fn boot_of_caller(&self, caller: usize) -> Option<tollgate_wire::identity::BootId> {
        let (boot, _) = self.peers[caller].follower.as_ref()?;
        Some(*boot)
    }

    /// What was said to this check when it came before.
    fn decided_before(&self, parked: &Parked) -> Option<Verdicts> {
        let (origin, number) = self.origin(parked.caller, &parked.frame)?;
        let verdicts = self.rings.get(&origin)?.verdicts(number)?;
        Some(verdicts.iter().copied().collect())
    }

    fn say_again(&mut self, now: Nanos, parked: &Parked, verdicts: Verdicts) {
        let said = match asked_as(&parked.frame) {
            AskedAs::Standby => Some(self.said(DecidedBy::Standby, true)),
            AskedAs::Owner | AskedAs::Relayed => None,
        };
        self.reply_verdicts(now, parked.caller, parked.frame.number, verdicts, said);
    }

    fn decide_or_pass_on(&mut self, now: Nanos, parked: Parked) {
        let Parked {
            caller,
            frame,
            until,
        } = &parked;
        if self.boot_of_caller(*caller).is_none() {
            return;
        }
        if let Some(verdicts) = self.decided_before(&parked) {
            return self.say_again(now, &parked, verdicts);
        }
        let holds = frame.asks.iter().map(|it| self.states.hold(it.key.slot()));
        let hold = Hold::of_all(holds);
        let behind = self.behind(&frame.asks);
        match Course::of(asked_as(frame), &hold, (now, *until), behind.as_ref()) {
            Course::Decide { degraded } => self.decide_as_owner(now, &parked, degraded),
            Course::Hold => self.park(now, parked),
            Course::Relay(to, until) => match node_of(&to) {
                Some(to) if self.is_usable(to) => {
                    self.relay(now, to, parked, until.saturating_sub(now));
                }
                Some(_) | None => self.without_relay(now, &parked, false),
            },
            Course::DecideOnCopy { .. } => self.decide_for_owner(now, &parked, false),
            Course::NotOwner => {
                let number = frame.number;
                self.reply(*caller, Reply::NotOwner { number });
            }
        }
    }

    /// The owner of the slots by this node's view, if they have one and it is another.
    fn behind(&self, asks: &Asks) -> Option<Behind> {
        let owner = self.view.owner(asks.first()?.key.slot())?;
        let is_its = |ask: &Ask| self.view.owner(ask.key.slot()) == Some(owner);
        (owner != self.me && asks.iter().all(is_its)).then(|| Behind {
            owner: self.peers[owner].name.clone(),
            is_usable: self.is_usable(owner),
            has_copy: self.has_copy(asks),
        })
    }

    /// Whether the copies of all slots are complete since the boot of their owner.
    fn has_copy(&self, asks: &Asks) -> bool {
        asks.iter().all(|ask| {
            let slot = ask.key.slot();
            let owner = self.view.owner(slot);
            let boot = owner.and_then(|owner| self.view.boot_of(owner));
            // Of short windows there is no copy.
            let is_copied = ask.rule.window().span() >= MIN_COPIED_WINDOW;
            is_copied && boot.is_some_and(|boot| self.states.has_copy(slot, boot))
        })
    }

    fn decide_as_owner(&mut self, now: Nanos, parked: &Parked, degraded: bool) {
        let (asks, mode) = (&parked.frame.asks, parked.frame.mode);
        let mut verdicts = Verdicts::new();
        if degraded {
            self.store.decide_all(now, asks, mode, &mut verdicts);
        } else if !self.store.try_decide_all(now, asks, mode, &mut verdicts) {
            let number = parked.frame.number;
            return self.reply(parked.caller, Reply::NotOwner { number });
        }
        self.wrote(now);
        let said = degraded.then(|| self.said(DecidedBy::Owner, true));
        self.decided(now, parked, verdicts, said);
    }

    /// Nobody has answered what was passed on, or could be asked.
    fn without_relay(&mut self, now: Nanos, parked: &Parked, astray: bool) {
        let frame = &parked.frame;
        let behind = self.behind(&frame.asks);
        match Course::after_relay(asked_as(frame), behind.as_ref()) {
            Course::DecideOnCopy { .. } => self.decide_for_owner(now, parked, astray),
            Course::Decide { .. } | Course::Hold | Course::Relay(..) | Course::NotOwner => {
                let number = frame.number;
                self.reply(parked.caller, Reply::NotOwner { number });
            }
        }
    }

    fn passed_name(&self, caller: usize, frame: &CheckFrame) -> Option<(Origin, u64)> {
        let boot = self.boot_of_caller(caller)?;
        Some(((boot, link_to(self.me)), frame.number))
    }

    fn relay(&mut self, now: Nanos, to: usize, parked: Parked, budget: Nanos) {
        let Some((origin, number)) = self.origin(parked.caller, &parked.frame) else {
            return;
        };
        // Who asks again hears of the first.
        let over = now.saturating_sub(CHECK_DEADLINE.saturating_add(CHECK_DEADLINE));
        self.passed_on.retain(|_, (since, _)| *since >= over);
        let Some(name) = self.passed_name(parked.caller, &parked.frame) else {
            return;
        };
        match self.passed_on.get(&name) {
            Some((_, Some(reply))) => return self.reply(parked.caller, reply.clone()),
            Some((_, None)) => return,
            None => self.passed_on.insert(name, (now, None)),
        };
        let frame = CheckFrame {
            number: 0,
            budget,
            way: Way::Relayed {
                boot: origin.0,
                link: origin.1,
                number,
            },
            ..parked.frame.clone()
        };
        let relay = Relay {
            caller: parked.caller,
            frame: parked.frame,
            until: parked.until,
        };
        self.send_check(now, to, frame, Purpose::Relay(relay));
    }

    pub(super) fn relay_failed(&mut self, now: Nanos, relay: Relay, astray: bool) {
        let parked = Parked {
            caller: relay.caller,
            frame: relay.frame,
            until: relay.until,
        };
        // Who asked for the owner hears nothing while it may be counted there; its own time ends it.
        let unknown = !astray && asked_as(&parked.frame) == AskedAs::Owner;
        if parked.until > now && !self.watch.is_late(now) && !unknown {
            self.without_relay(now, &parked, astray);
        }
    }

    pub(super) fn relay_heard(&mut self, now: Nanos, relay: Relay, asked: &Asked, heard: Heard) {
        if asked.over && asked_as(&relay.frame) == AskedAs::Standby {
            // This node has decided itself. Who asked the owner under this name hears of it from the owner.
            if matches!(relay.frame.way, Way::Standby { number: 0, .. }) {
                self.give_back_late(now, asked, &heard);
            }
            return;
        }
        let said = heard.said.unwrap_or_else(|| Said {
            node: self.peers[heard.peer].name.as_str().to_owned(),
            boot: asked.boot,
            by: DecidedBy::Owner,
            degraded: false,
        });
        let reply = Reply::Verdicts {
            number: relay.frame.number,
            verdicts: heard.verdicts,
            said: Some(said),
            decided: heard.decided,
        };
        if let Some(name) = self.passed_name(relay.caller, &relay.frame)
            && let Some((_, said)) = self.passed_on.get_mut(&name)
        {
            *said = Some(reply.clone());
        }
        self.reply(relay.caller, reply);
    }

    /// Decides on the copy of another's counters.
    fn decide_for_owner(&mut self, now: Nanos, parked: &Parked, astray: bool) {
        let frame = &parked.frame;
        // The same question may have come twice and been passed on twice.
        if let Some(verdicts) = self.decided_before(parked) {
            return self.say_again(now, parked, verdicts);
        }
        let (verdicts, degraded) = self.decide_on_copy(now, &frame.asks, frame.mode);
        // Who says that another decides lives, and so does that one: the copy is behind it.
        let said = self.said(DecidedBy::Standby, degraded || astray);
        self.decided(now, parked, verdicts, Some(said));
    }

    /// Says what the copy says, and whether that may miss counts; what is counted is owed to the owner.
    pub(super) fn decide_on_copy(
        &mut self,
        now: Nanos,
        asks: &Asks,
        mode: Mode,
    ) -> (Verdicts, bool) {
        let complete = self.has_copy(asks);
        let mut verdicts = Verdicts::new();
        self.store.decide_all(now, asks, mode, &mut verdicts);
        self.wrote(now);
        for ask in asks {
            self.owe(now, ask.key);
        }
        (verdicts, !complete)
    }

    fn said(&self, by: DecidedBy, degraded: bool) -> Said {
        Said {
            node: self.name.as_str().to_owned(),
            boot: self.boot,
            by,
            degraded,
        }
    }

    /// Remembers and answers.
    fn decided(&mut self, now: Nanos, parked: &Parked, verdicts: Verdicts, said: Option<Said>) {
        if let Some((origin, number)) = self.origin(parked.caller, &parked.frame) {
            let keep = CHECK_DEADLINE.saturating_add(CHECK_DEADLINE);
            let ring = self
                .rings
                .entry(origin)
                .or_insert_with(|| DecidedRing::new(keep));
            if ring.verdicts(number).is_none() {
                ring.record(now, number, &verdicts);
            }
        }
        self.reply_verdicts(now, parked.caller, parked.frame.number, verdicts, said);
    }

    fn reply_verdicts(
        &mut self,
        now: Nanos,
        caller: usize,
        number: u64,
        verdicts: Verdicts,
        said: Option<Said>,
    ) {
        let decided = self.world(now);
        let reply = Reply::Verdicts {
            number,
            verdicts,
            said,
            decided,
        };
        self.reply(caller, reply);
    }

    fn park(&mut self, now: Nanos, parked: Parked) {
        let name = self.next_parked;
        self.next_parked = name.saturating_add(1);
        self.parked.insert(name, parked);
        let at = now.saturating_add(HOLD);
        self.out.push(Output::Timer(at, Timer::Parked(name)));
    }

    /// Slots have moved: what waited for them goes on.
    pub(super) fn retry_parked(&mut self, now: Nanos) {
        let ready = self.parked.iter().filter(|(_, parked)| {
            let mut asks = parked.frame.asks.iter();
            !asks.any(|ask| self.states.hold(ask.key.slot()) == Hold::Awaiting)
        });
        let ready: Vec<_> = ready.map(|(name, _)| *name).collect();
        for name in ready {
            if let Some(parked) = self.parked.remove(&name)
                && parked.until > now
            {
                self.decide_or_pass_on(now, parked);
            }
        }
    }

    pub(super) fn parked_long_enough(&mut self, now: Nanos, name: u64) {
        let Some(parked) = self.parked.remove(&name) else {
            return;
        };
        if self.watch.is_late(now) {
            let number = parked.frame.number;
            return self.reply(parked.caller, Reply::TooLate { number });
        }
        for ask in &parked.frame.asks {
            self.states.handle_overdue(ask.key.slot());
        }
        self.decide_or_pass_on(now, parked);
    }
}

/// Shorter windows are not copied.
const MIN_COPIED_WINDOW: Nanos = Nanos::from_millis(2_000);

const fn asked_as(frame: &CheckFrame) -> AskedAs {
    match frame.way {
        Way::Owner => AskedAs::Owner,
        Way::Standby { .. } => AskedAs::Standby,
        Way::Relayed { .. } => AskedAs::Relayed,
    }
}
