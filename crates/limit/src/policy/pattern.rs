//! Patterns over attribute values: `*` stands for any run of characters, all else for itself.
//!
//! Linear in value times stars, without recursion, so that no pattern is a trap.

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The literal parts between the stars; one part means that there is no star.
    parts: Vec<String>,
}

impl Pattern {
    /// Parses a pattern; every text is one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            parts: text.split('*').map(str::to_owned).collect(),
        }
    }

    /// Whether the whole value matches.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        let Some((first, rest)) = self.parts.split_first() else {
            return value.is_empty();
        };
        let Some((last, middle)) = rest.split_last() else {
            return first == value;
        };
        let Some(mut open) = value.strip_prefix(first.as_str()) else {
            return false;
        };
        for part in middle {
            let Some((_, after)) = open.split_once(part.as_str()) else {
                return false;
            };
            open = after;
        }
        open.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    fn check(pattern: &str, matching: &[&str], other: &[&str]) {
        let parsed = Pattern::new(pattern);
        for value in matching {
            assert!(parsed.matches(value), "{pattern} must match {value}");
        }
        for value in other {
            assert!(!parsed.matches(value), "{pattern} must not match {value}");
        }
    }

    #[test]
    fn a_star_stands_for_any_run() {
        check("free", &["free"], &["", "fre", "freee", "xfree"]);
        check("*", &["", "anything"], &[]);
        check("/v1/*", &["/v1/", "/v1/a/b"], &["/v1", "/v2/a"]);
        check("*.html", &[".html", "a.html"], &["a.htm", "a.html "]);
        check("a*b*c", &["abc", "aXbYc", "abbc"], &["ab", "acb", "ac"]);
        check("a*a", &["aa", "aba"], &["a"]);
        check("", &[""], &["a"]);
    }
}
