//! Many nodes of which a part dies at once: when the others agree on who is left.

use tollgate_sim::shipped;

/// Of a seed with which news that is passed on half as often does not reach one of them.
#[test]
fn after_a_fifth_of_thirty_nodes_died_the_others_agree_in_time() {
    let killed = shipped::kill(2, 30, 20).unwrap();
    assert_eq!(killed.killed, 6);
    let bound = shipped::agreement_bound(30);
    assert!(killed.agreed <= bound, "{killed:?}, bound {bound:?}");
}
