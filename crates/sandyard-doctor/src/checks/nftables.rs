//! Adds an nftables rule to this network namespace, as the engine does.

use sandyard_netlink::nftables::{Expression, Hook, NewTable};

use crate::attempt::{Attempt, StepExt};

const TCP: u8 = 6;
const PORT: u16 = 49_981;

/// A rule that sandboxes have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// Redirects packets to a port of this network namespace.
    Redirect,
    /// Rejects packets.
    Refuse,
    /// Does not track a connection.
    Forget,
    /// Matches packets above a rate.
    Limit,
}

impl Rule {
    /// What was being done, for a failure.
    fn name(self) -> &'static str {
        match self {
            Self::Redirect => "add a redirect rule",
            Self::Refuse => "add a reject rule",
            Self::Forget => "add a notrack rule",
            Self::Limit => "add a limit rule",
        }
    }

    /// Kind, hook and priority of its chain.
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

/// Adds a table, a chain and this rule. Only for a network namespace that is thrown away afterwards.
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
            None => "talk to nftables",
        };
        Err(refused.error).step(step)
    })
}
