//! Statistics: small nets after some steps as their Markov chain has them, nets at rest as detailed balance
//! has them, and conservation.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use super::*;

fn run(device: &Device, problem: &Problem, marking: &[u32], seed: u64) -> Vec<u64> {
    let marking = Array::from_slice(device, &[problem.rows, 2 * problem.rows], marking).unwrap();
    let mut sums = Array::zeros(device, &problem.shape()).unwrap();
    simulate(&marking, problem.steps, seed, &mut sums).unwrap();
    sums.to_vec().unwrap()
}

/// Every second column holds a token in each place.
fn stripes(n: usize) -> Vec<u32> {
    (0..2 * n * n).map(|place| place as u32 % 2).collect()
}

/// Mean, variance and fourth central moment of a number with these probabilities of 0, 1, …
fn central(probabilities: &[f64]) -> [f64; 3] {
    let about = |centre: f64, power: i32| {
        probabilities.iter().enumerate().map(|(t, p)| p * (t as f64 - centre).powi(power)).sum::<f64>()
    };
    let mean = about(0.0, 1);
    [mean, about(mean, 2), about(mean, 4)]
}

/// How many standard errors the mean and the variance of a row's tokens are off, at most, over all rows. Of R
/// runs the mean's squared error is σ²/R, the variance's (μ₄ − σ⁴ (R − 3)/(R − 1))/R.
fn off(found: &[Moments], runs: usize, rows: &[Vec<f64>]) -> f64 {
    let of_row = |(found, probabilities): (&Moments, &Vec<f64>)| {
        let [mean, variance, fourth] = central(probabilities);
        let r = runs as f64;
        let squares = [variance, fourth - variance * variance * (r - 3.0) / (r - 1.0)];
        let errors = squares.map(|square| (square / r).sqrt());
        let [a, b] = [(found.mean - mean) / errors[0], (found.variance - variance) / errors[1]].map(f64::abs);
        // A row that does not vary has no standard error.
        if variance > 0.0 { a.max(b) } else { 1e9 * (found.mean - mean).abs() }
    };
    found.iter().zip(rows).map(of_row).fold(0.0, f64::max)
}

/// The probabilities of markings. Bit i of a marking is place i.
type Distribution = BTreeMap<u64, f64>;

/// A transition and its reverse, with their probabilities.
fn fire(p: &Distribution, [from, to]: [usize; 2], [forth, back]: [f64; 2]) -> Distribution {
    let mut after = Distribution::new();
    for (&marking, &probability) in p {
        let fires = match [from, to].map(|place| marking >> place & 1) {
            [1, 0] => forth,
            [0, 1] => back,
            _ => 0.0,
        };
        *after.entry(marking).or_default() += (1.0 - fires) * probability;
        *after.entry(marking ^ (1 << from) ^ (1 << to)).or_default() += fires * probability;
    }
    after.retain(|_, &mut probability| probability > 0.0);
    after
}

/// For each row the probabilities of 0, 1, … tokens after half steps: the Markov chain over all markings that
/// have as many tokens.
fn chain(n: usize, start: &[u32], halves: usize) -> Vec<Vec<f64>> {
    let (places, columns) = (2 * n * n, 2 * n);
    let marking = start.iter().enumerate().map(|(i, &tokens)| u64::from(tokens) << i).sum();
    let mut p = Distribution::from([(marking, 1.0)]);
    for half in 0..halves {
        for row in (0..places).step_by(columns) {
            for x in (half % 2..columns).step_by(2) {
                p = fire(&p, [row + x, row + (x + 1) % columns], [0.5, 0.5]);
            }
        }
        for y in (half % 2..n - 1).step_by(2) {
            for x in 0..columns {
                p = fire(&p, [y * columns + x, (y + 1) * columns + x], [1.0, 0.5]);
            }
        }
    }
    let row = |y: usize| {
        let mut of_tokens = vec![0.0; columns + 1];
        for (marking, p) in &p {
            of_tokens[(marking >> (y * columns) & ((1 << columns) - 1)).count_ones() as usize] += p;
        }
        of_tokens
    };
    (0..n).map(row).collect()
}

#[test]
fn small_nets_follow_their_markov_chain() {
    // Four tokens on 8 places have 70 markings, three on 32 places 4960.
    let mut three = vec![0; 32];
    three[0] = 1;
    three[11] = 1;
    three[29] = 1;
    for device in rayspin_emu::devices().unwrap() {
        for (rows, start, steps) in [(2, &stripes(2), 1), (2, &stripes(2), 3), (4, &three, 1), (4, &three, 2)]
        {
            let problem = Problem { rows, runs: 1 << 14, steps };
            let found = moments(&run(&device, &problem, start, 11), &problem);
            let right = off(&found, problem.runs, &chain(rows, start, 2 * steps));
            assert!(right < 4.5, "{}: {problem}: {right} standard errors", device.describe());
            // The chain with a step less is far away.
            let wrong = off(&found, problem.runs, &chain(rows, start, 2 * steps - 2));
            assert!(wrong > 10.0, "{problem}: {wrong} standard errors from a step less");
        }
    }
}

