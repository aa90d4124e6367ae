//! What this node orders from one source: written by the mover, sent by the stream's task.
//!
//! Bounded: above [`MAX_ORDERS`] the stream is given up and made anew, and the motion orders all that it
//! still wants again.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tollgate_wire::replica::Order;

/// The most orders that wait for one source.
const MAX_ORDERS: usize = 1_024;

/// Orders on their way to one source.
#[derive(Debug, Default)]
pub(super) struct Orders {
    waiting: Mutex<Waiting>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    orders: VecDeque<Order>,
    /// Whether there were too many.
    is_over: bool,
}

impl Orders {
    /// Adds an order behind the others.
    pub(super) fn push(&self, order: Order) {
        let mut waiting = self.waiting.lock();
        let has_room = waiting.orders.len() < MAX_ORDERS;
        match (waiting.orders.back_mut(), order) {
            (Some(Order::Subscribe(last)), Order::Subscribe(slots)) => *last = slots,
            (Some(Order::Take(last)), Order::Take(slots))
            | (Some(Order::Acked(last)), Order::Acked(slots))
            | (Some(Order::Offer(last)), Order::Offer(slots)) => last.extend(&slots),
            (_, order) if has_room => waiting.orders.push_back(order),
            (_, _order) => waiting.is_over = true,
        }
        drop(waiting);
        self.ready.notify_one();
    }

    /// Whether another order finds room.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.lock().orders.len() < MAX_ORDERS / 2
    }

    /// Waits for the next; `None` if there were too many. Cancel safe.
    pub(super) async fn next(&self) -> Option<Order> {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if waiting.is_over {
                    return None;
                }
                if let Some(order) = waiting.orders.pop_front() {
                    return Some(order);
                }
            }
            self.ready.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_limit::{SlotId, SlotSet};
    use tollgate_wire::replica::Order;

    use super::{MAX_ORDERS, Orders};

    fn slots(slots: &[u16]) -> SlotSet {
        slots.iter().copied().map(SlotId::new).collect()
    }

    #[tokio::test]
    async fn equal_orders_in_a_row_are_one_and_no_order_passes_another() {
        let orders = Orders::default();
        orders.push(Order::Take(slots(&[1])));
        orders.push(Order::Take(slots(&[2])));
        orders.push(Order::Acked(slots(&[1])));
        orders.push(Order::Take(slots(&[3])));
        orders.push(Order::Subscribe(slots(&[4])));
        orders.push(Order::Subscribe(slots(&[5])));
        let mut got = Vec::new();
        for _ in 0..4 {
            got.extend(orders.next().await);
        }
        assert_eq!(
            got,
            [
                Order::Take(slots(&[1, 2])),
                Order::Acked(slots(&[1])),
                Order::Take(slots(&[3])),
                Order::Subscribe(slots(&[5])),
            ]
        );
    }

    #[tokio::test]
    async fn too_many_orders_end_the_stream() {
        let orders = Orders::default();
        for _ in 0..MAX_ORDERS {
            orders.push(Order::Take(slots(&[1])));
            orders.push(Order::Acked(slots(&[1])));
        }
        assert_eq!(orders.next().await, None);
    }
}
