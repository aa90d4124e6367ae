//! P8, over the QUIC port of the real program: broken frames get an error frame or a closed stream,
//! and whole ones on other streams are answered as ever.

use std::{fs, net::SocketAddr, time::Duration};

use tollgate_bench::load::{put_frame, raw_answer};
use tollgate_client::{Check, ClientConfig, Credentials, InlineLimit, Pairs, Subject, Trust};
use tollgate_wire::{
    client::{FaultKind, put_check, read_answer},
    frame::{MAX_CLIENT_FRAME, split},
};

use crate::harness::{Dev, DevOptions};

const POLICY: &str = r#"
[[limit]]
name = "per-ip"
key = ["ip"]
limit = 1000
window = "1h"
"#;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a frame is answered with.
#[derive(Debug, PartialEq)]
enum Got {
    Allowed,
    Fault(FaultKind),
}

#[test]
fn broken_frames_are_told_and_harm_nothing() {
    let cluster = Dev::start(&DevOptions {
        nodes: 1,
        policies: POLICY,
        more: &[],
    });
    let port = Port::of(&cluster);
    let whole = [frame(5, &body(&check("192.0.2.1", 1)))].concat();
    let fault = |kind| vec![(5, Got::Fault(kind))];

    assert_eq!(port.ask(&whole), [(5, Got::Allowed)]);
    // No frame can be found behind these.
    let too_long = [&u32::MAX.to_le_bytes()[..], &[1], &5_u64.to_le_bytes()].concat();
    assert_eq!(port.ask(&too_long), fault(FaultKind::TooLarge));
    let too_short = [&3_u32.to_le_bytes()[..], &[1], &5_u64.to_le_bytes()].concat();
    assert_eq!(port.ask(&too_short), fault(FaultKind::Malformed));
    // The frame behind these is answered.
    let mut strange = whole.clone();
    strange[4] = 99;
    let answers = port.ask(&[strange, frame(6, &body(&check("192.0.2.1", 1)))].concat());
    let version = (5, Got::Fault(FaultKind::UnsupportedVersion));
    assert_eq!(answers, [version, (6, Got::Allowed)]);
    let answers = port.ask(&[frame(5, &[0xff; 40]), whole.clone()].concat());
    assert_eq!(
        answers,
        [(5, Got::Fault(FaultKind::Malformed)), (5, Got::Allowed)]
    );
    for wrong in [
        check("192.0.2.1", 1 << 63),
        check("a\u{7}b", 1),
        inline(Duration::ZERO),
        inline(Duration::MAX),
    ] {
        assert_eq!(
            port.ask(&frame(5, &body(&wrong))),
            fault(FaultKind::BadRequest),
            "{wrong:?}"
        );
    }
    for length in [1, 12, 13, 1000] {
        port.ask(&super::broken_input::random_bytes(length));
    }
    assert_eq!(port.ask(&whole), [(5, Got::Allowed)]);
    assert_eq!(cluster.end(), Some(0));
}

/// The QUIC port of the first node, for a client with a right certificate.
struct Port {
    address: SocketAddr,
    config: ClientConfig,
}

impl Port {
    fn of(cluster: &Dev) -> Self {
        let read = |name: &str| fs::read(cluster.folder.join(name)).unwrap();
        let trust = Trust::from_pem(&read("authority.pem")).unwrap();
        let mut config = ClientConfig::new("dev", Vec::new(), trust);
        let credentials = Credentials::from_pem(&read("client.pem"), &read("client.key"));
        config.credentials = Some(credentials.unwrap());
        Self {
            address: cluster.nodes[0].quic.parse().unwrap(),
            config,
        }
    }

    /// All frames that come back, with their ids.
    fn ask(&self, bytes: &[u8]) -> Vec<(u64, Got)> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let answer = runtime.block_on(async {
            let config = self.config.quic().unwrap();
            let answer = raw_answer(self.address, "localhost", config, bytes);
            tokio::time::timeout(PATIENCE, answer)
                .await
                .unwrap()
                .unwrap()
        });
        let (mut rest, mut got) = (&*answer, Vec::new());
        while let Some((frame, length)) = split(rest, MAX_CLIENT_FRAME).unwrap() {
            got.push((
                frame.id,
                match read_answer(frame.body).unwrap() {
                    Ok(answer) => {
                        assert!(answer.is_allowed());
                        Got::Allowed
                    }
                    Err(fault) => Got::Fault(fault.kind),
                },
            ));
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "half a frame: {rest:?}");
        got
    }
}

fn frame(id: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, id, body);
    bytes
}

fn body(check: &Check<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    put_check(&mut body, check).unwrap();
    body
}

fn check(ip: &str, cost: u64) -> Check<'_> {
    let attributes = Pairs::from_iter([("ip", ip)]);
    let subject = Subject::Policy {
        name: "default".into(),
        attributes,
    };
    Check {
        subject,
        cost,
        peek: false,
    }
}

fn inline(window: Duration) -> Check<'static> {
    let limit = InlineLimit::sliding_window("login", 5, window);
    let subject = Subject::Inline {
        limit,
        key: Pairs::from_iter([("user", "42")]),
    };
    Check {
        subject,
        cost: 1,
        peek: false,
    }
}
