//! Publishing views.
//!
//! Invariant: readers see whole views, in order; a view is built once however many changes led to it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tollgate_cluster::Membership;

use crate::view::View;

/// Where views are read.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) views: Arc<ArcSwap<View>>,
    pub(super) changes: watch::Receiver<Arc<View>>,
}

/// Where views are published.
#[derive(Debug)]
pub(super) struct Publisher {
    views: Arc<ArcSwap<View>>,
    changes: watch::Sender<Arc<View>>,
}

impl Publisher {
    /// Publishes the first view.
    pub(super) fn new(membership: &Membership) -> (Self, Published) {
        let first = Arc::new(view_of(membership));
        let views = Arc::new(ArcSwap::new(first.clone()));
        let (sender, changes) = watch::channel(first);
        let publisher = Self {
            views: views.clone(),
            changes: sender,
        };
        (publisher, Published { views, changes })
    }

    /// Publishes the next view.
    pub(super) fn publish(&self, membership: &Membership) {
        let view = Arc::new(view_of(membership));
        self.views.store(view.clone());
        self.changes.send_replace(view);
    }
}

fn view_of(membership: &Membership) -> View {
    let placement = membership.placement();
    let identity = membership.own().clone();
    let own = placement.index_of(&identity.node);
    let members = membership
        .peers()
        .map(|member| member.identity.clone())
        .collect();
    View {
        placement,
        own,
        identity,
        members,
    }
}
