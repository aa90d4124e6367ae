//! Answers of one stream that come later than the batch they were asked in.
//!
//! Tasks put them here, the stream's task writes them. Bounded: at most [`MAX_LATER`] checks of a stream
//! are under way or wait to be written; what comes above is told that it is too late, nothing is counted.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tollgate_wire::CodecError;

/// The most checks of one stream that are answered later.
pub(super) const MAX_LATER: usize = 1_024;

/// What waits to be written.
#[derive(Debug)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    ready: Notify,
    room: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// The room that the answers take until they are written.
    taken: Option<Place>,
}

/// A place for one answer.
#[derive(Debug)]
pub(super) struct Place(OwnedSemaphorePermit);

impl Outbox {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            ready: Notify::new(),
            room: Arc::new(Semaphore::new(MAX_LATER)),
        }
    }

    /// A place for an answer; `None` if there is none left.
    pub(super) fn reserve(&self) -> Option<Place> {
        let permit = Arc::clone(&self.room).try_acquire_owned();
        permit.ok().map(Place)
    }

    /// Adds an answer and wakes the stream's task.
    pub(super) fn put(
        &self,
        place: Place,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        let mut waiting = self.waiting.lock();
        let Waiting { bytes, taken } = &mut *waiting;
        write(bytes)?;
        match taken {
            Some(taken) => taken.0.merge(place.0),
            None => *taken = Some(place),
        }
        drop(waiting);
        self.ready.notify_one();
        Ok(())
    }

    /// Waits for answers and moves them into `out`. Cancel safe.
    pub(super) async fn take(&self, out: &mut Vec<u8>) {
        loop {
            self.ready.notified().await;
            let mut waiting = self.waiting.lock();
            if waiting.bytes.is_empty() {
                continue;
            }
            out.clear();
            std::mem::swap(&mut waiting.bytes, out);
            waiting.taken = None;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LATER, Outbox};

    #[tokio::test]
    async fn places_are_bounded_and_free_again_when_answers_are_written() {
        let outbox = Outbox::new();
        let places: Vec<_> = (0..MAX_LATER).filter_map(|_| outbox.reserve()).collect();
        assert_eq!(places.len(), MAX_LATER);
        assert!(outbox.reserve().is_none());
        for place in places {
            let put = outbox.put(place, |bytes| {
                bytes.push(7);
                Ok(())
            });
            assert_eq!(put, Ok(()));
        }
        assert!(outbox.reserve().is_none(), "nothing is written yet");
        let mut out = Vec::new();
        outbox.take(&mut out).await;
        assert_eq!(out, vec![7; MAX_LATER]);
        assert!(outbox.reserve().is_some());
    }
}
