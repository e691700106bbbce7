//! Turns a policy into one program of classic BPF.
//!
//! ```text
//! is this our architecture? ── no ──▶ kill
//!     │ yes
//! binary search of the call's number over runs of calls with the same rules
//!     │
//! check of arguments, then the answer
//! ```

use libc::sock_filter;

use super::policy::{Action, Policy, Rule};
use super::syscalls;

/// `AUDIT_ARCH_X86_64` or `AUDIT_ARCH_AARCH64`.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCH: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the seccomp policy knows x86_64 and aarch64 only");

const RET_KILL_PROCESS: u32 = 0x8000_0000;
const RET_ERRNO: u32 = 0x0005_0000;
const RET_ALLOW: u32 = 0x7fff_0000;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_GREATER_OR_EQUAL: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// Offsets in `struct seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// A tracer skips a call by making its number this one, and then sets the result itself: the filter must not overwrite it.
const SKIPPED: u32 = u32::MAX;

/// Calls from `start` up to the next run's start, all with the same rules.
struct Run<'policy> {
    start: u32,
    rules: Rules<'policy>,
}

/// Compares by what is done, not why.
#[derive(Clone, Copy)]
struct Rules<'policy>(&'policy [Rule]);

impl PartialEq for Rules<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(other.0).all(|(one, other)| {
                one.action == other.action && one.conditions == other.conditions
            })
    }
}

/// Assembles the program.
pub(super) fn assemble(policy: &Policy) -> Vec<sock_filter> {
    let unknown = [unconditional(Action::Errno(libc::ENOSYS as u16))];
    let skipped = [unconditional(Action::Allow)];
    let runs = runs(policy, &unknown, &skipped);
    let mut program = vec![
        plain(LOAD, ARCH_AT),
        jump(JUMP_EQUAL, ARCH, 1, 0),
        plain(RETURN, RET_KILL_PROCESS),
        plain(LOAD, NUMBER_AT),
    ];
    program.extend(search(&runs));
    program
}

fn unconditional(action: Action) -> Rule {
    Rule {
        action,
        conditions: Vec::new(),
        reason: String::new(),
    }
}

/// Lays the calls on the line of all numbers. On x86_64 this leaves the x32 numbers among the unknown.
fn runs<'policy>(
    policy: &'policy Policy,
    unknown: &'policy [Rule],
    skipped: &'policy [Rule],
) -> Vec<Run<'policy>> {
    let mut calls: Vec<(u32, &[Rule])> = policy
        .calls
        .iter()
        .filter_map(|(name, rules)| Some((syscalls::find(name)?.number()?, rules.as_slice())))
        .chain([(SKIPPED, skipped)])
        .collect();
    calls.sort_by_key(|(number, _)| *number);
    let mut runs: Vec<Run<'policy>> = Vec::new();
    let mut push = |start: u32, rules: &'policy [Rule]| {
        let rules = Rules(rules);
        if runs.last().is_none_or(|last| last.rules != rules) {
            runs.push(Run { start, rules });
        }
    };
    let mut next = 0;
    for (number, rules) in calls {
        if number > next {
            push(next, unknown);
        }
        push(number, rules);
        next = number.saturating_add(1);
    }
    runs
}

