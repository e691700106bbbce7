//! Puts a rule into this network namespace, as the engine does.

use sandyard_netlink::nftables::{Expression, Hook, NewTable};

use crate::attempt::{Attempt, Named};

const TCP: u8 = 6;
const PORT: u16 = 49_981;

/// A rule that sandboxes have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// Sends what is sent elsewhere to a port of this network.
    Redirect,
    /// Answers what arrives that it is not wanted.
    Refuse,
    /// Keeps no account of a connection.
    Forget,
    /// Holds for what comes more often than allowed.
    Limit,
}

impl Rule {
    /// What to say of it when it fails.
    fn name(self) -> &'static str {
        match self {
            Self::Redirect => "add a redirect",
            Self::Refuse => "add a refusal",
            Self::Forget => "leave connections uncounted",
            Self::Limit => "limit new connections",
        }
    }

    /// Kind of its chain, which packets that sees, and when.
    fn chain(self) -> (&'static str, Hook, i32) {
        match self {
            Self::Redirect | Self::Limit => ("nat", Hook::Output, -100),
            Self::Refuse => ("filter", Hook::Input, 0),
            Self::Forget => ("filter", Hook::Output, -300),
        }
    }

    fn expression(self) -> Expression<'static> {
        match self {
            Self::Redirect => Expression::Redirect(PORT),
            Self::Refuse => Expression::Reset,
            Self::Forget => Expression::Forget,
            Self::Limit => Expression::MoreThan {
                per_second: 5000,
                burst: 10_000,
            },
        }
    }
}

/// Makes a table, a chain and this rule in it. Call it in a throw-away network namespace.
pub(super) fn add(rule: Rule) -> Attempt {
    let (kind, hook, priority) = rule.chain();
    let mut table = NewTable::new("t");
    let chain = table.chain("c", kind, hook, priority);
    let last = table.rule("c", &[Expression::Carries(TCP), rule.expression()]);
    table.commit().or_else(|refused| {
        let step = match refused.number {
            Some(number) if number == last => rule.name(),
            Some(number) if number == chain => "add a chain",
            Some(_) => "add a table",
            None => "speak to nftables",
        };
        Err(refused.error).step(step)
    })
}
