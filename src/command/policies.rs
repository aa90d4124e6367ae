//! `tollgate policies check`: whether a file is valid, and which limits match.

use tollgate_limit::{Attributes, HashKey, Limit, Policies};

use super::{Exit, Failure};
use crate::{
    arguments::PoliciesCheckArguments,
    config::PolicyFile,
    output::{self, Table},
};

pub(super) fn check(arguments: &PoliciesCheckArguments) -> Result<Exit, Failure> {
    // Which limits match does not depend on how keys are hashed.
    let file = PolicyFile::load(&arguments.file, &HashKey::new([0; 16]))?;
    let mut attributes = Attributes::new();
    for (name, value) in &arguments.attributes {
        let added = attributes.insert(name.as_str(), value.as_str());
        added.map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let policies = sorted(&file.policies);
    let limits: usize = policies.iter().map(|(_, limits)| limits.len()).sum();
    let path = arguments.file.display();
    if limits == 0 {
        output::line(format_args!(
            "{path}: valid, but without any [[limit]]: nothing is limited"
        ))?;
        return Ok(Exit::Done);
    }
    output::line(format_args!(
        "{path}: valid, {limits} limits in {} policies",
        policies.len()
    ))?;
    if !arguments.attributes.is_empty() {
        output::line(table(&policies, &attributes))?;
    }
    Ok(Exit::Done)
}

fn sorted(policies: &Policies) -> Vec<(&str, Vec<&Limit>)> {
    let mut sorted: Vec<_> = policies
        .iter()
        .map(|(name, policy)| (name, policy.limits().iter().map(AsRef::as_ref).collect()))
        .collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted
}

fn table(policies: &[(&str, Vec<&Limit>)], attributes: &Attributes<'_>) -> Table {
    let mut table = Table::default();
    table.row(["policy", "limit", "applies", "because"]);
    for (policy, limits) in policies {
        for limit in limits {
            let (applies, because) = verdict(limit, attributes);
            table.row([*policy, limit.name(), applies, &because]);
        }
    }
    table
}

fn verdict(limit: &Limit, attributes: &Attributes<'_>) -> (&'static str, String) {
    if !limit.matches(attributes) {
        return ("no", "it does not match".to_owned());
    }
    match limit.key_of(attributes) {
        Ok(Some(_)) if limit.key().is_empty() => ("yes", "one counter for all".to_owned()),
        Ok(Some(_)) => ("yes", format!("counts by {}", limit.key().join(", "))),
        Ok(None) => ("no", "a key attribute is absent".to_owned()),
        Err(error) => ("error", error.to_string()),
    }
}
