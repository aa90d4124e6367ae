//! Any series and any set of slots.

use proptest::{collection::vec, prelude::*};
use tollgate_limit::{Body, Counter, KeyHash, Nanos, Series, SlotId, SlotSet, Writer};
use tollgate_wire::replica::{
    Delivery, Order, put_delivery, put_order, read_delivery, read_order, size_of,
};

use super::rules::rule;

fn counter() -> impl Strategy<Value = Counter> {
    prop_oneof![
        rule().prop_map(|rule| Counter::Charges(rule.algorithm)),
        rule().prop_map(|rule| Counter::Failures(rule.algorithm)),
        Just(Counter::Ban),
    ]
}

/// Numbers of every length.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(number, bits)| number >> bits)
}

fn body() -> impl Strategy<Value = Body> {
    let counts = (any::<(u64, u64)>(), vec(number(), 0..40));
    prop_oneof![
        Just(Body::Void),
        counts.prop_map(|((seen, latest), words)| Body::Counts {
            seen,
            latest: Nanos::new(latest),
            words: words.into(),
        }),
    ]
}

prop_compose! {
    fn one()(
        key: (u64, u64), writer: u64, version in 0_u64..1 << 48, clock: u64,
        counter in counter(), body in body(),
    ) -> Series {
        Series {
            key: KeyHash::from_halves(key.0, key.1),
            counter,
            writer: Writer::new(writer),
            version,
            clock,
            body,
        }
    }
}

/// Some share a counter.
fn series() -> impl Strategy<Value = Vec<Series>> {
    (vec(one(), 1..12), vec(any::<prop::sample::Index>(), 0..12)).prop_map(|(mut series, of)| {
        for of in of {
            let counter = of.get(&series).counter;
            let first = series[0].clone();
            series.push(Series { counter, ..first });
        }
        series
    })
}

fn slots() -> impl Strategy<Value = SlotSet> {
    prop_oneof![
        vec(any::<u16>(), 0..200)
            .prop_map(|slots| slots.into_iter().map(SlotId::new).collect::<SlotSet>()),
        Just(SlotSet::all()),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        slots().prop_map(Order::Subscribe),
        slots().prop_map(Order::Take),
        slots().prop_map(Order::Acked),
        slots().prop_map(Order::Offer),
        (any::<u64>(), series()).prop_map(|(number, series)| Order::Report { number, series }),
    ]
}

fn delivery() -> impl Strategy<Value = Delivery> {
    prop_oneof![
        series().prop_map(Delivery::Batch),
        slots().prop_map(Delivery::Copied),
        slots().prop_map(Delivery::Final),
        any::<u64>().prop_map(Delivery::Reported),
    ]
}

proptest! {
    #[test]
    fn orders(sent in order()) {
        let mut body = Vec::new();
        put_order(&mut body, &sent).unwrap();
        prop_assert_eq!(read_order(&body), Ok(sent));
    }

    #[test]
    fn deliveries(sent in delivery()) {
        let mut body = Vec::new();
        put_delivery(&mut body, &sent).unwrap();
        prop_assert_eq!(read_delivery(&body), Ok(sent));
    }

    /// What a source closes its batches by is never too small, and not far too large.
    #[test]
    fn sizes(sent in one()) {
        let size = size_of(&sent);
        let mut body = Vec::new();
        put_delivery(&mut body, &Delivery::Batch(vec![sent])).unwrap();
        prop_assert!(body.len() - 2 <= size, "{} bytes, said {size}", body.len());
        prop_assert!(size <= body.len() + 100, "{} bytes, said {size}", body.len());
    }
}
