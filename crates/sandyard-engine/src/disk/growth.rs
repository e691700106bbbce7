//! How much each disk image may still grow while the host's disk is nearly full.
//!
//! Images are sparse: together they promise more than the host has. So the bytes that are left are divided among the disks in
//! use, and each gets a hard bound until the next check. A program that writes more gets an error, and nothing that was written
//! before is lost.

/// The use of one disk, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskUse {
    /// Written by the sandbox, and still in memory without blocks on the host's disk.
    pub(crate) pending: u64,
    /// Growth since the host's disk became scarce.
    pub(crate) grown: u64,
    /// Whether it grew since the last check.
    pub(crate) is_growing: bool,
}

/// With more than this left, no disk can use it all before the next check.
const AMPLE: u64 = 1 << 30;

/// Divides `remaining` bytes among `disks`: how much each may grow beyond what it holds and has pending.
///
/// The last `shared` bytes are divided evenly by what each has taken since the disk became scarce. Of the rest, those that are
/// growing get most. While there is plenty, the shares may add up to more than there is: the next check comes first.
pub(crate) fn divide(remaining: u64, shared: u64, disks: &[DiskUse]) -> Vec<u64> {
    let shared = remaining.min(shared);
    let rest = remaining - shared;
    let level = water_level(shared, disks);
    let growing = disks.iter().filter(|disk| disk.is_growing).count() as u64;
    let count = disks.len() as u64;
    let of_rest = |disk: &DiskUse| match disk.is_growing {
        _ if rest > AMPLE => rest / 2,
        true => rest / 4 * 3 / growing.max(1) + rest / 4 / count,
        false => rest / 4 / count,
    };
    disks
        .iter()
        .map(|disk| of_rest(disk) + level.saturating_sub(disk.grown))
        .collect()
}

/// The growth up to which `bytes` let every disk grow that has grown less.
fn water_level(bytes: u64, disks: &[DiskUse]) -> u64 {
    let mut grown: Vec<u64> = disks.iter().map(|disk| disk.grown).collect();
    grown.sort_unstable();
    let mut below = 0_u64;
    let mut level = 0;
    for (count, next) in (1_u64..).zip(&grown) {
        // With `count` disks below the level, they share the bytes and what they have already.
        below = below.saturating_add(*next);
        let candidate = bytes.saturating_add(below) / count;
        if count > 1 && candidate <= *next {
            break;
        }
        level = candidate;
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn disk(grown_mib: u64, is_growing: bool) -> DiskUse {
        DiskUse {
            pending: 0,
            grown: grown_mib * MIB,
            is_growing,
        }
    }

    #[test]
    fn nothing_left_is_nothing_for_anybody() {
        assert_eq!(
            divide(0, 100 * MIB, &[disk(0, true), disk(5, false)]),
            [0, 0]
        );
        assert_eq!(divide(7, 100, &[]), Vec::<u64>::new());
    }

    #[test]
    fn what_is_given_is_never_more_than_there_is_when_little_is_left() {
        for remaining in [1, 10, 64, 192, 300, 700, 1100] {
            for growing in 0..5 {
                let disks: Vec<DiskUse> = (0..5)
                    .map(|number| disk(number * 40, number < growing))
                    .collect();
                let given: u64 = divide(remaining * MIB, 192 * MIB, &disks).iter().sum();
                assert!(given <= remaining * MIB, "{given} of {remaining} MiB");
            }
        }
    }

    #[test]
    fn one_that_took_a_lot_leaves_the_last_bytes_to_the_others() {
        let mut disks = vec![disk(2000, true)];
        disks.extend([disk(1, false); 4]);
        let given = divide(192 * MIB, 192 * MIB, &disks);
        assert_eq!(given[0], 0, "the greedy one");
        for share in &given[1..] {
            assert_eq!(*share, 48 * MIB);
        }
        // One that has had more than the others has less to come.
        disks[1].grown += 20 * MIB;
        let given = divide(192 * MIB, 192 * MIB, &disks);
        assert_eq!(given[1] + 20 * MIB, given[2]);
    }

    #[test]
    fn a_growing_disk_gets_most_of_the_unused_rest() {
        let disks = [disk(100, true), disk(0, false), disk(0, false)];
        let given = divide(892 * MIB, 192 * MIB, &disks);
        assert!(given[0] >= 700 * MIB * 3 / 4, "{given:?}");
        assert!(given[1] > 64 * MIB, "{given:?}");
        let given = divide(3000 * MIB, 192 * MIB, &disks);
        assert!(given[1] > 1300 * MIB, "plenty: no need to be strict");
    }
}
