//! What is to be done, in order, and what is told of it in between.
//!
//! What a slot is shown as changes when the actions before it were carried out, which is when the next one is
//! asked for. Knows nothing of why. It is emptied after each event, so it is as long as one event makes it: a
//! few entries for each member.

use std::collections::VecDeque;

use tollgate_limit::SlotSet;

use super::{
    MotionAction,
    states::{Shown, SlotStates},
};

/// Actions and what is shown between them.
#[derive(Debug, Default)]
pub(super) struct Queue {
    steps: VecDeque<Step>,
}

#[derive(Debug)]
enum Step {
    Do(MotionAction),
    Show(SlotSet, Shown),
}

impl Queue {
    pub(super) fn act(&mut self, action: MotionAction) {
        if !action.slots().is_empty() || matches!(action, MotionAction::Subscribe(..)) {
            self.steps.push_back(Step::Do(action));
        }
    }

    pub(super) fn show(&mut self, slots: &SlotSet, shown: Shown) {
        if !slots.is_empty() {
            self.steps.push_back(Step::Show(slots.clone(), shown));
        }
    }

    /// The next action; what is to be shown before it is shown.
    pub(super) fn poll(&mut self, states: &SlotStates) -> Option<MotionAction> {
        loop {
            match self.steps.pop_front()? {
                Step::Do(action) => return Some(action),
                Step::Show(slots, shown) => states.show(&slots, &shown),
            }
        }
    }
}