/// C(n, k)
fn choose(n: usize, k: usize) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// For each row the probabilities of 0, 1, … tokens at rest. A transition downwards is `ratio` times as
/// probable as its reverse, so that by detailed balance a marking has the probability Π ratio^(row of a
/// token) / Z.
fn at_rest(n: usize, tokens: usize, ratio: f64) -> Vec<Vec<f64>> {
    let weight = |y: usize, t: usize| choose(2 * n, t) * ratio.powi((y * t) as i32);
    // The weight of all markings of the rows but one with 0, 1, … tokens.
    let others = |but: usize| {
        let mut sum = vec![0.0; tokens + 1];
        sum[0] = 1.0;
        for y in (0..n).filter(|&y| y != but) {
            let with = |all: usize| (0..=all.min(2 * n)).map(|t| weight(y, t) * sum[all - t]).sum();
            sum = (0..=tokens).map(with).collect();
        }
        sum
    };
    let row = |y: usize| {
        let others = others(y);
        let all: Vec<f64> = (0..=tokens.min(2 * n)).map(|t| weight(y, t) * others[tokens - t]).collect();
        let whole: f64 = all.iter().sum();
        all.into_iter().map(|weight| weight / whole).collect()
    };
    (0..n).map(row).collect()
}

/// On the CPU alone: all devices give the same sums.
#[test]
fn nets_come_to_rest_in_detailed_balance() {
    let problem = Problem { rows: 6, runs: 1 << 14, steps: 200 };
    let found = moments(&run(&Device::cpu().unwrap(), &problem, &stripes(6), 3), &problem);
    let right = off(&found, problem.runs, &at_rest(6, 36, 2.0));
    assert!(right < 4.5, "{right} standard errors: {found:?}");
    let wrong = off(&found, problem.runs, &at_rest(6, 36, 1.9));
    assert!(wrong > 10.0, "{wrong} standard errors from another ratio");
}

#[test]
fn every_run_keeps_its_tokens() {
    for device in rayspin_emu::devices().unwrap() {
        for rows in [2, 6, 14] {
            let problem = Problem { rows, runs: 320, steps: 9 };
            let mut sums = run(&device, &problem, &stripes(rows), 5);
            let tokens = rows * rows;
            let kept = Moments { mean: tokens as f64, variance: 0.0 };
            assert_eq!(moments(&sums, &problem)[rows], kept, "{}: {problem}", device.describe());
            // A run with one token more and a run with one less keep the mean, and the variance shows them.
            sums[2 * rows + 1] += 2;
            let leaked = moments(&sums, &problem)[rows];
            assert!(leaked.mean == kept.mean && leaked.variance > 0.0, "{leaked:?}");
        }
    }
}

#[test]
fn nets_beyond_shared_memory_run_too() {
    let problem = Problem { rows: 114, runs: 64, steps: 1 };
    let marking = stripes(114);
    let want: Vec<u64> = (0..2).flat_map(|word| reference::sums(&problem, &marking, 9, word)).collect();
    for device in rayspin_emu::devices().unwrap() {
        assert!(cuda::beyond_shared(&problem).is_some());
        assert!(run(&device, &problem, &marking, 9) == want, "{}", device.describe());
    }
}

#[test]
fn what_is_no_net_is_refused() {
    for device in rayspin_emu::devices().unwrap() {
        let tokens = |shape: &[usize], of: u32| {
            Array::from_vec(&device, shape, vec![of; shape.iter().product()]).unwrap()
        };
        let mut sums = Array::zeros(&device, &[2, 5, 2]).unwrap();
        simulate(&tokens(&[4, 8], 1), 1, 1, &mut sums).unwrap();
        assert!(simulate(&tokens(&[4, 8], 1), 0, 1, &mut sums).is_err());
        assert!(simulate(&tokens(&[4, 8], 2), 1, 1, &mut sums).is_err());
        assert!(simulate(&tokens(&[8, 4], 1), 1, 1, &mut sums).is_err());
        assert!(simulate(&tokens(&[32], 1), 1, 1, &mut sums).is_err());
        for bad in [[0, 5, 2], [2, 4, 2]] {
            assert!(simulate(&tokens(&[4, 8], 1), 1, 1, &mut Array::zeros(&device, &bad).unwrap()).is_err());
        }
        assert!(
            simulate(&tokens(&[3, 6], 1), 1, 1, &mut Array::zeros(&device, &[2, 4, 2]).unwrap()).is_err()
        );
        let first = Pns.trials()[0];
        assert!(Pns.sized(&first, &[4, 33]).is_err() && Pns.sized(&first, &[1026, 32]).is_err());
    }
}
