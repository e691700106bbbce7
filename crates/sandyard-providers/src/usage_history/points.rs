//! The points of one instance, packed: the points of a thousand instances must fit into little memory.

use std::collections::VecDeque;
use std::time::Duration;

use sandyard_provider::UsagePoint;

/// How long points are retained.
pub(super) const RETENTION: Duration = Duration::from_secs(3600);

/// Maximum number of points, however often they are added.
const MAX_POINTS: usize = 730;

/// Number of points by which the memory grows: doubling would waste half of it.
const GROWTH: usize = 73;

/// Unit of the packed times, which count from the epoch of the history.
const TIME_UNIT_MS: i64 = 100;
const PAGE: u64 = 4096;

/// Points in order of time.
#[derive(Debug, Default)]
pub(super) struct Points(VecDeque<Packed>);

/// A point in 20 bytes.
#[derive(Clone, Copy, Debug)]
struct Packed {
    at: u32,
    memory_pages: u32,
    cache_pages: u32,
    disk_pages: u32,
    /// Hundredths of a percent.
    cpu: u16,
}

impl Points {
    /// Adds the newest point. Packed times count from `epoch_ms`.
    pub(super) fn push(&mut self, epoch_ms: i64, point: &UsagePoint) {
        self.forget_before(epoch_ms, point.at_ms - RETENTION.as_millis() as i64);
        if self.0.len() >= MAX_POINTS {
            self.0.pop_front();
        }
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(GROWTH);
        }
        self.0.push_back(Packed {
            at: units_since(epoch_ms, point.at_ms),
            memory_pages: pages(point.memory_bytes),
            cache_pages: pages(point.cache_bytes),
            disk_pages: pages(point.disk_bytes),
            // A cast saturates at the largest value.
            cpu: (point.cpu_percent * 100.0).round() as u16,
        });
    }

    /// Drops points before a time.
    pub(super) fn forget_before(&mut self, epoch_ms: i64, ms: i64) {
        let oldest = units_since(epoch_ms, ms);
        while self.0.front().is_some_and(|point| point.at < oldest) {
            self.0.pop_front();
        }
        if self.0.is_empty() {
            self.0.shrink_to_fit();
        }
    }

    /// The points between two times, both included, oldest first.
    pub(super) fn between(&self, epoch_ms: i64, from_ms: i64, to_ms: i64) -> Vec<UsagePoint> {
        let unpacked = self.0.iter().map(|packed| UsagePoint {
            at_ms: epoch_ms + i64::from(packed.at) * TIME_UNIT_MS,
            cpu_percent: f32::from(packed.cpu) / 100.0,
            memory_bytes: u64::from(packed.memory_pages) * PAGE,
            cache_bytes: u64::from(packed.cache_pages) * PAGE,
            disk_bytes: u64::from(packed.disk_pages) * PAGE,
        });
        unpacked
            .filter(|point| (from_ms..=to_ms).contains(&point.at_ms))
            .collect()
    }
}

fn units_since(epoch_ms: i64, ms: i64) -> u32 {
    let units = ms.saturating_sub(epoch_ms) / TIME_UNIT_MS;
    u32::try_from(units.max(0)).unwrap_or(u32::MAX)
}

fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes / PAGE).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: i64 = 1_700_000_000_000;

    fn point(at_ms: i64) -> UsagePoint {
        UsagePoint {
            at_ms,
            cpu_percent: 12.34,
            memory_bytes: 5 << 30,
            cache_bytes: 3 << 20,
            disk_bytes: 1 << 40,
        }
    }

    #[test]
    fn a_point_survives_packing() {
        let mut points = Points::default();
        points.push(EPOCH, &point(EPOCH + 5000));
        let out = points.between(EPOCH, EPOCH, EPOCH + 5000);
        assert_eq!(out, [point(EPOCH + 5000)]);
        assert!(points.between(EPOCH, EPOCH, EPOCH + 4999).is_empty());
        assert!(points.between(EPOCH, EPOCH + 5001, i64::MAX).is_empty());
    }

    #[test]
    fn values_out_of_range_are_clamped() {
        let mut points = Points::default();
        points.push(
            EPOCH,
            &UsagePoint {
                at_ms: EPOCH - 7,
                cpu_percent: f32::MAX,
                memory_bytes: u64::MAX,
                ..UsagePoint::default()
            },
        );
        let out = points.between(EPOCH, i64::MIN, i64::MAX);
        assert_eq!(out[0].at_ms, EPOCH, "the clock was set back");
        assert!((out[0].cpu_percent - 655.35).abs() < 0.01);
    }

    #[test]
    fn a_thousand_instances_fit_into_25_mib_and_old_points_are_dropped() {
        let mut points = Points::default();
        for tick in 0..2000 {
            points.push(EPOCH, &point(EPOCH + tick * 5000));
        }
        let all = points.between(EPOCH, i64::MIN, i64::MAX);
        let newest = EPOCH + 1999 * 5000;
        assert_eq!(all.last().map(|point| point.at_ms), Some(newest));
        assert_eq!(all[0].at_ms, newest - 3_600_000);
        assert_eq!(all.len(), 721);
        let bytes = points.0.capacity() * size_of::<Packed>();
        assert!(bytes * 1000 < 25 << 20, "{bytes} bytes each");
        points.forget_before(EPOCH, newest + TIME_UNIT_MS);
        assert_eq!((points.0.len(), points.0.capacity()), (0, 0));
    }

    #[test]
    fn frequent_points_are_bounded_too() {
        let mut points = Points::default();
        for tick in 0..10_000 {
            points.push(EPOCH, &point(EPOCH + tick * 100));
        }
        assert_eq!(points.between(EPOCH, i64::MIN, i64::MAX).len(), MAX_POINTS);
    }
}
