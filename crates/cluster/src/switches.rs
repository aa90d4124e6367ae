//! The switches of the cluster: kill (admit everything, count nothing) and shadow (no refusal holds).
//!
//! Each is a register: who sets it raises its counter, and of two registers the higher counter holds, of
//! equal counters the greater name. So all nodes agree once each has heard of all, in any order and any
//! number of times; two that set one at once are not told which held. Knows nothing of who tells whom.
//!
//! INV-SWITCHES-CONVERGE: a register never goes back to a lower one. Every check asks how the switches
//! stand, so asking is one atomic read.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU8, Ordering},
};

use tollgate_limit::NodeId;
use tollgate_wire::peer::{Register, Switches};

/// One of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Everything is admitted, and nothing counted.
    Kill,
    /// All limits are treated as shadow limits.
    Shadow,
}

impl Switch {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Kill, Self::Shadow];

    const fn bit(self) -> u8 {
        match self {
            Self::Kill => 1,
            Self::Shadow => 2,
        }
    }

    const fn register(self, switches: &Switches) -> &Register {
        match self {
            Self::Kill => &switches.kill,
            Self::Shadow => &switches.shadow,
        }
    }

    const fn register_mut(self, switches: &mut Switches) -> &mut Register {
        match self {
            Self::Kill => &mut switches.kill,
            Self::Shadow => &mut switches.shadow,
        }
    }
}

/// The switches as this node knows them. Shared by all threads.
#[derive(Debug, Default)]
pub struct SwitchBoard {
    registers: Mutex<Switches>,
    /// A bit for each switch that is on; written under the lock.
    on: AtomicU8,
}

impl SwitchBoard {
    /// All are off and nobody has set any.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether everything is admitted and nothing counted: one atomic read.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.is_on(Switch::Kill)
    }

    /// Whether all limits are shadow limits: one atomic read.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.is_on(Switch::Shadow)
    }

    fn is_on(&self, switch: Switch) -> bool {
        self.on.load(Ordering::Relaxed) & switch.bit() != 0
    }

    /// This node sets a switch; what is to be told to all peers. Only a counter that cannot be raised any
    /// more, which takes a faulty peer, may leave it as it was.
    pub fn set(&self, node: &NodeId, switch: Switch, on: bool) -> Switches {
        let mut registers = self.lock();
        let register = switch.register_mut(&mut registers);
        let newer = Register {
            counter: register.counter.saturating_add(1),
            node: node.as_str().to_owned(),
            on,
        };
        raise(register, &newer);
        self.publish(&registers);
        registers.clone()
    }

    /// A peer has told how it knows them; whether that is new here, and so is to be told to the others.
    pub fn merge(&self, told: &Switches) -> bool {
        let mut registers = self.lock();
        let mut is_new = false;
        for switch in Switch::ALL {
            is_new |= raise(switch.register_mut(&mut registers), switch.register(told));
        }
        self.publish(&registers);
        is_new
    }

    /// What a new peer is told, and an operator.
    #[must_use]
    pub fn registers(&self) -> Switches {
        self.lock().clone()
    }

    /// Under the lock, so that the bits are never those of older registers.
    fn publish(&self, registers: &Switches) {
        let on = Switch::ALL.iter().filter(|one| one.register(registers).on);
        let bits = on.fold(0, |bits, switch| bits | switch.bit());
        self.on.store(bits, Ordering::Relaxed);
    }

    /// Nothing panics under the lock, and a register is written whole.
    fn lock(&self) -> MutexGuard<'_, Switches> {
        self.registers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a register over if it is higher. A node that has restarted may set one under a counter that it
