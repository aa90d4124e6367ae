//! Receipts: the text that is the id of a check, and all that is needed to act on it later.
//!
//! Base64 (RFC 4648, for URLs, without padding) of a version, what was charged, and a seal by the cluster's
//! hash key: so that no node remembers the checks that it answered, any node can act on any of them, and
//! nobody can make one up. Knows nothing of HTTP. Invariant: what does not carry the seal is not decoded.

use std::cell::RefCell;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tollgate_limit::{
    Charge, ChargedAt, CheckId, Cost, CostSource, Counted, DecidedBy, Decision, HashKey, KeyHash,
    KeyHasher, LimitDecision, MAX_LIMITS_PER_POLICY, Receipt, ReceiptItem, ReceiptItems,
};

use crate::{
    codec::{self, CodecError},
    rule::RawRule,
};

/// The longest text of a receipt, in bytes: one of as many limits as a policy can have fits.
pub const MAX_RECEIPT_TEXT: usize = 32 * 1024;

/// The version of what is sealed.
const VERSION: u8 = 1;
/// Bytes that the usual receipt fits in.
const USUAL_BYTES: usize = 512;

/// What a receipt is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// All that was charged.
    All,
    /// The permits alone.
    Permits,
}

/// A text that is no receipt of this cluster. Whoever sent it is at fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not an id that this cluster gave out")]
pub struct NotAReceipt;

/// The head of a receipt; its items follow.
#[derive(Serialize, Deserialize)]
struct RawReceipt {
    boot: u64,
    number: u64,
    made: u64,
    items: u8,
}

/// One limit of a receipt.
#[derive(Serialize, Deserialize)]
struct RawItem<'a> {
    limit: &'a str,
    cost_attribute: Option<&'a str>,
    failures: bool,
    local: bool,
    key_high: u64,
    key_low: u64,
    #[serde(borrow)]
    rule: RawRule<'a>,
    cost: u64,
    slice: u64,
    /// Whose counters hold the charge; `None` is the boot of the head, and the shorter for it.
    boot: Option<u64>,
}

impl<'a> RawItem<'a> {
    /// `None` if nothing was charged that could be changed.
    fn of(decision: &'a LimitDecision, entry_boot: u64) -> Option<Self> {
        if decision.charged == Cost::ZERO {
            return None;
        }
        let local = match decision.decided_by {
            DecidedBy::Owner | DecidedBy::Standby => false,
            DecidedBy::Fallback => true,
            DecidedBy::Cached | DecidedBy::Switch => return None,
        };
        Some(Self {
            limit: decision.limit.name(),
            cost_attribute: match decision.limit.cost_source() {
                CostSource::Request => None,
                CostSource::Attribute(name) => Some(name),
            },
            failures: decision.limit.counted() == Counted::Failures,
            local,
            key_high: decision.key.high(),
            key_low: decision.key.low(),
            rule: (&decision.rule).into(),
            cost: decision.charged.units(),
            slice: decision.verdict.charged_slice,
            boot: (decision.boot != entry_boot).then_some(decision.boot),
        })
    }

    /// What was sealed by a node of this boot.
    fn into_item(self, entry_boot: u64) -> Result<ReceiptItem, CodecError> {
        Ok(ReceiptItem {
            limit: self.limit.to_owned(),
            cost_source: match self.cost_attribute {
                None => CostSource::Request,
                Some(name) => CostSource::Attribute(name.to_owned()),
            },
            counted: if self.failures {
                Counted::Failures
            } else {
                Counted::Requests
            },
            at: if self.local {
                ChargedAt::Local
            } else {
                ChargedAt::Owner
            },
            charge: Charge {
                key: KeyHash::from_halves(self.key_high, self.key_low),
                rule: self.rule.try_into()?,
                cost: Cost::new(self.cost).map_err(|_error| CodecError::Malformed)?,
                slice: self.slice,
                boot: self.boot.unwrap_or(entry_boot),
            },
        })
    }
}

