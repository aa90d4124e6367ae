//! What may be logged: a level, or directives such as `info,tollgate_node=debug`.
//!
//! Stricter than the filter that reads them: that one takes a bare word for the name of a target, so a
//! mistyped level would silence all else. Here a bare word is a level.

use tracing_subscriber::EnvFilter;

/// What a filter must look like.
pub(super) const RIGHT_FORM: &str = "write \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\", \
     or with targets \"info,tollgate_node=debug\"";
/// The names of levels.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Whether a text can be the filter of the log; if not, what is wrong with it.
pub(super) fn check(text: &str) -> Result<(), String> {
    for directive in text.split(',') {
        let (target, level) = directive.rsplit_once('=').unwrap_or(("-", directive));
        let is_level = LEVELS.iter().any(|name| name.eq_ignore_ascii_case(level));
        if target.is_empty() || !is_level {
            return Err(format!("{directive:?} is not a level"));
        }
    }
    match text.parse::<EnvFilter>() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{text:?} is not a level: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn levels_and_targets_with_levels_are_taken() {
        for text in [
            "off",
            "trace",
            "warn,tollgate_node=debug",
            "INFO",
            "info,tollgate_api=off",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_bare_word_is_a_level_and_nothing_else() {
        for text in [
            "",
            "loud",
            "info,loud",
            "info,",
            "info, tollgate_api=off",
            "tollgate_node",
            "tollgate_node=loud",
            "=debug",
            "a=b=debug",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }
}
