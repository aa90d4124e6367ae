//! `tollgate policies check`: whether a file is valid, and how its limits meet a request.

mod meeting;
mod words;

use tollgate_limit::{Attributes, HashKey, Policies, Policy};

use self::meeting::Meeting;
use super::{Exit, Failure};
use crate::{arguments::PoliciesCheckArguments, config::PolicyFile, output};

pub(super) fn check(arguments: &PoliciesCheckArguments) -> Result<Exit, Failure> {
    // How limits meet a request does not depend on how keys are hashed.
    let file = PolicyFile::load(&arguments.file, &HashKey::new([0; 16]))?;
    let mut attributes = Attributes::new();
    for (name, value) in &arguments.attributes {
        let added = attributes.insert(name.as_str(), value.as_str());
        added.map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let policies = sorted(&file.policies);
    let limits: usize = policies
        .iter()
        .map(|(_, policy)| policy.limits().len())
        .sum();
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
    if attributes.iter().next().is_none() {
        return Ok(Exit::Done);
    }
    for (name, policy) in policies {
        for limit in policy.limits() {
            let meeting = Meeting::of(policy, limit, &attributes);
            output::line(format_args!("{name}/{}: {meeting}", limit.name()))?;
        }
    }
    Ok(Exit::Done)
}

fn sorted(policies: &Policies) -> Vec<(&str, &Policy)> {
    let mut sorted: Vec<_> = policies.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted
}
