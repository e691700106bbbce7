//! Reads the policy's text.

use std::collections::BTreeMap;

use super::syscalls;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The kernel carries it out.
    Allow,
    /// The caller sees this error; with 0, success. The call is not carried out.
    Errno(u16),
}

/// What the low 32 bits of an argument must be, after masking.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Which argument, from 0.
    pub argument: u8,
    /// Bits that are compared.
    pub mask: u32,
    /// One of these values.
    pub values: Vec<u32>,
}

/// An action, taken if all conditions hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The action.
    pub action: Action,
    /// Conditions that must all hold; empty: always.
    pub conditions: Vec<Condition>,
    /// The reason for the rule.
    pub reason: String,
}

/// The rules by name of the call. What is not named fails with ENOSYS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// For each call its rules in order; the last is unconditional.
    pub calls: BTreeMap<String, Vec<Rule>>,
}

/// Says which line cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A line is not of the form that the head of the policy describes.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A call would fall through its rules.
    #[error("`{call}` has no rule without a condition at its end, or has rules after one")]
    Order {
        /// The call.
        call: String,
    },
}

impl Policy {
    /// The policy that sandboxes run under.
    pub const TEXT: &'static str = include_str!("../../seccomp/policy.txt");

    /// Reads a policy in the format of [`Policy::TEXT`].
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let mut policy = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (calls, rule) = parse_line(line).map_err(|problem| PolicyError::Line {
                line: index + 1,
                problem,
            })?;
            for call in calls {
                policy.calls.entry(call).or_default().push(rule.clone());
            }
        }
        policy.check_order()?;
        Ok(policy)
    }

    fn check_order(&self) -> Result<(), PolicyError> {
        for (call, rules) in &self.calls {
            let first = rules.iter().position(|rule| rule.conditions.is_empty());
            if first != Some(rules.len() - 1) {
                return Err(PolicyError::Order { call: call.clone() });
            }
        }
        Ok(())
    }
}

fn parse_line(line: &str) -> Result<(Vec<String>, Rule), String> {
    let (head, reason) = line.split_once(" -- ").ok_or("no ` -- reason`")?;
    let (head, conditions) = match head.split_once(" when ") {
        Some((head, text)) => (
            head,
            text.split(" and ")
                .map(parse_condition)
                .collect::<Result<_, _>>()?,
        ),
        None => (head, Vec::new()),
    };
    let mut tokens = head.split_ascii_whitespace();
    let action = parse_action(tokens.next().unwrap_or_default())?;
    let calls: Vec<String> = tokens.map(str::to_owned).collect();
    if calls.is_empty() || reason.trim().is_empty() {
        return Err("a call or the reason is missing".to_owned());
    }
    if let Some(unknown) = calls.iter().find(|call| syscalls::find(call).is_none()) {
        return Err(format!("no system call is named `{unknown}`"));
    }
    let reason = reason.trim().to_owned();
    Ok((
        calls,
        Rule {
            action,
            conditions,
            reason,
        },
    ))
}

fn parse_action(word: &str) -> Result<Action, String> {
    let errno = match word {
        "allow" => return Ok(Action::Allow),
        // An error of 0 makes the kernel skip the call and return 0.
        "ignore" => 0,
        "EPERM" => libc::EPERM,
        "ENOSYS" => libc::ENOSYS,
        "EAFNOSUPPORT" => libc::EAFNOSUPPORT,
        "EPROTONOSUPPORT" => libc::EPROTONOSUPPORT,
        _ => return Err(format!("`{word}` is no action")),
    };
    Ok(Action::Errno(errno as u16))
}

/// Reads `argN == V`, `argN in V,V` or `argN & MASK == V`.
fn parse_condition(text: &str) -> Result<Condition, String> {
    let tokens: Vec<&str> = text.split_ascii_whitespace().collect();
    let (argument, mask, values) = match tokens[..] {
        [argument, "==", value] => (argument, u32::MAX, vec![parse_number(value)?]),
        [argument, "&", mask, "==", value] => {
            (argument, parse_number(mask)?, vec![parse_number(value)?])
        }
        [argument, "in", values] => (
            argument,
            u32::MAX,
            values
                .split(',')
                .map(parse_number)
                .collect::<Result<_, _>>()?,
        ),
        _ => return Err(format!("`{text}` is no condition")),
    };
    let argument = argument
        .strip_prefix("arg")
        .and_then(|digit| digit.parse().ok())
        .filter(|argument| *argument < 6)
        .ok_or_else(|| format!("`{argument}` is no argument"))?;
    Ok(Condition {
        argument,
        mask,
        values,
    })
}

fn parse_number(text: &str) -> Result<u32, String> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(|_| format!("`{text}` is not a 32-bit number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Policy::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn embedded_policy_is_sound_and_every_entry_has_a_reason() {
        let policy = Policy::parse(Policy::TEXT).unwrap();
        assert!(policy.calls.len() > 300);
        for (call, rules) in &policy.calls {
            assert!(rules.iter().all(|rule| rule.reason.len() > 5), "{call}");
        }
    }

    #[test]
    fn each_call_is_decided_once() {
        let policy = Policy::parse(Policy::TEXT).unwrap();
        for (call, rules) in &policy.calls {
            let unconditional = rules.iter().filter(|rule| rule.conditions.is_empty());
            assert_eq!(unconditional.count(), 1, "{call}");
        }
    }

    #[test]
    fn conditions_are_read() {
        let policy = Policy::parse(
            "allow clone when arg0 & 0x10 == 0 and arg1 in 1,0x2 -- threads\nEPERM clone -- rest",
        )
        .unwrap();
        let masked = Condition {
            argument: 0,
            mask: 0x10,
            values: vec![0],
        };
        let listed = Condition {
            argument: 1,
            mask: u32::MAX,
            values: vec![1, 2],
        };
        assert_eq!(policy.calls["clone"][0].conditions, [masked, listed]);
        assert_eq!(policy.calls["clone"][1].action, Action::Errno(1));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        assert_eq!(problem("allow read"), "line 1: no ` -- reason`");
        assert_eq!(
            problem("\nallow raed -- x"),
            "line 2: no system call is named `raed`"
        );
        assert_eq!(problem("permit read -- x"), "line 1: `permit` is no action");
        assert_eq!(
            problem("allow -- x"),
            "line 1: a call or the reason is missing"
        );
        assert_eq!(
            problem("allow read when arg6 == 1 -- x"),
            "line 1: `arg6` is no argument"
        );
        assert_eq!(
            problem("allow read when arg0 < 1 -- x"),
            "line 1: `arg0 < 1` is no condition"
        );
        assert_eq!(
            problem("allow read when arg0 == -1 -- x"),
            "line 1: `-1` is not a 32-bit number"
        );
    }

    #[test]
    fn call_that_could_fall_through_is_refused() {
        let order = PolicyError::Order {
            call: "read".to_owned(),
        };
        assert_eq!(
            Policy::parse("allow read when arg0 == 1 -- x"),
            Err(order.clone())
        );
        assert_eq!(
            Policy::parse("allow read -- x\nEPERM read -- y"),
            Err(order)
        );
    }
}
