//! Several nodes that hand slots to each other over streams that may break, with views that differ.
//!
//! A stream is two queues, in order each; a broken one loses what is in both. News of a member reach each node
//! in order, news of two members in any order. What a node has counted is a set of numbers for each of some
//! slots, so that merging is a union.

mod rest;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use tollgate_limit::{Nanos, NodeId, SlotId, SlotSet};
use tollgate_wire::identity::{BootId, Phase};

use crate::{
    motion::{Motion, MotionAction, MotionView},
    placement::Placement,
};

pub(super) type Member = (BootId, Phase);
type Counts = BTreeMap<SlotId, BTreeSet<u64>>;

/// Slots in which checks are counted.
const COUNTED: u16 = 512;

/// Every one of them is this far from the next.
const APART: u16 = 128;

#[derive(Debug)]
enum Order {
    Take(SlotSet),
    Acked(SlotSet),
    Offer(SlotSet),
}

#[derive(Debug)]
enum Delivery {
    Copied(SlotSet),
    Final(SlotSet, Counts),
}

#[derive(Debug, Default)]
struct Stream {
    is_up: bool,
    orders: VecDeque<Order>,
    deliveries: VecDeque<Delivery>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) motion: Motion,
    boot: BootId,
    pub(super) phase: Phase,
    /// What it knows of the others.
    pub(super) seen: BTreeMap<NodeId, Member>,
    /// Where its store would decide.
    open: SlotSet,
    /// Where it says that it decides.
    pub(super) counts: Counts,
    /// What it said that it decides in, once for each look.
    pub(super) held: SlotSet,
    pub(super) forgot: usize,
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) now: Nanos,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    /// By follower and source.
    streams: BTreeMap<(NodeId, NodeId), Stream>,
    /// By whom it is told and of whom.
    news: BTreeMap<(NodeId, NodeId), VecDeque<Option<Member>>>,
    placements: BTreeMap<Vec<NodeId>, Arc<Placement>>,
    boots: u64,
    checks: u64,
    /// What was counted in each slot and must not be lost.
    pub(super) counted: Counts,
    /// The largest number of slots that two nodes held at once.
    pub(super) doubles: usize,
}

pub(super) fn name(number: usize) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

impl World {
    /// One active node.
    pub(super) fn new() -> Self {
        let mut world = Self::default();
        world.join(&name(0));
        world.set_phase(&name(0), Phase::Active);
        world
    }

    /// A node starts, knowing what another one knows.
    pub(super) fn join(&mut self, node: &NodeId) {
        self.boots += 1;
        let member = (BootId(self.boots), Phase::Joining);
        let mut seen = BTreeMap::new();
        if let Some((seed, known)) = self.nodes.iter().find(|(other, _)| *other != node) {
            seen = known.seen.clone();
            seen.insert(seed.clone(), (known.boot, known.phase));
            seen.remove(node);
            let as_seed = self.news.iter().filter(|((to, _), _)| to == seed);
            let as_seed = as_seed.map(|((_, of), news)| (of.clone(), news.clone()));
            let as_seed: Vec<_> = as_seed.filter(|(of, _)| of != node).collect();
            for (of, news) in as_seed {
                self.news.insert((node.clone(), of), news);
            }
        }
        let others: Vec<_> = self.nodes.keys().cloned().collect();
        let started = Node {
            motion: Motion::new(),
            boot: member.0,
            phase: member.1,
            seen,
            open: SlotSet::all(),
            counts: Counts::new(),
            held: SlotSet::new(),
            forgot: 0,
        };
        self.nodes.insert(node.clone(), started);
        self.tell(node, Some(member));
        for other in others {
            self.streams
                .insert((node.clone(), other.clone()), Stream::default());
            self.streams
                .insert((other, node.clone()), Stream::default());
        }
        self.look(node);
    }

    pub(super) fn set_phase(&mut self, node: &NodeId, phase: Phase) {
        let Some(known) = self.nodes.get_mut(node) else {
            return;
        };
        known.phase = phase;
        let member = (known.boot, phase);
        self.tell(node, Some(member));
        self.look(node);
    }

    /// A node ends without a word; what only it had counted may be lost.
    pub(super) fn crash(&mut self, node: &NodeId) {
        let Some(gone) = self.nodes.remove(node) else {
            return;
        };
        for (slot, numbers) in &gone.counts {
            if let Some(counted) = self.counted.get_mut(slot) {
                counted.retain(|number| !numbers.contains(number));
            }
        }
        self.end(node);
    }

    /// A node ends that has handed over all.
    pub(super) fn depart(&mut self, node: &NodeId) {
        self.nodes.remove(node);
        self.end(node);
    }

    fn end(&mut self, node: &NodeId) {
        let of_it = |(one, other): &(NodeId, NodeId)| one == node || other == node;
        let streams: Vec<_> = self.streams.keys().filter(|s| of_it(s)).cloned().collect();
        for stream in streams {
            self.cut(&stream);
            self.streams.remove(&stream);
        }
        self.news.retain(|(to, _), _| to != node);
        self.tell(node, None);
    }

