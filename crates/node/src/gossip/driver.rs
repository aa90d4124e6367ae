//! stub
use tokio::sync::mpsc;
use super::{ControlStart, events::Command, publisher::{Published, Publisher}};
pub(super) struct Driver { start: ControlStart, commands: mpsc::Receiver<Command> }
impl Driver {
    pub(super) fn new(start: ControlStart, commands: mpsc::Receiver<Command>) -> (Self, Published) {
        let membership = tollgate_cluster::Membership::new(start.identity.clone());
        let (_publisher, published) = Publisher::new(&membership);
        (Self { start, commands }, published)
    }
    pub(super) async fn run(mut self) {
        tracing::debug!(identity = ?self.start.identity, "control");
        while self.commands.recv().await.is_some() {}
    }
}
