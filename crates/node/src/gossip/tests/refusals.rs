//! Who is refused: one clear line each, and the cluster undisturbed.

use std::time::Duration;

use bytes::Bytes;
use foca::Codec as _;
use tokio::runtime::Runtime;
use tollgate_cluster::ClusterName;
use tollgate_wire::identity::Phase;

use super::rig::{
    Member, Plan, Site, anywhere, lines, unix_seconds, wait_for, wait_for_agreement, wait_for_line,
};
use crate::{
    certificates::{LEAF_SPAN, Validity},
    gossip::{codec::GossipCodec, identity::Gossiped},
    transport::close::CloseCode,
};

/// Twins that do not know each other's address meet when one is taken for down or announces itself.
const TWINS_MEET: Duration = Duration::from_secs(60);

fn two(site: &Site) -> [Member; 2] {
    let n1 = site.start("n1", anywhere(), &[]);
    let n2 = site.start("n2", anywhere(), &[n1.address]);
    wait_for_agreement(&[&n1, &n2], 2, Duration::from_secs(10));
    [n1, n2]
}

/// The members that a node knows, and their placement.
fn picture(member: &Member) -> (u64, usize, u64) {
    let view = member.view();
    (
        view.placement.fingerprint(),
        view.members.len(),
        view.identity.generation,
    )
}

/// It says once that it is refused, and then is not active although the join timeout has passed.
fn stays_out(refused: &Member, seed: &Member, parts: &[&str]) {
    let address = format!("address={}", seed.address);
    let said = [
        "ERROR",
        "this node is refused by its seeds and stays out of the cluster",
        &address,
    ];
    let said = [&said, parts].concat();
    wait_for_line(&said);
    // Another round after that changes nothing.
    let asked = ["DEBUG", "a seed was not reached", &address];
    let before = lines(&asked).len();
    wait_for("another round", Duration::from_secs(10), || {
        lines(&asked).len() > before
    });
    assert_eq!(refused.phase(), Phase::Joining);
    assert_eq!(refused.placed(), 0);
    assert_eq!(lines(&said).len(), 1, "{:#?}", lines(&said));
}

/// How the other side ends a connection; it must.
async fn end_of(connection: &quinn::Connection) -> quinn::ConnectionError {
    let ended = tokio::time::timeout(Duration::from_secs(10), connection.closed()).await;
    ended.expect("the connection was not closed")
}

fn runtime() -> Runtime {
    Runtime::new().unwrap()
}

#[test]
fn a_node_of_another_authority() {
    let (site, foreign) = (Site::new("home"), Site::new("home"));
    let [n1, n2] = two(&site);
    let before = [picture(&n1), picture(&n2)];
    let alien = foreign.start("alien-by-authority", anywhere(), &[n1.address]);
    let remote = format!("remote={}", alien.address);
    wait_for_line(&["refused a connection again", &remote]);
    let told = lines(&["WARN", "refused a connection", &remote]);
    assert_eq!(told.len(), 1, "{told:#?}");
    let seed = format!("address={}", n1.address);
    let own = lines(&["WARN", "a seed does not take this node in", &seed]);
    assert_eq!(own.len(), 1, "{own:#?}");
    stays_out(&alien, &n1, &["the authority"]);
    assert_eq!(before, [picture(&n1), picture(&n2)]);
}

#[test]
fn a_client_on_the_protocol_of_peers() {
    let site = Site::new("clients");
    let [n1, n2] = two(&site);
    let before = [picture(&n1), picture(&n2)];
    let validity = Validity::new(unix_seconds(), LEAF_SPAN);
    let leaf = site.authority.issue_client("posing", validity).unwrap();
    let credentials = site.unchecked("posing", &leaf);
    let end = runtime().block_on(async {
        let knocking = site.knock(&credentials);
        let connection = knocking.connect_peer(&n1.view().identity).await.unwrap();
        end_of(&connection).await
    });
    assert_eq!(CloseCode::of(&end), Some(CloseCode::Refused), "{end}");
    let told = lines(&[
        "WARN",
        "refused a connection",
        "it is a client, not a node",
        "posing",
    ]);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(before, [picture(&n1), picture(&n2)]);
}

#[test]
fn a_node_of_another_cluster() {
    let site = Site::new("ours");
    let [n1, n2] = two(&site);
    let before = [picture(&n1), picture(&n2)];
    let other = ClusterName::new("others").unwrap();
    let pretending = crate::certificates::Authority::from_pem(&site.authority.pem()).unwrap();
    let other = Site {
        cluster: site.cluster.clone(),
        authority: pretending.pretending(other),
    };
    let credentials = site.unchecked("stray", &other.issue("stray"));
    let end = runtime().block_on(async {
        let knocking = site.knock(&credentials);
        let dialled = knocking.connect_gossip(n1.address, None).await.unwrap();
        end_of(&dialled.connection).await
    });
    assert_eq!(CloseCode::of(&end), Some(CloseCode::Refused), "{end}");
    let told = lines(&[
        "WARN",
        "refused a connection",
        "it is of another cluster",
        "others",
    ]);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(before, [picture(&n1), picture(&n2)]);
}

