//! Deciding without the owner: by the fallbacks of the limits, in the local shares. What these admit is owed to the owner.

use tollgate_cluster::{Substitute, substitute_for};
use tollgate_limit::{Ask, Change, DecidedBy, Fallback, Mode, Nanos, Verdict};

use super::{
    super::{LimitSaid, Node},
    Charged,
};

impl Node {
    pub(super) fn fall_back(&mut self, now: Nanos, id: u64, limits: &[usize]) {
        self.fall_back_now(now, id, limits);
        self.finish(now, id);
    }

    /// Decides by the fallbacks of these limits.
    pub(super) fn fall_back_now(&mut self, now: Nanos, id: u64, limits: &[usize]) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        let members = self.view.placement().members().len();
        let mode = entry.check.mode;
        let limits_of: Vec<_> = limits
            .iter()
            .filter_map(|at| entry.check.limits.get(*at).copied())
            .collect();
        let mut said = Vec::new();
        for limit in &limits_of {
            let ask = limit.ask;
            let substitute = substitute_for(&ask.rule, limit.fallback, members);
            let decided = match substitute {
                Substitute::Say(_) => None,
                Substitute::Count(rule, _) | Substitute::Decide(rule) => {
                    Some(self.decide_in_shares(now, Ask { rule, ..ask }, limit.fallback, mode))
                }
            };
            let counts = match (&substitute, &decided) {
                (Substitute::Count(rule, _), Some(decided)) if mode == Mode::Consume => {
                    if !decided.is_allowed() {
                        let ask = Ask { rule: *rule, ..ask };
                        self.shares.amend(now, &ask, Change::Charge);
                    }
                    true
                }
                (_, Some(decided)) => decided.is_allowed() && mode == Mode::Consume,
                (_, None) => false,
            };
            if counts {
                self.owe_share(now, ask.key);
            }
            let Some(verdict) = substitute.said(decided) else {
                continue;
            };
            said.push(LimitSaid {
                verdict,
                by: DecidedBy::Fallback,
                node: self.name.clone(),
                boot: self.boot,
                degraded: true,
                decided: self.world(now),
            });
        }
        for (at, said) in limits.iter().zip(said) {
            self.record(id, &[*at], vec![said], Charged::Share);
        }
    }

    pub(super) fn decide_in_shares(
        &self,
        now: Nanos,
        ask: Ask,
        fallback: Fallback,
        mode: Mode,
    ) -> Verdict {
        if fallback == Fallback::LocalFull
            && let Some(used) = self.last_answers.used(now, ask.key)
        {
            self.shares.seed(now, ask.key, &ask.rule, used);
        }
        self.shares.decide(now, &ask, mode)
    }
}
