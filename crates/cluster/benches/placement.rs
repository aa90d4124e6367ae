//! Placement: the look-up that every check makes, a build, and single changes.
//!
//! The look-up must cost the same at 3, 10 and 100 nodes; a change must cost far less than a build.

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tollgate_cluster::{MemberIndex, Placement};
use tollgate_limit::{NodeId, SlotId};

/// Look-ups of one measurement, spread over all slots in no order that a processor could guess.
const LOOK_UPS: u32 = 10_000;

fn members(count: u32) -> Vec<(NodeId, u8)> {
    (0..count)
        .filter_map(|number| Some((NodeId::new(&format!("node-{number}"))?, 1)))
        .collect()
}

fn slots() -> Vec<SlotId> {
    (0..LOOK_UPS)
        .map(|number| {
            let [high, low, ..] = number.wrapping_mul(0x9e37_79b9).to_be_bytes();
            SlotId::new(u16::from_be_bytes([high, low]))
        })
        .collect()
}

fn look_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("placement/look-up");
    group.throughput(Throughput::Elements(u64::from(LOOK_UPS)));
    let slots = slots();
    for nodes in [3, 10, 100] {
        let placement = Placement::new(&members(nodes));
        group.bench_with_input(
            BenchmarkId::from_parameter(nodes),
            &placement,
            |bench, p| {
                bench.iter(|| {
                    for slot in &slots {
                        let owner: Option<MemberIndex> = p.owner(*black_box(slot));
                        black_box(owner);
                    }
                });
            },
        );
    }
    group.finish();
}

fn change(criterion: &mut Criterion) {
    let newcomer = NodeId::new("newcomer").into_iter().collect::<Vec<_>>();
    let mut group = criterion.benchmark_group("placement/change");
    for nodes in [3, 10, 100] {
        let members = members(nodes);
        let placement = Placement::new(&members);
        group.bench_function(BenchmarkId::new("build", nodes), |bench| {
            bench.iter(|| Placement::new(black_box(&members)));
        });
        for node in &newcomer {
            group.bench_function(BenchmarkId::new("join", nodes), |bench| {
                bench.iter(|| placement.with_member(black_box(node), 1));
            });
        }
        if let Some((node, _)) = members.first() {
            group.bench_function(BenchmarkId::new("leave", nodes), |bench| {
                bench.iter(|| placement.without_member(black_box(node)));
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(1));
    targets = look_up, change
}
criterion_main!(benches);
