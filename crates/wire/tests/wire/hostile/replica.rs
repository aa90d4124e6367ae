//! A replica stream of broken or boundless messages.

use allocation_counter::measure;
use tollgate_limit::{Body, Series, SlotSet};
use tollgate_wire::{
    CodecError,
    frame::{HEADER_LENGTH, MAX_PEER_FRAME},
    peer::{
        Register, Reply, Request, Said, Switches, put_request, put_verdicts, read_reply,
        read_request,
    },
    replica::{
        BATCH_BYTES, Delivery, MAX_BATCH, MAX_WORDS, Order, put_delivery, put_order, read_delivery,
        read_order, size_of,
    },
};

use super::{BYTES_ANYWAY, BYTES_PER_BYTE};
use crate::samples::{allowed, deliveries, orders, said, series, unhex};

const HEAD: &str = "01 02 03 04 05";
const MINUTE: &str = "fd005847f80d000000";

#[track_caller]
fn refused_batch(hex: &str) {
    let malformed = Err(CodecError::Malformed);
    assert_eq!(
        read_delivery(&unhex(&format!("00 {hex}"))),
        malformed,
        "{hex}"
    );
    let report = unhex(&format!("04 01 {hex}"));
    assert_eq!(read_order(&report).map(drop), malformed.map(drop), "{hex}");
}

#[track_caller]
fn read_words(hex: &str) -> usize {
    match read_delivery(&unhex(&format!("00 {hex}"))) {
        Ok(Delivery::Batch(batch)) => match &batch[0].body {
            Body::Counts { words, .. } => words.len(),
            Body::Void => 0,
        },
        other => panic!("{other:?} of {hex}"),
    }
}

fn void() -> Series {
    series().swap_remove(2)
}

fn of_words(count: usize, word: u64) -> Series {
    let mut series = series().swap_remove(0);
    if let Body::Counts { words, .. } = &mut series.body {
        *words = std::iter::repeat_n(word, count).collect();
    }
    series
}

#[test]
fn a_prefix_is_refused_and_so_is_what_follows_the_end() {
    let orders = orders().into_iter().map(|order| {
        let mut body = Vec::new();
        put_order(&mut body, &order).unwrap();
        body
    });
    for mut body in orders {
        for length in 0..body.len() {
            let read = read_order(&body[..length]);
            assert_eq!(read, Err(CodecError::Malformed));
        }
        body.push(0);
        assert_eq!(read_order(&body), Err(CodecError::TrailingBytes));
    }
    for delivery in deliveries() {
        let mut body = Vec::new();
        put_delivery(&mut body, &delivery).unwrap();
        for length in 0..body.len() {
            let read = read_delivery(&body[..length]);
            assert_eq!(read, Err(CodecError::Malformed));
        }
        body.push(0);
        assert_eq!(read_delivery(&body), Err(CodecError::TrailingBytes));
    }
}

#[test]
fn slots_have_one_form() {
    let read = |hex: &str| read_order(&unhex(&format!("00 {hex}")));
    assert_eq!(read("00"), Ok(Order::Subscribe(SlotSet::new())));
    let last = read("01 fbff03 01").unwrap();
    let Order::Subscribe(last) = last else {
        panic!("{last:?}")
    };
    assert_eq!(
        last.iter().map(|slot| slot.number()).collect::<Vec<_>>(),
        [65_472]
    );
    for refused in [
        // A shard that there is not, the same again, one before it, and one without a slot.
        "01 fb0004 01",
        "02 05 01 05 01",
        "02 05 01 04 01",
        "01 05 00",
        // More shards than there are.
        "fb0104",
    ] {
        assert_eq!(read(refused), Err(CodecError::Malformed), "{refused}");
    }
}

#[test]
fn series_out_of_range_are_refused() {
    assert_eq!(read_words(&format!("01 00 02 {HEAD} 00")), 0);
    assert_eq!(read_words(&format!("01 00 02 {HEAD} 01 06 07 02 08 09")), 2);
    let version = |version: &str| format!("01 00 02 01 02 03 {version} 05 00");
    assert_eq!(read_words(&version("fdffffffffffff0000")), 0);
    refused_batch(&version("fd0000000000000100"));
    for refused in [
        // A counter that was not written out yet, and one that is not known.
        format!("01 01 02 {HEAD} 00"),
        format!("02 00 02 {HEAD} 00 02 02 {HEAD} 00"),
        format!("01 00 03 {HEAD} 00"),
        // Neither counts nor void.
        format!("01 00 02 {HEAD} 02"),
        // More words than there are.
        format!("01 00 02 {HEAD} 01 06 07 03 08 09"),
        // The numbers of an algorithm are bounded as those of a rule, and a ceiling is none of them.
        format!("01 00 00 00 64 {MINUTE} 3d 00 {HEAD} 00"),
        format!("01 00 01 01 fb1127 {MINUTE} {HEAD} 00"),
        format!("01 00 00 02 64 fc3f420f00 {HEAD} 00"),
        format!("01 00 00 03 64 00 03 555444 {HEAD} 00"),
        format!("01 00 00 07 64 {MINUTE} 0a 0b {HEAD} 00"),
    ] {
        refused_batch(&refused);
    }
}