thread_local! {
    /// The bytes and the text of the receipt that is being made: as a rule nothing is allocated.
    static SCRATCH: RefCell<(Vec<u8>, String)> = const { RefCell::new((Vec::new(), String::new())) };
}

/// Gives `write` the receipt of a decision that was made then, in Unix seconds.
///
/// # Errors
/// [`CodecError::TooLarge`] with more limits than a policy can have, or with names of attributes that no
/// check can have: nothing was written.
pub fn seal(
    decision: &Decision,
    contents: Contents,
    made: u64,
    key: &HashKey,
    write: impl FnOnce(&str),
) -> Result<(), CodecError> {
    let (mut bytes, mut text) = SCRATCH.take();
    bytes.clear();
    text.clear();
    bytes.reserve(USUAL_BYTES);
    let put = put_receipt(&mut bytes, decision, contents, made);
    if put.is_ok() {
        let seal = seal_of(&bytes, key);
        bytes.extend_from_slice(&seal.to_le_bytes());
        URL_SAFE_NO_PAD.encode_string(&bytes, &mut text);
    }
    let sealed = match put {
        Ok(()) if text.len() > MAX_RECEIPT_TEXT => Err(CodecError::TooLarge),
        Ok(()) => {
            write(&text);
            Ok(())
        }
        Err(error) => Err(error),
    };
    SCRATCH.set((bytes, text));
    sealed
}

fn put_receipt(
    bytes: &mut Vec<u8>,
    decision: &Decision,
    contents: Contents,
    made: u64,
) -> Result<(), CodecError> {
    let items = || {
        let wanted = decision.limits.iter().filter(|limit| match contents {
            Contents::All => true,
            Contents::Permits => limit.limit.is_concurrency(),
        });
        wanted.filter_map(|limit| RawItem::of(limit, decision.id.boot))
    };
    let count = items().count();
    if count > MAX_LIMITS_PER_POLICY {
        return Err(CodecError::TooLarge);
    }
    let count = u8::try_from(count).map_err(|_error| CodecError::TooLarge)?;
    bytes.push(VERSION);
    let head = RawReceipt {
        boot: decision.id.boot,
        number: decision.id.number,
        made,
        items: count,
    };
    codec::put(bytes, &head)?;
    items().try_for_each(|item| codec::put(bytes, &item))
}

/// Opens a receipt.
///
/// # Errors
/// [`NotAReceipt`]: whoever sent it is at fault.
pub fn open(text: &str, key: &HashKey) -> Result<Receipt, NotAReceipt> {
    if text.len() > MAX_RECEIPT_TEXT {
        return Err(NotAReceipt);
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_not_base64| NotAReceipt)?;
    let (body, seal) = bytes.split_last_chunk().ok_or(NotAReceipt)?;
    // One comparison of two words: how long it takes tells nothing of how much of a seal is right.
    if u64::from_le_bytes(*seal) != seal_of(body, key) {
        return Err(NotAReceipt);
    }
    let [VERSION, body @ ..] = body else {
        return Err(NotAReceipt);
    };
    read_receipt(body).map_err(|_malformed| NotAReceipt)
}

fn read_receipt(mut body: &[u8]) -> Result<Receipt, CodecError> {
    let head: RawReceipt = codec::take(&mut body)?;
    if usize::from(head.items) > MAX_LIMITS_PER_POLICY {
        return Err(CodecError::Malformed);
    }
    let mut items = ReceiptItems::new();
    for _ in 0..head.items {
        let item = codec::take::<RawItem<'_>>(&mut body)?;
        items.push(item.into_item(head.boot)?);
    }
    codec::end(body)?;
    Ok(Receipt {
        id: CheckId {
            boot: head.boot,
            number: head.number,
        },
        made: head.made,
        items,
    })
}

/// Of the version too: what is of another version must not pass for this one.
fn seal_of(body: &[u8], key: &HashKey) -> u64 {
    let mut hasher = KeyHasher::new(key);
    hasher.part(b"receipt");
    hasher.part(body);
    hasher.finish().low()
}
