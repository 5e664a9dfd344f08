use super::*;

#[test]
fn the_image_has_the_snr_that_was_asked_for() {
    for oversampling in [1, 2] {
        let clean = SimulateOptions { matrix: [32, 32, 1], coils: 3, oversampling, ..Default::default() };
        let noisy = SimulateOptions { snr: Some(20.0), seed: 3, ..clean.clone() };
        let (a, b) = (run(&clean), run(&noisy));
        // Optimal combination Σ c̄ y/Σ|c|² leaves noise of σ/√Σ|c|²; times √Σ|c|² it is even over the image.
        let mut combined = Array3::<C64>::zeros((1, 32, 32));
        let mut rss = Array3::<f64>::zeros((1, 32, 32));
        for coil in 0..3 {
            let noise = adjoint(&b, coil, 0, |_| 1.0 / oversampling as f64)
                - adjoint(&a, coil, 0, |_| 1.0 / oversampling as f64);
            for ((index, n), c) in noise.indexed_iter().zip(a.maps.index_axis(ndarray::Axis(0), coil)) {
                let c = C64::new(f64::from(c.re), f64::from(c.im));
                combined[index] += c.conj() * n;
                rss[index] += c.norm_sqr();
            }
        }
        combined.zip_mut_with(&rss, |v, r| *v /= r.sqrt());
        let std = (combined.iter().map(|v| v.norm_sqr()).sum::<f64>() / 2048.0).sqrt();
        let phantom = Phantom::shepp_logan_2d(Contrast::Modified);
        let (mut signal, mut count) = (0.0, 0.0);
        for ((z, y, x), r) in rss.indexed_iter() {
            if phantom.outline_contains(&[(x as f64 - 16.0) / 32.0, (y as f64 - 16.0) / 32.0]) {
                signal += f64::from(a.truth.data()[[z, y, x]].re) * r.sqrt();
                count += 1.0;
            }
        }
        let snr = signal / count / std;
        assert!((snr / 20.0 - 1.0).abs() < 0.08, "{snr}");
    }
}

#[test]
fn noise_readouts_come_first_and_have_the_samples_covariance() {
    let options = SimulateOptions {
        matrix: [16, 16, 1],
        coils: 2,
        snr: Some(10.0),
        noise_covariance: Some(neighbour_covariance(2, 0.6).unwrap()),
        noise_readouts: 40,
        ..Default::default()
    };
    let simulation = run(&options);
    let (noise, image) = simulation.scan.acquisitions.split_at(40);
    assert!(noise.iter().all(|a| a.flags.contains(Flags::NOISE) && !a.flags.is_image()));
    assert!(image.iter().all(|a| a.flags.is_image()));
    let mut cross = C64::default();
    let mut power = [0.0; 2];
    for readout in noise {
        for column in readout.data.columns() {
            let [a, b] = [0, 1].map(|i: usize| C64::new(f64::from(column[i].re), f64::from(column[i].im)));
            cross += a * b.conj();
            power[0] += a.norm_sqr();
            power[1] += b.norm_sqr();
        }
    }
    assert!((cross / (power[0] * power[1]).sqrt() - 0.6).norm() < 0.03);
    let std = ((power[0] + power[1]) / (4.0 * 40.0 * 256.0)).sqrt();
    assert!((std / simulation.noise_std - 1.0).abs() < 0.03);
    assert_ne!(noise[0].data, noise[1].data);
}