/// has used: then *on* is the higher.
fn raise(held: &mut Register, other: &Register) -> bool {
    let is_higher = (other.counter, &other.node, other.on) > (held.counter, &held.node, held.on);
    if is_higher {
        held.clone_from(other);
    }
    is_higher
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tollgate_limit::NodeId;
    use tollgate_wire::peer::{Register, Switches};

    use super::{Switch, SwitchBoard};

    fn node(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn register(counter: u64, node: &str, on: bool) -> Register {
        Register {
            counter,
            node: node.to_owned(),
            on,
        }
    }

    fn told(kill: Register) -> Switches {
        Switches {
            kill,
            shadow: Register::default(),
        }
    }

    fn stand(board: &SwitchBoard) -> (bool, bool) {
        (board.is_killed(), board.is_shadow())
    }

    #[test]
    fn what_is_set_stands_here_and_where_it_is_told() {
        let (one, other) = (SwitchBoard::new(), SwitchBoard::new());
        assert_eq!(stand(&one), (false, false));
        assert!(!other.merge(&one.registers()), "nobody has set any");
        for (switch, on, expected) in [
            (Switch::Kill, true, (true, false)),
            (Switch::Shadow, true, (true, true)),
            (Switch::Kill, false, (false, true)),
            (Switch::Kill, false, (false, true)),
            (Switch::Shadow, false, (false, false)),
        ] {
            let told = one.set(&node("a"), switch, on);
            assert_eq!(stand(&one), expected);
            assert!(other.merge(&told));
            assert!(!other.merge(&told), "it is known");
            assert_eq!(stand(&other), expected);
        }
        assert_eq!(one.registers().kill, register(3, "a", false));
    }

    #[test]
    fn the_higher_counter_holds_then_the_greater_name_then_on() {
        let rising = [
            register(0, "", false),
            register(1, "a", false),
            register(1, "a", true),
            register(1, "b", false),
            register(2, "a", true),
            register(u64::MAX, "a", false),
        ];
        for (lower, one) in rising.iter().enumerate() {
            for (higher, other) in rising.iter().enumerate() {
                let board = SwitchBoard::new();
                board.merge(&told(one.clone()));
                assert_eq!(board.merge(&told(other.clone())), higher > lower);
                assert_eq!(board.registers().kill, rising[lower.max(higher)]);
                assert_eq!(board.is_killed(), rising[lower.max(higher)].on);
            }
        }
    }

    #[test]
    fn a_counter_at_its_end_breaks_nothing() {
        let board = SwitchBoard::new();
        board.merge(&told(register(u64::MAX, "m", true)));
        board.set(&node("a"), Switch::Kill, false);
        assert!(board.is_killed());
        board.set(&node("z"), Switch::Kill, false);
        assert!(!board.is_killed());
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set(usize, Switch, bool),
        Tell(usize, usize),
    }

    const NODES: usize = 4;

    fn step() -> impl Strategy<Value = Step> {
        let switch = prop_oneof![Just(Switch::Kill), Just(Switch::Shadow)];
        let set = (0..NODES, switch, any::<bool>());
        prop_oneof![
            set.prop_map(|(node, switch, on)| Step::Set(node, switch, on)),
            (0..NODES, 0..NODES).prop_map(|(from, to)| Step::Tell(from, to)),
        ]
    }

    proptest! {
        /// INV-SWITCHES-CONVERGE.
        #[test]
        fn all_agree_once_all_have_heard_of_all(
            steps in prop::collection::vec(step(), 0..60),
            order in Just((0..NODES * NODES).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let boards: [SwitchBoard; NODES] = std::array::from_fn(|_| SwitchBoard::new());
            let mut latest = Switches::default();
            for step in steps {
                match step {
                    Step::Set(at, switch, on) => {
                        let told = boards[at].set(&node(&format!("n{at}")), switch, on);
                        let register = switch.register(&told);
                        prop_assert_eq!(register.on, on, "what is set stands at once");
                        let latest = switch.register_mut(&mut latest);
                        let rank = |one: &Register| (one.counter, one.node.clone());
                        prop_assert!(rank(register) != rank(latest), "no register is used twice");
                        if rank(register) > rank(latest) {
                            *latest = register.clone();
                        }
                    }
                    Step::Tell(from, to) => {
                        let before = boards[to].registers();
                        let is_new = boards[to].merge(&boards[from].registers());
                        prop_assert_eq!(is_new, boards[to].registers() != before);
                    }
                }
            }
            // Each tells each what it knew at the end, in any order.
            let said: Vec<_> = boards.iter().map(SwitchBoard::registers).collect();
            for pair in order {
                boards[pair % NODES].merge(&said[pair / NODES]);
            }
            for board in &boards {
                prop_assert_eq!(&board.registers(), &latest);
                prop_assert_eq!(stand(board), (latest.kill.on, latest.shadow.on));
            }
        }
    }
}
