//! Golden bytes of what is said on a replica stream.

use tollgate_limit::{Algorithm, Body, Counter, Series, SlotSet};
use tollgate_wire::replica::{Delivery, Order, put_delivery, put_order, read_delivery, read_order};

use crate::samples::{algorithms, deliveries, hex, orders, series, unhex};

/// Slots 0 and 2, 64 and 65 535: three shards.
const SLOTS: &str = "03 00 05 01 01 fbff03 fd0000000000000080";
/// Key, writer, version and clock.
const HEAD: &str = "fd0807060504030201 fd1817161514131211 fa fb2c01 fc70110100";
const MINUTE: &str = "fd005847f80d000000";

#[track_caller]
fn order(order: &Order, golden: &str) {
    let mut body = Vec::new();
    put_order(&mut body, order).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)), "{order:?}");
    assert_eq!(read_order(&unhex(golden)).as_ref(), Ok(order));
}

#[track_caller]
fn delivery(delivery: &Delivery, golden: &str) {
    let mut body = Vec::new();
    put_delivery(&mut body, delivery).unwrap();
    assert_eq!(hex(&body), hex(&unhex(golden)), "{delivery:?}");
    assert_eq!(read_delivery(&unhex(golden)).as_ref(), Ok(delivery));
}

/// The counter of the first series comes again: its numbers do not.
fn batch() -> String {
    format!(
        "04 00 00 00 64 {MINUTE} 0a 01 {HEAD} 01 64 09 03 01 02 fdffffffffffffffff \
         01 01 03 64 03 0d 4575726f70652f4265726c696e {HEAD} 01 64 09 00 \
         00 {HEAD} 00 \
         02 02 {HEAD} 01 64 09 01 07"
    )
}

#[test]
fn orders_of_a_follower() {
    let golden = [
        format!("00 {SLOTS}"),
        format!("01 {SLOTS}"),
        format!("02 {SLOTS}"),
        format!("03 {SLOTS}"),
        format!("04 fb2c01 {}", batch()),
    ];
    for (sent, golden) in orders().iter().zip(golden) {
        order(sent, &golden);
    }
    order(&Order::Subscribe(SlotSet::new()), "00 00");
}

#[test]
fn deliveries_of_a_source() {
    let golden = [
        format!("00 {}", batch()),
        format!("01 {SLOTS}"),
        format!("02 {SLOTS}"),
        "03 fb2c01".to_owned(),
    ];
    for (sent, golden) in deliveries().iter().zip(golden) {
        delivery(sent, &golden);
    }
    delivery(&Delivery::Batch(Vec::new()), "00 00");
}

#[test]
fn counters_of_every_algorithm() {
    let golden = [
        format!("00 64 {MINUTE} 0a 01"),
        format!("01 64 {MINUTE}"),
        format!("02 64 {MINUTE}"),
        "03 64 03 0d 4575726f70652f4265726c696e".to_owned(),
        format!("04 64 {MINUTE} c8"),
        format!("05 64 {MINUTE} 32"),
        format!("06 64 {MINUTE}"),
    ];
    let parts: [fn(Algorithm) -> Counter; 2] = [Counter::Charges, Counter::Failures];
    for (code, part) in parts.into_iter().enumerate() {
        for (algorithm, golden) in algorithms().into_iter().zip(&golden) {
            let void = Series {
                counter: part(algorithm),
                body: Body::Void,
                ..series().swap_remove(0)
            };
            delivery(
                &Delivery::Batch(vec![void]),
                &format!("00 01 00 {code:02x} {golden} {HEAD} 00"),
            );
        }
    }
}
