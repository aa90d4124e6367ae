//! What callers and the link share, without a network and in virtual time.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::oneshot::{self, Receiver},
    time,
};
use tollgate_wire::{
    client::{Answer, Check, Fault, FaultKind, Pairs, Subject},
    frame,
};

use super::{Expiry, MAX_SILENCES, MAX_UNSENT, NeverAsked, Shared};
use crate::{clock, error::CheckError};

type End = Receiver<Result<Answer, CheckError>>;

const DEADLINE: Duration = Duration::from_millis(100);

fn up(max_in_flight: usize) -> Arc<Shared> {
    let shared = Shared::new(DEADLINE, max_in_flight);
    shared.up();
    Arc::new(shared)
}

fn ask(shared: &Shared, name: &str) -> Result<End, CheckError> {
    let (reply, end) = oneshot::channel();
    let subject = Subject::Policy {
        name: name.to_owned().into(),
        attributes: Pairs::new(),
    };
    let check = Check {
        subject,
        cost: 1,
        peek: false,
    };
    shared.send(&check, reply).map(|()| end)
}

fn fault() -> Fault {
    Fault {
        kind: FaultKind::Unavailable,
        field: None,
        message: String::new(),
    }
}

fn ids(bytes: &[u8]) -> Vec<u64> {
    let (mut rest, mut ids) = (bytes, Vec::new());
    while let Some((frame, length)) = frame::split(rest, frame::MAX_CLIENT_FRAME).unwrap() {
        ids.push(frame.id);
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
    ids
}

#[tokio::test(start_paused = true)]
async fn what_gathers_leaves_in_one_batch() {
    let shared = up(8);
    let ends: Vec<_> = (0..3).map(|_| ask(&shared, "p").unwrap()).collect();
    let mut batch = vec![9];
    shared.take_unsent(&mut batch).await;
    assert_eq!(ids(&batch), [1, 2, 3]);
    // The next batch waits for the next call, and for no more than that.
    let waiting = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            let mut batch = Vec::new();
            shared.take_unsent(&mut batch).await;
            ids(&batch)
        }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    let _end = ask(&shared, "p").unwrap();
    let next = time::timeout(DEADLINE, waiting).await;
    assert_eq!(next.unwrap().unwrap(), [4]);
    drop(ends);
}

#[tokio::test(start_paused = true)]
async fn the_timer_wakes_for_the_oldest_call_alone() {
    let shared = up(8);
    let start = clock::now();
    assert_eq!(shared.expire(start), Expiry::Idle);
    let mut one = ask(&shared, "p").unwrap();
    time::timeout(DEADLINE, shared.called()).await.unwrap();
    time::advance(Duration::from_millis(30)).await;
    let mut two = ask(&shared, "p").unwrap();
    assert_eq!(shared.expire(clock::now()), Expiry::At(start + DEADLINE));
    time::advance(Duration::from_millis(70)).await;
    let next = Expiry::At(start + Duration::from_millis(130));
    assert_eq!(shared.expire(clock::now()), next);
    let deadline = DEADLINE;
    let late = Err(CheckError::DeadlineExceeded { deadline });
    assert_eq!(one.try_recv(), Ok(late));
    assert!(two.try_recv().is_err());
    // Its reply comes after all: it is late, not wrong.
    assert_eq!(shared.complete(1, Err(fault())), Ok(()));
    assert_eq!(shared.complete(2, Err(fault())), Ok(()));
    assert_eq!(two.try_recv(), Ok(Err(CheckError::Fault(fault()))));
    assert_eq!(shared.complete(3, Err(fault())), Err(NeverAsked));
}

#[tokio::test(start_paused = true)]
async fn many_calls_of_one_moment_are_one_silence() {
    let shared = up(64);
    for silences in 1..=MAX_SILENCES {
        let ends: Vec<_> = (0..20).map(|_| ask(&shared, "p").unwrap()).collect();
        time::advance(DEADLINE).await;
        let silent = shared.expire(clock::now()) == Expiry::Silent;
        assert_eq!(silent, silences == MAX_SILENCES);
        drop(ends);
    }
}

#[tokio::test(start_paused = true)]
async fn any_reply_ends_the_silence() {
    let shared = up(64);
    for call in 1..=2 * u64::from(MAX_SILENCES) {
        let _end = ask(&shared, "p").unwrap();
        time::advance(DEADLINE).await;
        assert_eq!(shared.expire(clock::now()), Expiry::Idle);
        assert_eq!(shared.complete(call, Err(fault())), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_and_bytes_end_with_the_connection() {
    let shared = up(8);
    let mut end = ask(&shared, "p").unwrap();
    let cause: Arc<str> = "cut".into();
    shared.down(&cause);
    let lost = CheckError::ConnectionLost {
        cause: Arc::clone(&cause),
    };
    assert_eq!(end.try_recv(), Ok(Err(lost)));
    let disconnected = CheckError::Disconnected { cause };
    assert_eq!(ask(&shared, "p").unwrap_err(), disconnected);
    shared.up();
    let _end = ask(&shared, "p").unwrap();
    let mut batch = Vec::new();
    shared.take_unsent(&mut batch).await;
    // Ids go on: an old reply must not reach a new call.
    assert_eq!(ids(&batch), [2]);
}

#[tokio::test(start_paused = true)]
async fn unsent_bytes_are_bounded() {
    let shared = up(1 << 16);
    let name = "p".repeat(100_000);
    let (mut ends, mut sent) = (Vec::new(), 0);
    let error = loop {
        match ask(&shared, &name) {
            Ok(end) => ends.push(end),
            Err(error) => break error,
        }
        sent += name.len();
        assert!(sent < 2 * MAX_UNSENT);
    };
    assert_eq!(error, CheckError::TooManyInFlight { max: 1 << 16 });
    let mut batch = Vec::new();
    shared.take_unsent(&mut batch).await;
    assert!(ask(&shared, &name).is_ok());
}
