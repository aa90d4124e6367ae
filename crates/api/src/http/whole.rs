//! The body of an answer: whole in memory, handed out in pieces.
//!
//! A connection copies what it is handed into its one write buffer, so that head and body leave
//! together. The bound of a piece is the bound of what a large answer makes that buffer grow by.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The most bytes of one piece.
pub(super) const MAX_PIECE: usize = 1 << 14;

/// A body that is whole in memory.
#[derive(Debug, Default)]
pub(super) struct Whole(Bytes);

impl Whole {
    pub(super) const fn new(body: Bytes) -> Self {
        Self(body)
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let rest = &mut self.0;
        let piece = match rest.len() {
            0 => return Poll::Ready(None),
            1..=MAX_PIECE => std::mem::take(rest),
            _ => rest.split_to(MAX_PIECE),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.0.len()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::BodyExt as _;
    use hyper::body::Body as _;

    use super::{MAX_PIECE, Whole};

    #[tokio::test]
    async fn pieces_are_bounded() {
        let sizes: [(usize, &[usize]); 4] = [
            (0, &[]),
            (5, &[5]),
            (MAX_PIECE, &[MAX_PIECE]),
            (2 * MAX_PIECE + 1, &[MAX_PIECE, MAX_PIECE, 1]),
        ];
        for (length, right) in sizes {
            let mut whole = Whole::new(Bytes::from(vec![7; length]));
            let (mut pieces, mut left) = (Vec::new(), length);
            assert_eq!(whole.is_end_stream(), length == 0);
            while let Some(frame) = whole.frame().await {
                let piece = frame.unwrap().into_data().unwrap().len();
                left -= piece;
                pieces.push(piece);
                let hint = whole.size_hint().exact();
                assert_eq!(
                    (hint, whole.is_end_stream()),
                    (Some(left as u64), left == 0)
                );
            }
            assert_eq!(pieces, right);
        }
    }
}
