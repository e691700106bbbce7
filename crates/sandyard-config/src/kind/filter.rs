//! Log levels, as the logging library reads them.

use super::Value;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Reads `info` or `info,sandyard_service=debug`. Directives with spans are passed on unread: the library knows them better.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let is_level = |word: &str| LEVELS.contains(&word.to_ascii_lowercase().as_str());
    for directive in text.split(',').map(str::trim) {
        let fine = match directive.rsplit_once('=') {
            _ if directive.contains(['[', '{']) => true,
            Some((target, level)) => is_module(target) && is_level(level),
            // A lone word is a level or a module; of the latter only paths are taken, so that `inof` is noticed.
            None => is_level(directive) || (directive.contains("::") && is_module(directive)),
        };
        if !fine {
            return Err(format!(
                "is not a log level: write one of {}, or levels by module like info,sandyard_service=debug",
                LEVELS.join(", ")
            ));
        }
    }
    Ok(Value::Text(text.to_owned()))
}

fn is_module(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
    !text.is_empty() && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_pass() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,sandyard_service=debug",
            "warn, hyper::proto=trace",
            "sandyard_server::router",
            "info,[request{id=7}]=trace",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn misspelt_levels_are_noticed() {
        for text in ["inof", "info,", "x=loud", "=info", "verbose"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