    /// All others are told that a node is gone, which is not so; it hears of that and joins again.
    pub(super) fn accuse(&mut self, node: &NodeId) {
        self.tell(node, None);
        self.set_phase(node, Phase::Joining);
    }

    fn tell(&mut self, of: &NodeId, member: Option<Member>) {
        for to in self.nodes.keys().filter(|to| *to != of) {
            let news = self.news.entry((to.clone(), of.clone())).or_default();
            news.push_back(member);
        }
    }

    /// A node hears the next of some news.
    pub(super) fn hear(&mut self, which: usize) -> bool {
        let waiting = self.news.iter().filter(|(_, news)| !news.is_empty());
        let waiting: Vec<_> = waiting.map(|(between, _)| between.clone()).collect();
        let Some((to, of)) = pick(&waiting, which) else {
            return false;
        };
        let news = self.news.get_mut(&(to.clone(), of.clone()));
        let news = news.and_then(VecDeque::pop_front).flatten();
        let node = self.nodes.get_mut(&to).unwrap();
        match news {
            Some(member) => node.seen.insert(of, member),
            None => node.seen.remove(&of),
        };
        self.look(&to);
        true
    }

    /// A stream comes up.
    pub(super) fn connect(&mut self, which: usize) -> bool {
        let down = self.streams.iter().filter(|(_, stream)| !stream.is_up);
        let down: Vec<_> = down.map(|(between, _)| between.clone()).collect();
        let Some((follower, source)) = pick(&down, which) else {
            return false;
        };
        let key = (follower.clone(), source.clone());
        self.streams.get_mut(&key).unwrap().is_up = true;
        let (from, to) = (self.nodes[&follower].boot, self.nodes[&source].boot);
        let now = self.now;
        self.motion(&source).handle_followed(now, &follower, from);
        self.act(&source);
        self.motion(&follower).handle_connected(now, &source, to);
        self.act(&follower);
        true
    }

    /// A stream breaks.
    pub(super) fn disconnect(&mut self, which: usize) {
        let up = self.streams.iter().filter(|(_, stream)| stream.is_up);
        let up: Vec<_> = up.map(|(between, _)| between.clone()).collect();
        if let Some(stream) = pick(&up, which) {
            self.cut(&stream);
        }
    }

    fn cut(&mut self, stream: &(NodeId, NodeId)) {
        let was = self.streams.insert(stream.clone(), Stream::default());
        let (follower, source) = stream;
        if was.is_some_and(|was| was.is_up) && self.nodes.contains_key(follower) {
            let now = self.now;
            self.motion(follower).handle_disconnected(now, source);
            self.act(follower);
        }
    }

    /// The next message of some stream comes.
    pub(super) fn deliver(&mut self, which: usize) -> bool {
        let mut waiting = Vec::new();
        for (between, stream) in &self.streams {
            if !stream.orders.is_empty() {
                waiting.push((between.clone(), false));
            }
            if !stream.deliveries.is_empty() {
                waiting.push((between.clone(), true));
            }
        }
        let Some((between, is_delivery)) = pick(&waiting, which) else {
            return false;
        };
        let stream = self.streams.get_mut(&between).unwrap();
        let (follower, source) = between;
        let now = self.now;
        if is_delivery {
            let delivery = stream.deliveries.pop_front().unwrap();
            let node = self.nodes.get_mut(&follower).unwrap();
            match delivery {
                Delivery::Copied(slots) => node.motion.handle_copied(now, &source, &slots),
                Delivery::Final(slots, counts) => {
                    for (slot, numbers) in counts {
                        node.counts.entry(slot).or_default().extend(numbers);
                    }
                    node.motion.handle_final(now, &source, &slots);
                }
            }
            self.act(&follower);
        } else {
            let order = stream.orders.pop_front().unwrap();
            let motion = self.motion(&source);
            match order {
                Order::Take(slots) => motion.handle_take(now, &follower, &slots),
                Order::Acked(slots) => motion.handle_acked(now, &follower, &slots),
                Order::Offer(slots) => motion.handle_offer(now, &follower, &slots),
            }
            self.act(&source);
        }
        true
    }

    /// Time passes.
    pub(super) fn wait(&mut self, millis: u64) {
        self.now = self.now.saturating_add(Nanos::from_millis(millis));
        let nodes: Vec<_> = self.nodes.keys().cloned().collect();
        for node in nodes {
            if self.nodes[&node].motion.poll_timeout() <= Some(self.now) {
                let now = self.now;
                self.motion(&node).handle_timeout(now);
                self.act(&node);
            }
        }
    }

