//! Stacks of our processes that wait in the kernel, which CPU profilers do not show.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sampling interval. Relevant waits last a millisecond or more.
const INTERVAL: Duration = Duration::from_millis(2);

/// Functions kept of each stack: enough to tell what it was all for.
const DEPTH: usize = 8;

/// Runs `work` and returns its result with the sampled stacks, most frequent first.
///
/// Samples only our processes in uninterruptible sleep, the state of waiting for a disk, a lock or a grace period.
/// Reading stacks needs root.
pub(crate) fn watch<T>(work: impl FnOnce() -> T) -> (T, Vec<(String, usize)>) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut met = HashMap::new();
            while !is_over.load(Ordering::Relaxed) {
                count_waiting_stacks(&mut met);
                std::thread::sleep(INTERVAL);
            }
            met
        });
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        let mut met: Vec<_> = watcher.join().unwrap_or_default().into_iter().collect();
        met.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (result, met)
    })
}

/// Counts the stack of each waiting process. Skips processes that end meanwhile.
fn count_waiting_stacks(met: &mut HashMap<String, usize>) {
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else {
            continue;
        };
        let Some(name) = waiting_process(&stat) else {
            continue;
        };
        if let Ok(stack) = fs::read_to_string(process.path().join("stack")) {
            *met.entry(format!("{name}: {}", functions(&stack)))
                .or_default() += 1;
        }
    }
}

/// Returns the name of a process of ours that waits, from its `stat`.
fn waiting_process(stat: &str) -> Option<&str> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1;
    (name.starts_with("sandyard") && rest.starts_with('D')).then_some(name)
}

/// Writes a stack's functions in one line, innermost first.
fn functions(stack: &str) -> String {
    let names = stack
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split('+').next());
    names.take(DEPTH).collect::<Vec<_>>().join(" < ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_waiting_processes_count() {
        assert_eq!(
            waiting_process("7 (sandyard-agent) D 1 7"),
            Some("sandyard-agent")
        );
        assert_eq!(waiting_process("7 (sandyard-agent) S 1 7"), None);
        assert_eq!(waiting_process("7 (kworker/1:1) D 1 7"), None);
    }

    #[test]
    fn a_stack_becomes_one_line() {
        let stack = "[<0>] ext4_sync_fs+0x1/0x2\n[<0>] do_exit+0x3/0x4\n";
        assert_eq!(functions(stack), "ext4_sync_fs < do_exit");
    }

    #[test]
    fn the_work_is_done_and_its_result_given() {
        assert_eq!(watch(|| 7).0, 7);
    }
}