/// Emits a search that ends in the right run's answer. The call's number is loaded.
fn search(runs: &[Run<'_>]) -> Vec<sock_filter> {
    let [run] = runs else {
        let (low, high) = runs.split_at(runs.len() / 2);
        let (start, low, high) = (high[0].start, search(low), search(high));
        let mut code = match u8::try_from(low.len()) {
            Ok(distance) => vec![jump(JUMP_GREATER_OR_EQUAL, start, distance, 0)],
            // Conditional jumps reach 255 instructions; the other kind reaches all.
            Err(_) => vec![
                jump(JUMP_GREATER_OR_EQUAL, start, 0, 1),
                plain(JUMP, low.len() as u32),
            ],
        };
        code.extend(low);
        code.extend(high);
        return code;
    };
    run.rules.0.iter().flat_map(answer).collect()
}

/// Emits one rule: falls through to what comes next if a condition does not hold.
fn answer(rule: &Rule) -> Vec<sock_filter> {
    let mut code = vec![plain(RETURN, result(rule.action))];
    // Backwards, since a jump past the rule must know how long the rest of it is.
    for condition in rule.conditions.iter().rev() {
        let past = code.len() as u8;
        let count = condition.values.len();
        let mut check = vec![plain(
            LOAD,
            ARGUMENTS_AT + 8 * u32::from(condition.argument),
        )];
        if condition.mask != u32::MAX {
            check.push(plain(AND, condition.mask));
        }
        for (index, value) in condition.values.iter().enumerate() {
            let others = (count - 1 - index) as u8;
            let jump_false = if others == 0 { past } else { 0 };
            check.push(jump(JUMP_EQUAL, *value, others, jump_false));
        }
        check.extend(code);
        code = check;
    }
    code
}

fn result(action: Action) -> u32 {
    match action {
        Action::Allow => RET_ALLOW,
        Action::Errno(errno) => RET_ERRNO | u32::from(errno),
    }
}

fn plain(code: u16, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would.
    fn run(program: &[sock_filter], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(arch.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        arguments
            .iter()
            .for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut loaded) = (0, 0);
        loop {
            let instruction = program[at];
            at += 1;
            let taken = match instruction.code {
                RETURN => return instruction.k,
                LOAD => {
                    let from = instruction.k as usize;
                    loaded = u32::from_le_bytes(data[from..from + 4].try_into().unwrap());
                    continue;
                }
                AND => {
                    loaded &= instruction.k;
                    continue;
                }
                JUMP => {
                    at += instruction.k as usize;
                    continue;
                }
                JUMP_EQUAL => loaded == instruction.k,
                JUMP_GREATER_OR_EQUAL => loaded >= instruction.k,
                other => panic!("instruction {other:#x}"),
            };
            at += usize::from(if taken {
                instruction.jt
            } else {
                instruction.jf
            });
        }
    }

    /// What the rules say, read the slow way.
    fn expected(rules: &[Rule], arguments: [u64; 6]) -> u32 {
        let holds = |rule: &&Rule| {
            rule.conditions.iter().all(|condition| {
                let seen = arguments[usize::from(condition.argument)] as u32 & condition.mask;
                condition.values.contains(&seen)
            })
        };
        result(rules.iter().find(holds).unwrap().action)
    }

    #[test]
    fn program_answers_every_unconditional_and_unknown_number_as_the_policy_says() {
        let policy = Policy::parse(Policy::TEXT).unwrap();
        let program = assemble(&policy);
        let mut expected_answers = vec![RET_ERRNO | libc::ENOSYS as u32; 600];
        for (name, rules) in &policy.calls {
            if let Some(number) = syscalls::find(name).unwrap().number() {
                expected_answers[number as usize] = expected(rules, [0; 6]);
            }
        }
        let got: Vec<u32> = (0..600)
            .map(|number| run(&program, ARCH, number, [0; 6]))
            .collect();
        assert_eq!(got, expected_answers);
    }

    #[test]
    fn program_checks_arguments_as_the_policy_says() {
        let policy = Policy::parse(Policy::TEXT).unwrap();
        let program = assemble(&policy);
        let values = [
            0,
            1,
            2,
            4,
            6,
            8,
            10,
            12,
            16,
            17,
            40,
            132,
            0x80,
            0x5412,
            0x1_0000_5412,
            0x541c,
            0x40000,
            0x40_0000,
            0x1000_0011,
            0x4000_0011,
            0xffff_ffff,
        ];
        for (name, rules) in policy.calls.iter().filter(|(_, rules)| rules.len() > 1) {
            let number = syscalls::find(name).unwrap().number().unwrap();
            for (first, second, third) in triples(&values) {
                let arguments = [first, second, third, 0, 0, 0];
                let answer = run(&program, ARCH, number, arguments);
                assert_eq!(answer, expected(rules, arguments), "{name} {arguments:x?}");
            }
        }
    }

    fn triples(values: &[u64]) -> impl Iterator<Item = (u64, u64, u64)> {
        values.iter().flat_map(move |first| {
            values
                .iter()
                .flat_map(move |second| values.iter().map(move |third| (*first, *second, *third)))
        })
    }

    #[test]
    fn other_architectures_are_killed_and_x32_numbers_are_unknown() {
        let program = assemble(&Policy::parse(Policy::TEXT).unwrap());
        assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), RET_KILL_PROCESS);
        assert_eq!(
            run(&program, ARCH, 0x4000_0001, [0; 6]),
            RET_ERRNO | libc::ENOSYS as u32
        );
    }

    #[test]
    fn call_that_a_tracer_skipped_is_left_alone() {
        let program = assemble(&Policy::parse(Policy::TEXT).unwrap());
        assert_eq!(run(&program, ARCH, u32::MAX, [0; 6]), RET_ALLOW);
        assert_eq!(
            run(&program, ARCH, u32::MAX - 1, [0; 6]),
            RET_ERRNO | libc::ENOSYS as u32
        );
    }

    #[test]
    fn program_is_well_below_the_kernel_s_size_limit_and_shallow() {
        let program = assemble(&Policy::parse(Policy::TEXT).unwrap());
        assert!(program.len() < 1000, "{}", program.len());
    }

    #[test]
    fn empty_policy_refuses_all() {
        let program = assemble(&Policy::default());
        assert_eq!(
            run(&program, ARCH, 0, [0; 6]),
            RET_ERRNO | libc::ENOSYS as u32
        );
    }
}