#[test]
fn the_longest_batch_and_the_longest_series_are_read_and_longer_ones_refused() {
    let put = |batch: Vec<Series>| {
        let mut body = Vec::new();
        put_delivery(&mut body, &Delivery::Batch(batch)).map(|()| body)
    };
    let too_large = Err(CodecError::TooLarge);
    let mut most = put(vec![void(); MAX_BATCH]).unwrap();
    assert!(read_delivery(&most).is_ok());
    assert_eq!(put(vec![void(); MAX_BATCH + 1]), too_large);
    // The same, written by someone else: the count, and one more of the last.
    assert_eq!(most[1..4], unhex("fb0010"));
    most[2] = 1;
    most.extend(most[most.len() - 40..].to_vec());
    assert_eq!(read_delivery(&most), Err(CodecError::Malformed));

    let longest = put(vec![of_words(MAX_WORDS, 1)]).unwrap();
    assert!(read_delivery(&longest).is_ok());
    assert_eq!(put(vec![of_words(MAX_WORDS + 1, 1)]), too_large);
    let claim = format!("01 00 02 {HEAD} 01 06 07");
    let words = |count: usize| {
        let count = u16::try_from(count).unwrap().to_le_bytes();
        let head = unhex(&format!("00 {claim} fb"));
        [&head[..], &count, &vec![1; MAX_WORDS + 1]].concat()
    };
    assert_eq!(
        read_delivery(&words(MAX_WORDS)),
        Err(CodecError::TrailingBytes)
    );
    assert_eq!(
        read_delivery(&words(MAX_WORDS + 1)),
        Err(CodecError::Malformed)
    );

    let versioned = Series {
        version: 1 << 48,
        ..void()
    };
    assert_eq!(put(vec![versioned]), too_large);
}

/// A batch that is closed as late as it may be, by the longest series with the longest words.
#[test]
fn a_closed_batch_fits_into_a_frame() {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while bytes + size_of(&series()[1]) < BATCH_BYTES {
        bytes += size_of(&series()[1]);
        batch.push(series().swap_remove(1));
    }
    batch.push(of_words(MAX_WORDS, u64::MAX));
    let mut body = Vec::new();
    put_order(
        &mut body,
        &Order::Report {
            number: u64::MAX,
            series: batch,
        },
    )
    .unwrap();
    assert!(body.len() > BATCH_BYTES);
    assert!(body.len() <= MAX_PEER_FRAME - HEADER_LENGTH);
    // And two of them do not.
    let batch = vec![of_words(MAX_WORDS, u64::MAX); 2];
    let put = put_delivery(&mut Vec::new(), &Delivery::Batch(batch));
    assert_eq!(put, Err(CodecError::TooLarge));
}

/// The smallest series, as many as a batch can have, and claims of as many without the bytes.
#[test]
fn batches_take_memory_for_their_bytes_alone() {
    let smallest = format!("00 {HEAD} 00").repeat(MAX_BATCH - 1);
    let bytes = unhex(&format!("00 fb0010 00 02 {HEAD} 00 {smallest}"));
    let memory = measure(|| assert!(read_delivery(&bytes).is_ok()));
    let most = u64::try_from(bytes.len()).unwrap() * BYTES_PER_BYTE + BYTES_ANYWAY;
    assert!(
        memory.bytes_max <= most,
        "{memory:?} for {} bytes",
        bytes.len()
    );
    for claim in [
        format!("00 fb0010 00 02 {HEAD} 00"),
        format!("00 01 00 02 {HEAD} 01 06 07 fb60ea"),
    ] {
        let memory = measure(|| assert!(read_delivery(&unhex(&claim)).is_err()));
        assert!(memory.bytes_max <= BYTES_ANYWAY, "{claim}: {memory:?}");
    }
}

#[test]
fn names_are_as_long_as_names_can_be() {
    let switches = |length: usize| {
        let kill = Register {
            node: "n".repeat(length),
            ..Register::default()
        };
        let mut body = Vec::new();
        let shadow = Register::default();
        put_request(&mut body, &Request::Switches(Switches { kill, shadow })).unwrap();
        read_request(&mut &*body).is_ok()
    };
    assert!(switches(64));
    assert!(!switches(65));
    let put = |node: String| {
        let mut body = Vec::new();
        let said = Said { node, ..said() };
        put_verdicts(&mut body, Some(&said), &[allowed()]).map(|()| body)
    };
    let body = put("n".repeat(64)).unwrap();
    assert!(matches!(read_reply(&mut &*body), Ok(Reply::Verdicts(_))));
    assert_eq!(put("n".repeat(65)), Err(CodecError::TooLarge));
    let longer = [&body[..2], &[65], &body[3..67], b"n", &body[67..]].concat();
    assert_eq!(read_reply(&mut &*longer), Err(CodecError::Malformed));
}