#[test]
fn a_packet_whose_sender_is_not_the_node_of_the_certificate() {
    let site = Site::new("liars");
    let [n1, n2] = two(&site);
    let before = [picture(&n1), picture(&n2)];
    let credentials = site.credentials("liar", &site.issue("liar"));
    // "n2 says: n2 is leaving", from the liar.
    let mut forged = n2.view().identity.clone();
    forged.generation += 1_000;
    forged.phase = Phase::Leaving;
    let header = foca::Header {
        src: Gossiped(forged),
        src_incarnation: 0,
        dst: Gossiped(n1.view().identity.clone()),
        message: foca::Message::Announce,
    };
    let mut packet = Vec::new();
    GossipCodec.encode_header(&header, &mut packet).unwrap();
    let end = runtime().block_on(async {
        let knocking = site.knock(&credentials);
        let dialled = knocking.connect_gossip(n1.address, None).await.unwrap();
        dialled
            .connection
            .send_datagram(Bytes::from(packet))
            .unwrap();
        end_of(&dialled.connection).await
    });
    assert_eq!(CloseCode::of(&end), Some(CloseCode::Malformed), "{end}");
    let told = lines(&[
        "WARN",
        "refused a gossip packet",
        "node_id=liar",
        "claimed=n2",
    ]);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(before, [picture(&n1), picture(&n2)]);
}

#[test]
fn a_node_with_another_hash_key() {
    let site = Site::new("keys");
    let [n1, n2] = two(&site);
    let before = [picture(&n1), picture(&n2)];
    let plan = Plan::new("other-key", anywhere(), &[n1.address]);
    let stranger = site.run(Plan {
        hash_key: [8; 16],
        ..plan
    });
    let seed = format!("address={}", n1.address);
    wait_for_line(&["DEBUG", "a seed was not reached", &seed]);
    let told = lines(&[
        "WARN",
        "refused a node with other cluster settings",
        "node_id=other-key",
    ]);
    assert_eq!(told.len(), 1, "{told:#?}");
    let own = lines(&["WARN", "a seed does not take this node in", &seed]);
    assert_eq!(own.len(), 1, "{own:#?}");
    assert_eq!(stranger.view().members.len(), 0);
    let reason = "other cluster settings (name, slots or hash key)";
    stays_out(&stranger, &n1, &[reason, "compare="]);
    assert_eq!(before, [picture(&n1), picture(&n2)]);
}

#[test]
fn another_process_with_the_name_of_a_member() {
    let site = Site::new("twins");
    let [n1, n2] = two(&site);
    let before = [picture(&n1), picture(&n2)];
    let twin = site.start("n1", anywhere(), &[n1.address]);
    let seed = format!("address={}", n1.address);
    wait_for_line(&[
        "WARN",
        "a seed does not take this node in",
        "this node's name",
        &seed,
    ]);
    let remote = format!("remote={}", twin.address);
    let told = lines(&[
        "WARN",
        "refused a connection",
        "it has this node's name",
        &remote,
    ]);
    assert_eq!(told.len(), 1, "{told:#?}");
    stays_out(&twin, &n1, &["this node's name"]);
    assert_eq!(before, [picture(&n1), picture(&n2)]);
}

#[test]
fn another_process_with_the_name_of_a_member_at_another_seed() {
    let site = Site::new("twins-apart");
    let [n1, n2] = two(&site);
    let twin = site.start("n1", anywhere(), &[n2.address]);
    // Whichever hears of a later generation than its own tells: the two overtake each other.
    let [told_by_first, told_by_twin] = [(&n1, &twin), (&twin, &n1)].map(|(own, other)| {
        [
            "WARN".to_owned(),
            "another process uses this node's id".to_owned(),
            format!("own={}", own.address),
            format!("own_boot={:016x}", own.identity.boot.0),
            format!("other={}", other.address),
            format!("other_boot={:016x}", other.identity.boot.0),
        ]
    });
    let told = |parts: &[String]| {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        lines(&parts).len()
    };
    wait_for("a twin to tell", TWINS_MEET, || {
        told(&told_by_first) + told(&told_by_twin) > 0
    });
    assert!(told(&told_by_first) <= 1 && told(&told_by_twin) <= 1);
}