    /// A node that holds the slot counts a check.
    pub(super) fn check(&mut self, which: usize) {
        let slot = SlotId::new(u16::try_from(which % usize::from(COUNTED)).unwrap() * APART);
        let holders = self.nodes.values_mut();
        let holder = holders.filter(|node| node.motion.states().holds(slot));
        if let Some(node) = holder.last() {
            self.checks += 1;
            node.counts.entry(slot).or_default().insert(self.checks);
            self.counted.entry(slot).or_default().insert(self.checks);
        }
    }

    fn motion(&mut self, node: &NodeId) -> &mut Motion {
        &mut self.nodes.get_mut(node).unwrap().motion
    }

    /// A node sees its view.
    fn look(&mut self, node: &NodeId) {
        let known = &self.nodes[node];
        let active = known.seen.iter().filter(|(_, m)| m.1 == Phase::Active);
        let mut active: Vec<_> = active.map(|(node, _)| node.clone()).collect();
        let mut with_it = active.clone();
        with_it.push(node.clone());
        let prospective = (known.phase == Phase::Joining).then_some(with_it.clone());
        if known.phase == Phase::Active {
            active = with_it;
        }
        let members = known.seen.iter().map(|(node, m)| (node.clone(), m.0, m.1));
        let mut view = MotionView {
            placement: Arc::new(Placement::new(&[])),
            own: None,
            phase: known.phase,
            prospective: None,
            members: members.collect(),
        };
        view.placement = self.placement(active);
        view.own = view.placement.index_of(node);
        view.prospective = prospective.map(|members| self.placement(members));
        let now = self.now;
        self.motion(node).handle_view(now, &view);
        self.act(node);
    }

    pub(super) fn placement(&mut self, mut members: Vec<NodeId>) -> Arc<Placement> {
        members.sort();
        let placed: Vec<_> = members.iter().map(|node| (node.clone(), 1)).collect();
        let made = self.placements.entry(members);
        Arc::clone(made.or_insert_with(|| Arc::new(Placement::new(&placed))))
    }

    /// Carries out what a node wants done.
    fn act(&mut self, name: &NodeId) {
        let mut has_acted = false;
        while let Some(action) = self.motion(name).poll_action() {
            has_acted |= !matches!(action, MotionAction::Take(..) | MotionAction::Offer(..));
            let node = self.nodes.get_mut(name).unwrap();
            match action {
                MotionAction::Open(slots) => node.open.extend(&slots),
                MotionAction::Close(slots) => node.open.subtract(&slots),
                MotionAction::Forget(slots) => {
                    node.forgot += slots.len();
                    node.counts.retain(|slot, _| !slots.contains(*slot));
                }
                MotionAction::Subscribe(source, slots) => {
                    let key = (name.clone(), source);
                    let stream = self.streams.get_mut(&key).filter(|stream| stream.is_up);
                    if let Some(stream) = stream.filter(|_| !slots.is_empty()) {
                        stream.deliveries.push_back(Delivery::Copied(slots));
                    }
                }
                MotionAction::Take(to, slots) => self.order(name, to, Order::Take(slots)),
                MotionAction::Acked(to, slots) => self.order(name, to, Order::Acked(slots)),
                MotionAction::Offer(to, slots) => self.order(name, to, Order::Offer(slots)),
                MotionAction::Give(follower, slots) => {
                    node.open.subtract(&slots);
                    let counts = node.counts.iter();
                    let counts = counts.filter(|(slot, _)| slots.contains(**slot));
                    let counts = counts.map(|(slot, numbers)| (*slot, numbers.clone()));
                    let counts = counts.collect();
                    let last_word = Delivery::Final(slots, counts);
                    let stream = self.streams.get_mut(&(follower, name.clone()));
                    if let Some(stream) = stream.filter(|stream| stream.is_up) {
                        stream.deliveries.push_back(last_word);
                    }
                }
            }
        }
        if has_acted {
            self.watch(name);
        }
    }

    fn order(&mut self, from: &NodeId, to: NodeId, order: Order) {
        let stream = self.streams.get_mut(&(from.clone(), to));
        if let Some(stream) = stream.filter(|stream| stream.is_up) {
            stream.orders.push_back(order);
        }
    }

    /// Looks where a node decides now: what it says is what its store does, and who else does.
    fn watch(&mut self, name: &NodeId) {
        let node = self.nodes.get_mut(name).unwrap();
        let states = node.motion.states();
        let slots = (0..=u16::MAX).map(SlotId::new);
        node.held = slots.filter(|slot| states.holds(*slot)).collect();
        assert!(
            node.held.without(&node.open).is_empty(),
            "shown as held and closed"
        );
        let held = node.held.clone();
        for (other, node) in &self.nodes {
            if other != name {
                self.doubles = self.doubles.max(held.common(&node.held).len());
            }
        }
    }
}

fn pick<T: Clone>(from: &[T], which: usize) -> Option<T> {
    from.get(which.checked_rem(from.len())?).cloned()
}
