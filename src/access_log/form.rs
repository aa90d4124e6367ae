//! The forms of logs, and which one a text is of.

use clap::ValueEnum;

use super::{entry::Entry, fields::is_time};

/// Lines that are looked at.
const LOOKED_AT: usize = 32;

/// A form of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The common or combined form of Apache and nginx
    AccessLog,
    /// One JSON object a line
    Json,
    /// CSV with the names of the columns in its first line
    Csv,
}

impl Form {
    /// Its name on the command line and in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccessLog => "access-log",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }

    /// The form of a log that starts with this text; `None` if it is of none. `named` are columns that it
    /// must have, if it is CSV.
    pub(super) fn of<'a>(head: &str, mut named: impl Iterator<Item = &'a str>) -> Option<Self> {
        let lines = || head.lines().filter(|line| !line.trim().is_empty());
        let looked_at = || lines().take(LOOKED_AT);
        if looked_at().any(|line| Entry::parse(line).is_some()) {
            return Some(Self::AccessLog);
        }
        if looked_at().any(|line| line.trim_start().starts_with('{')) {
            return Some(Self::Json);
        }
        let first = lines().next()?;
        let column = |name: &str| {
            let columns = first.split(',');
            columns.map(unquoted).any(|it| it == name)
        };
        let columns = first.split(',').map(unquoted);
        let is_csv = columns.into_iter().any(is_time) || named.any(column);
        is_csv.then_some(Self::Csv)
    }
}

fn unquoted(column: &str) -> &str {
    column.trim().trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn a_form_is_found_by_the_first_lines() {
        let entry = r#"10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 0"#;
        for (head, named, form) in [
            (entry, "", Some(Form::AccessLog)),
            (&*format!("\nbroken\n{entry}\n"), "", Some(Form::AccessLog)),
            ("{\"time\": 1}\n", "", Some(Form::Json)),
            ("broken\n {\"time\": 1", "", Some(Form::Json)),
            ("a,TIMESTAMP\n1,2\n", "", Some(Form::Csv)),
            ("\"Time\",\"a\"\r\n1,2\n", "", Some(Form::Csv)),
            ("time\n1\n", "", Some(Form::Csv)),
            ("when,a\n1,2\n", "when", Some(Form::Csv)),
            ("when,a\n1,2\n", "", None),
            ("when,a\n1,2\n", "whe", None),
            ("", "", None),
            ("\n \n", "when", None),
            ("hello\n", "", None),
        ] {
            let named = (!named.is_empty()).then_some(named);
            assert_eq!(Form::of(head, named.into_iter()), form, "{head:?}");
        }
    }
}
