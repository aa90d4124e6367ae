//! One stream towards a peer: frames are written into a buffer by whoever asks, and the stream's
//! writer takes the whole buffer for one write.
//!
//! So batches form while a write is under way, and a lone frame waits for nobody. Invariants: a frame
//! whose deadline has passed before it was taken is not sent; a shape always is; the buffer has a
//! bound.

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::Notify;
use tollgate_limit::{Nanos, Rule};
use tollgate_wire::{
    CodecError, frame,
    peer::{Request, put_request},
};

use super::shapes::{Shape, Shapes};

/// The most bytes that wait for a stream's writer.
const MAX_WAITING: usize = 256 * 1024;
/// The id of frames that are never answered.
const UNANSWERED: u64 = 0;

/// What waits for one stream.
#[derive(Debug, Default)]
pub(super) struct Lane {
    waiting: Mutex<Waiting>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    shapes: Shapes,
}

/// Where a frame ends, and until when it is of use.
#[derive(Clone, Copy, Debug)]
struct Mark {
    end: usize,
    deadline: Nanos,
}

/// Frames are not taken. Nothing was written; the caller falls back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneFull;

/// Writes one frame and the shapes that it needs.
#[derive(Debug)]
pub(super) struct FrameWriter<'a> {
    waiting: &'a mut Waiting,
    /// The numbers that the frame names.
    in_use: SmallVec<[u16; 4]>,
}

impl FrameWriter<'_> {
    /// The number of a rule on this stream; tells the peer first if it is new.
    pub(super) fn shape(&mut self, rule: &Rule) -> Result<u16, CodecError> {
        match self.waiting.shapes.number(rule, &self.in_use) {
            Shape::Known(number) => {
                self.in_use.push(number);
                Ok(number)
            }
            Shape::New(number) => {
                self.in_use.push(number);
                let request = Request::Shape {
                    number,
                    rule: *rule,
                };
                let bytes = &mut self.waiting.bytes;
                frame::put(bytes, UNANSWERED, |body| put_request(body, &request))?;
                let end = bytes.len();
                self.waiting.marks.push(Mark {
                    end,
                    deadline: Nanos::MAX,
                });
                Ok(number)
            }
        }
    }

    /// Writes the frame, once.
    pub(super) fn frame(
        &mut self,
        id: u64,
        deadline: Nanos,
        body: impl FnOnce(&mut Vec<u8>) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        frame::put(&mut self.waiting.bytes, id, body)?;
        self.waiting.marks.push(Mark {
            end: self.waiting.bytes.len(),
            deadline,
        });
        Ok(())
    }
}

impl Lane {
    /// Lets `write` add one frame, and wakes the stream's writer.
    pub(super) fn put(
        &self,
        write: impl FnOnce(&mut FrameWriter<'_>) -> Result<(), CodecError>,
    ) -> Result<(), LaneFull> {
        let mut waiting = self.waiting.lock();
        if waiting.bytes.len() >= MAX_WAITING {
            return Err(LaneFull);
        }
        let was_empty = waiting.bytes.is_empty();
        let written = write(&mut FrameWriter {
            waiting: &mut waiting,
            in_use: SmallVec::new(),
        });
        drop(waiting);
        if was_empty {
            self.ready.notify_one();
        }
        written.map_err(|_error| LaneFull)
    }

    /// Forgets all that waits, and which rules the peer knows: the stream is a new one.
    pub(super) fn restart(&self) {
        let mut waiting = self.waiting.lock();
        waiting.bytes.clear();
        waiting.marks.clear();
        waiting.shapes = Shapes::default();
    }

    /// Waits for frames and moves those that are still of use at `now()` into `out`. Cancel safe.
    pub(super) async fn take(&self, now: impl Fn() -> Nanos, out: &mut Vec<u8>) {
        loop {
            self.ready.notified().await;
            let mut waiting = self.waiting.lock();
            if waiting.bytes.is_empty() {
                continue;
            }
            out.clear();
            let Waiting { bytes, marks, .. } = &mut *waiting;
            let now = now();
            if marks.iter().all(|mark| mark.deadline >= now) {
                std::mem::swap(bytes, out);
            } else {
                keep_useful(bytes, marks, now, out);
            }
            bytes.clear();
            marks.clear();
            if !out.is_empty() {
                return;
            }
        }
    }
}

fn keep_useful(bytes: &[u8], marks: &[Mark], now: Nanos, out: &mut Vec<u8>) {
    let mut start = 0;
    for mark in marks {
        if mark.deadline >= now {
            out.extend_from_slice(&bytes[start..mark.end]);
        }
        start = mark.end;
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::Nanos;
    use tollgate_wire::{
        frame::split,
        peer::{Request, put_request},
    };

    use super::{Lane, LaneFull, MAX_WAITING};
    use crate::link::shapes::{MAX_SHAPES, tests::rule};

    fn put(lane: &Lane, id: u64, deadline: u64) -> Result<(), LaneFull> {
        let deadline = Nanos::from_millis(deadline);
        lane.put(|writer| writer.frame(id, deadline, |body| put_request(body, &Request::Ping)))
    }

    fn ids(mut bytes: &[u8]) -> Vec<u64> {
        let mut ids = Vec::new();
        while let Some((frame, length)) = split(bytes, 1 << 20).unwrap() {
            ids.push(frame.id);
            bytes = &bytes[length..];
        }
        ids
    }

    #[tokio::test]
    async fn all_that_waits_leaves_in_one_piece() {
        let lane = Lane::default();
        (1..=3).for_each(|id| put(&lane, id, 10).unwrap());
        let mut out = Vec::new();
        lane.take(|| Nanos::ZERO, &mut out).await;
        assert_eq!(ids(&out), [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_frame_whose_deadline_has_passed_is_not_sent() {
        let lane = Lane::default();
        put(&lane, 1, 10).unwrap();
        put(&lane, 2, 30).unwrap();
        put(&lane, 3, 10).unwrap();
        let mut out = Vec::new();
        lane.take(|| Nanos::from_millis(20), &mut out).await;
        assert_eq!(ids(&out), [2]);
    }

    #[tokio::test]
    async fn a_full_lane_takes_nothing() {
        let lane = Lane::default();
        let taken = (0..).take_while(|id| put(&lane, *id, 10).is_ok()).count();
        let mut out = Vec::new();
        lane.take(|| Nanos::ZERO, &mut out).await;
        assert_eq!(ids(&out).len(), taken);
        assert!(out.len() < MAX_WAITING + 64);
        assert_eq!(put(&lane, 0, 10), Ok(()), "there is room again");
    }

    #[tokio::test]
    async fn a_frame_names_each_of_its_rules_by_a_number_of_its_own() {
        let lane = Lane::default();
        let mut out = Vec::new();
        for limit in 0..u64::from(MAX_SHAPES) {
            lane.put(|writer| writer.shape(&rule(limit)).map(drop))
                .unwrap();
            lane.take(|| Nanos::ZERO, &mut out).await;
        }
        // The oldest of all and a new one, for which no number is free.
        let mut numbers = Vec::new();
        lane.put(|writer| {
            numbers.push(writer.shape(&rule(0))?);
            numbers.push(writer.shape(&rule(99_999))?);
            Ok(())
        })
        .unwrap();
        assert_eq!(numbers, [0, 1]);
    }
}
