//! The way to each owner: a published picture of the view with a link for each other member.
//!
//! One task turns every new view into routes: links are made for new members, told of changed ones and
//! dropped with those that are gone. A check reads one picture and never sees half of a change.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tollgate_cluster::{MemberIndex, Placement};
use tollgate_limit::{Nanos, NodeId, SlotId};
use tollgate_wire::identity::Identity;

use crate::{
    clock::TokioClock,
    errands::Errands,
    link::{self, Dialler, Link},
    view::View,
};

/// One picture: who owns what, and how each owner is reached.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) view: Arc<View>,
    /// By place in the placement; `None` is this node itself.
    links: Vec<Option<Arc<Link>>>,
    /// By name, whatever the member's phase.
    by_node: BTreeMap<NodeId, Arc<Link>>,
}

impl Routes {
    /// Those of a node that knows of nobody and owns nothing yet.
    pub(crate) fn alone(identity: Identity) -> Self {
        let placement = Arc::new(Placement::new(&[]));
        let view = View {
            placement,
            own: None,
            identity,
            members: Arc::new([]),
        };
        Self {
            view: Arc::new(view),
            links: Vec::new(),
            by_node: BTreeMap::new(),
        }
    }

    /// Who owns a slot.
    pub(crate) fn owner(&self, slot: SlotId) -> Option<MemberIndex> {
        self.view.placement.owner(slot)
    }

    /// Whether this node owns a slot.
    #[cfg(test)]
    pub(crate) fn is_own(&self, slot: SlotId) -> bool {
        self.view.own.is_some() && self.owner(slot) == self.view.own
    }

    /// The link to who decides in a slot that this node gave to a member: that member, unless these routes name
    /// another owner by now.
    pub(crate) fn link_given(&self, slot: SlotId, to: &NodeId) -> Option<&Arc<Link>> {
        match self.owner(slot) {
            Some(owner) if self.view.own != Some(owner) => self.link(owner),
            Some(_) | None => self.link_to(to),
        }
    }

    /// The link to a member that owns something; `None` for this node.
    pub(crate) fn link(&self, owner: MemberIndex) -> Option<&Arc<Link>> {
        self.links.get(owner.index())?.as_ref()
    }

    /// The same by its place in the placement.
    pub(crate) fn link_at(&self, owner: usize) -> Option<&Arc<Link>> {
        self.links.get(owner)?.as_ref()
    }

    /// The link to a member of this name.
    pub(crate) fn link_to(&self, node: &NodeId) -> Option<&Arc<Link>> {
        self.by_node.get(node)
    }

    /// All links, by name.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.by_node.values()
    }

    /// When a datagram of a member came last.
    pub(crate) fn last_heard(&self, node: &NodeId) -> Option<Nanos> {
        self.link_to(node)?.last_heard()
    }
}

/// Turns views into routes.
#[derive(Debug)]
pub(crate) struct Router {
    pub(crate) clock: TokioClock,
    pub(crate) dialler: Dialler,
    pub(crate) errands: Arc<Errands>,
    pub(crate) routes: Arc<ArcSwap<Routes>>,
    /// Notified after each change.
    pub(crate) changed: Arc<Notify>,
    /// Links made so far: each has a number of its own, since each counts its asks from the start.
    pub(crate) links: u64,
}

/// A link that is kept up, until this is dropped.
#[derive(Debug)]
struct Kept {
    link: Arc<Link>,
    identity: watch::Sender<Identity>,
}

impl Router {
    /// Publishes routes for each new view, until control is gone.
    pub(crate) async fn run(mut self, mut views: watch::Receiver<Arc<View>>) {
        let mut kept = BTreeMap::new();
        loop {
            let view = Arc::clone(&views.borrow_and_update());
            // Before anybody asks by the new routes.
            self.dialler.owner.handle_view(&view);
            self.keep(&mut kept, &view);
            self.routes.store(Arc::new(routes_of(view, &kept)));
            self.changed.notify_waiters();
            if views.changed().await.is_err() {
                return;
            }
        }
    }

    fn keep(&mut self, kept: &mut BTreeMap<NodeId, Kept>, view: &View) {
        kept.retain(|node, _| view.members.iter().any(|member| member.node == *node));
        for member in view.members.iter() {
            match kept.get(&member.node) {
                Some(known) => {
                    known.identity.send_if_modified(|identity| {
                        let is_new = identity != member;
                        identity.clone_from(member);
                        is_new
                    });
                }
                None => {
                    kept.insert(member.node.clone(), self.start(member));
                }
            }
        }
    }

    fn start(&mut self, member: &Identity) -> Kept {
        let (clock, errands) = (self.clock.clone(), Arc::clone(&self.errands));
        let switches = Arc::clone(&self.dialler.owner.switches);
        let peer = (member.node.clone(), member.boot);
        let link = Arc::new(Link::new(peer, self.links, clock, (errands, switches)));
        let mut dialler = self.dialler.clone();
        dialler.hello.link = self.links;
        self.links += 1;
        let (identity, changes) = watch::channel(member.clone());
        tokio::spawn(link::run(Arc::clone(&link), dialler, changes));
        Kept { link, identity }
    }
}

fn routes_of(view: Arc<View>, kept: &BTreeMap<NodeId, Kept>) -> Routes {
    let by_node: BTreeMap<_, _> = kept
        .iter()
        .map(|(node, kept)| (node.clone(), Arc::clone(&kept.link)))
        .collect();
    let members = view.placement.members().iter();
    let links = members
        .map(|member| by_node.get(&member.node).map(Arc::clone))
        .collect();
    Routes {
        view,
        links,
        by_node,
    }
}
