//! The streams of those that follow this node.
//!
//! A peer may have more than one for a moment: it opens a new one when this node's identity changes, and two
//! streams need not arrive in the order in which they were opened. The one that came last is given slots; when it
//! ends another that still lives takes its place.
//!
//! Knows nothing of what is told. Invariant: while a stream of a peer lives, one is the latest; at most
//! [`MAX_STREAMS`] of one peer are known.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tollgate_cluster::Source;
use tollgate_limit::NodeId;
use tollgate_wire::identity::BootId;

/// The most streams of one peer; the oldest is told nothing any more.
const MAX_STREAMS: usize = 4;

/// One stream of a follower.
#[derive(Debug, Default)]
pub(super) struct Follower {
    pub(super) source: Mutex<Source>,
    pub(super) ready: Notify,
}

/// The streams of each peer, the latest last.
#[derive(Debug, Default)]
pub(super) struct Followers(BTreeMap<NodeId, Vec<(BootId, Arc<Follower>)>>);

impl Followers {
    /// A stream of that boot of a peer has come.
    pub(super) fn add(&mut self, peer: &NodeId, boot: BootId) -> Arc<Follower> {
        let follower = Arc::<Follower>::default();
        let streams = self.0.entry(peer.clone()).or_default();
        if streams.len() >= MAX_STREAMS {
            streams.remove(0);
        }
        streams.push((boot, Arc::clone(&follower)));
        follower
    }

    /// A stream has ended. If it was the latest and another one lives, the boot of that one: it is as if it had
    /// come just now.
    pub(super) fn remove(&mut self, peer: &NodeId, ended: &Arc<Follower>) -> Option<BootId> {
        let streams = self.0.get_mut(peer)?;
        let at = streams
            .iter()
            .position(|(_, known)| Arc::ptr_eq(known, ended))?;
        streams.remove(at);
        let was_latest = at == streams.len();
        let latest = streams.last().map(|(boot, _)| *boot);
        if latest.is_none() {
            self.0.remove(peer);
        }
        latest.filter(|_| was_latest)
    }

    /// The latest stream of a peer.
    pub(super) fn latest(&self, peer: &NodeId) -> Option<Arc<Follower>> {
        let (_, follower) = self.0.get(peer)?.last()?;
        Some(Arc::clone(follower))
    }

    /// All streams: each may be the latest once more, and then lacks nothing.
    pub(super) fn all(&self) -> Vec<Arc<Follower>> {
        let streams = self.0.values().flatten();
        streams.map(|(_, follower)| Arc::clone(follower)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tollgate_limit::NodeId;
    use tollgate_wire::identity::BootId;

    use super::{Followers, MAX_STREAMS};

    #[test]
    fn a_stream_that_lives_takes_the_place_of_one_that_ended() {
        let peer = NodeId::new("n1").unwrap();
        let mut followers = Followers::default();
        let lives = followers.add(&peer, BootId(2));
        // Opened before the other, and overtaken.
        let dies = followers.add(&peer, BootId(1));
        assert!(Arc::ptr_eq(&followers.latest(&peer).unwrap(), &dies));
        assert_eq!(followers.remove(&peer, &dies), Some(BootId(2)));
        assert!(Arc::ptr_eq(&followers.latest(&peer).unwrap(), &lives));
        assert_eq!(followers.remove(&peer, &dies), None, "it is gone already");
        assert_eq!(followers.remove(&peer, &lives), None);
        assert!(followers.latest(&peer).is_none());
        assert!(followers.all().is_empty());
    }

    #[test]
    fn one_that_was_overtaken_ends_unnoticed() {
        let peer = NodeId::new("n1").unwrap();
        let mut followers = Followers::default();
        let old = followers.add(&peer, BootId(1));
        let new = followers.add(&peer, BootId(1));
        assert_eq!(followers.all().len(), 2);
        assert_eq!(followers.remove(&peer, &old), None);
        assert!(Arc::ptr_eq(&followers.latest(&peer).unwrap(), &new));
    }

    #[test]
    fn streams_of_one_peer_are_bounded() {
        let peer = NodeId::new("n1").unwrap();
        let mut followers = Followers::default();
        for boot in 0..100 {
            followers.add(&peer, BootId(boot));
        }
        assert_eq!(followers.all().len(), MAX_STREAMS);
    }
}
