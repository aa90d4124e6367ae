//! A future that is polled only when it was woken.
//!
//! A connection's task is woken for each request, its timer and the server's end hardly ever: polling
//! those along with it would cost each request more than its check. Knows nothing of connections.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Polls a future when it was woken, not whenever its task was.
#[derive(Debug)]
pub(super) struct Aside<'f, F> {
    future: Pin<&'f mut F>,
    bell: Option<Arc<Bell>>,
}

impl<'f, F: Future> Aside<'f, F> {
    pub(super) const fn new(future: Pin<&'f mut F>) -> Self {
        Self { future, bell: None }
    }
}

impl<F: Future> Future for Aside<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let task = context.waker();
        let bell = match &self.bell {
            Some(bell) if bell.task.will_wake(task) => {
                if !bell.rang.load(Ordering::Acquire) {
                    return Poll::Pending;
                }
                Arc::clone(bell)
            }
            // The first poll, or the first by another task.
            Some(_) | None => Arc::new(Bell::new(task)),
        };
        // Silenced before the poll: what rings during it is heard at the next.
        bell.rang.swap(false, Ordering::AcqRel);
        self.bell = Some(Arc::clone(&bell));
        let waker = Waker::from(bell);
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// What the future wakes in the task's stead.
#[derive(Debug)]
struct Bell {
    rang: AtomicBool,
    task: Waker,
}

impl Bell {
    fn new(task: &Waker) -> Self {
        Self {
            rang: AtomicBool::new(false),
            task: task.clone(),
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        future::poll_fn,
        pin::{Pin, pin},
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::{Context, Poll, Wake, Waker},
    };

    use super::Aside;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll<F: Future>(aside: &mut Aside<'_, F>, task: &Arc<Task>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(task));
        Pin::new(aside).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn it_is_polled_when_it_was_woken() {
        let (polls, kept) = (Cell::new(0), RefCell::new(None));
        let mut future = pin!(poll_fn(|context| {
            polls.set(polls.get() + 1);
            match polls.get() {
                // Rings while it is polled.
                2 => context.waker().wake_by_ref(),
                3 => drop(kept.replace(Some(context.waker().clone()))),
                5 => return Poll::Ready(()),
                _ => {}
            }
            Poll::Pending
        }));
        let mut aside = Aside::new(future.as_mut());
        let (first, second) = (Arc::new(Task::default()), Arc::new(Task::default()));
        let mut check = |task: &Arc<Task>, outcome, polled| {
            assert_eq!((poll(&mut aside, task), polls.get()), (outcome, polled));
        };
        check(&first, Poll::Pending, 1);
        check(&first, Poll::Pending, 1);
        // Another task: polled anew, so that it is the one that is woken.
        check(&second, Poll::Pending, 2);
        assert_eq!(second.0.load(Ordering::Relaxed), 1);
        check(&second, Poll::Pending, 3);
        check(&second, Poll::Pending, 3);
        let waker = kept.take().unwrap();
        waker.wake_by_ref();
        check(&second, Poll::Pending, 4);
        waker.wake();
        assert_eq!(second.0.load(Ordering::Relaxed), 3);
        check(&second, Poll::Ready(()), 5);
        assert_eq!(first.0.load(Ordering::Relaxed), 0);
    }
}
