//! The answers of clients, as a history has them.

use tollgate_limit::{LimitDecision, Nanos, NodeId, Outcome};
use tollgate_wire::identity::BootId;

use crate::{
    history::{Amend, Amended, Answer, History, Said},
    load::Answered,
    rig::Rig,
};

/// What a counter is called in a history.
pub(super) fn name(limit: &str, value: &str) -> String {
    format!("{limit}/{value}")
}

/// Writes down what clients heard.
pub(super) fn write(history: &mut History, topics: &[Vec<(String, String)>], all: &[Answered]) {
    for (check, one) in (0..).zip(all) {
        let Some(topic) = topics.get(one.topic) else {
            continue;
        };
        for (limit, value) in topic {
            let heard = one.heard.iter().find(|heard| heard.limit.name() == limit);
            // Some of the limits of a refused check are not asked.
            if heard.is_none() && !one.heard.is_empty() {
                continue;
            }
            let key = name(limit, value);
            if let Some(refund) = one.refund {
                history.amends.push(Amend {
                    key: key.clone(),
                    what: Amended::Refund {
                        units: one.cost,
                        of: Some(check),
                    },
                    asked: refund.asked.into(),
                    answered: refund.answered.map(Nanos::from),
                });
            }
            history.answers.extend(answer((check, one), key, heard));
        }
    }
}

fn answer(
    (check, one): (u64, &Answered),
    key: String,
    heard: Option<&LimitDecision>,
) -> Option<Answer> {
    let entry = NodeId::new(&one.entry.name())?;
    let said = heard.map_or(Said::Nothing, |heard| said(one, heard));
    Some(Answer {
        check,
        key,
        cost: one.cost,
        asked: one.asked.into(),
        answered: heard.map(|_| one.answered.into()),
        decided: None,
        said,
        by: heard.map_or(tollgate_limit::DecidedBy::Owner, |heard| heard.decided_by),
        node: heard.map_or_else(|| entry.clone(), |heard| heard.node.clone()),
        boot: BootId(heard.map_or(0, |heard| heard.boot)),
        degraded: heard.is_some_and(|heard| heard.degraded),
        entry,
    })
}

fn said(one: &Answered, heard: &LimitDecision) -> Said {
    match heard.verdict.outcome {
        Outcome::Refuse(reason) => Said::Refused(reason),
        Outcome::Allow if one.is_admitted() => Said::Admitted,
        Outcome::Allow => Said::Given,
    }
}

/// The rules of these counters.
pub(super) fn rules(history: &mut History, rig: &Rig, counters: &[(String, String)]) {
    for (limit, value) in counters {
        if let Some((_key, rule)) = rig.counter(limit, value) {
            history.rules.insert(name(limit, value), rule);
        }
    }
}
