//! Samples, percentiles, and spread between rounds.

/// Samples of one figure of one subject, by round.
///
/// Subjects take turns in rounds, so that a slow minute of the host affects all of them. The spread between rounds
/// tells how much of a difference is noise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    samples_by_round: Vec<Vec<f64>>,
}

impl Samples {
    /// Adds one round.
    pub(crate) fn push_round(&mut self, round: Vec<f64>) {
        self.samples_by_round.push(round);
    }

    /// Counts the samples of all rounds.
    pub(crate) fn count(&self) -> usize {
        self.samples_by_round.iter().map(Vec::len).sum()
    }

    /// Returns the `percent`th percentile over all rounds, or none when nothing was sampled.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        percentile(self.samples_by_round.concat(), percent)
    }

    /// Returns (highest − lowest) / middle of the rounds' medians: 0.1 means the rounds agree within ten per cent.
    pub(crate) fn spread(&self) -> Option<f64> {
        let medians: Vec<f64> = self
            .samples_by_round
            .iter()
            .filter_map(|round| percentile(round.clone(), 50.0))
            .collect();
        if medians.len() < 2 {
            return None;
        }
        let lowest = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = medians.iter().copied().fold(0.0, f64::max);
        let middle = percentile(medians, 50.0)?;
        (middle > 0.0).then(|| (highest - lowest) / middle)
    }
}

/// Returns the nearest-rank percentile: the smallest sample that at least `percent` per cent of all do not exceed.
pub(crate) fn percentile(mut samples: Vec<f64>, percent: f64) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * samples.len() as f64).ceil() as usize;
    samples.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values_by_round: &[&[f64]]) -> Samples {
        Samples {
            samples_by_round: values_by_round.iter().map(|round| round.to_vec()).collect(),
        }
    }

    #[test]
    fn percentiles_are_samples_that_were_taken() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(hundred.clone(), 50.0), Some(50.0));
        assert_eq!(percentile(hundred.clone(), 99.0), Some(99.0));
        assert_eq!(percentile(hundred, 100.0), Some(100.0));
        assert_eq!(percentile(vec![7.0], 99.0), Some(7.0));
    }

    #[test]
    fn no_samples_have_no_percentile() {
        assert_eq!(percentile(Vec::new(), 50.0), None);
        assert_eq!(Samples::default().percentile(50.0), None);
    }

    #[test]
    fn spread_compares_the_medians_of_the_rounds() {
        assert_eq!(
            samples(&[&[1.0, 2.0, 90.0], &[2.0], &[3.0]]).spread(),
            Some(0.5)
        );
        assert_eq!(samples(&[&[1.0, 2.0]]).spread(), None);
    }
}
