//! Compiles the kernels of a reconstruction before it begins.

use ndarray::{Array2, ArrayD};
use rayspin_core::Monitor;
use rayspin_device::Device;
use rayspin_run::decisive;

use super::series::image_of_frame;
use super::{ReconOptions, RunOptions, reconstruct_frame};
use crate::encoding::repeated;
use crate::scan::{CalibrationLines, Frame, Samples};

/// Compiles on all cores the GPU kernels that a reconstruction of this frame needs, where the cache lacks
/// them.
///
/// It rehearses the reconstruction on a device that runs nothing ([`Device::compile_ahead`]), without a
/// search for λ and without certificates. Kernels that the rehearsal does not load are compiled when they are
/// needed. Nothing happens on a CPU.
///
/// ```
/// use ndarray::{ArrayD, IxDyn};
/// use rayspin_core::{C32, Geometry};
/// use rayspin_device::Device;
/// use rayspin_mri::methods::Cartesian;
/// use rayspin_mri::recon::{ReconOptions, compile_ahead};
/// use rayspin_mri::scan::Frame;
///
/// let frame = Frame::from_grid(ArrayD::from_elem(IxDyn(&[4, 12, 16]), C32::ONE), Geometry::default())?;
/// compile_ahead(&Device::cpu()?, &frame, &ReconOptions::of(Cartesian::default()));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub fn compile_ahead(device: &Device, frame: &Frame, options: &ReconOptions) {
    device.compile_ahead(&name(frame, options), |device| rehearse(device, frame, options));
}

/// Does what a reconstruction of this frame does, on a device that runs nothing and records the programs that
/// are loaded ([`rayspin_device::cuda::NullDriver`]).
pub fn rehearse(device: &Device, frame: &Frame, options: &ReconOptions) {
    let run = RunOptions { batch_sizes: options.run.batch_sizes, ..RunOptions::default() };
    let options = ReconOptions { search_lambda: false, certify: None, run, ..options.clone() };
    // What a method refuses as an image ends the list of programs.
    let monitor = Monitor::silent();
    let _ = match &options.basis {
        None => reconstruct_frame(device, without_values(frame), Vec::new(), &options, &monitor),
        Some(basis) => repeated(frame, basis.frames()).and_then(|(frame, of_frames)| {
            image_of_frame(device, frame, Some(of_frames), Vec::new(), &options, &monitor)
        }),
    };
}

/// What decides the programs.
fn name(frame: &Frame, options: &ReconOptions) -> String {
    let ReconOptions { method, nufft_tolerance, density, calibration, sensitivities, prepare, run, .. } =
        options;
    let samples = match &frame.samples {
        Samples::Cartesian { kspace, .. } => kspace.shape().to_vec(),
        Samples::NonCartesian { data, .. } => data.shape().to_vec(),
    };
    let given = (options.maps.is_some(), options.field_map.is_some(), options.keep_maps, prepare.prewhiten);
    let of_frame = (frame.times.is_some(), frame.calibration.is_some());
    let basis =
        options.basis.as_ref().map(|basis| (basis.frames(), basis.coefficients(), basis.is_complex()));
    format!(
        "MRI {} {} {:?} {samples:?} {:?} {nufft_tolerance} {density:?} {calibration:?} {sensitivities:?} \
         {given:?} {of_frame:?} {basis:?} {:?}",
        method.about().name,
        decisive(&**method),
        frame.matrix,
        prepare.compression,
        run.batch_sizes
    )
}

/// The same samples with values of 0, which take no memory until something reads them. Their number decides
/// programs, too: the NUFFT's grid depends on it.
fn without_values(frame: &Frame) -> Frame {
    let Frame { label, matrix, geometry, samples, times, calibration, interpolated } = frame;
    let samples = match samples {
        Samples::Cartesian { kspace, sampled } => {
            Samples::Cartesian { kspace: ArrayD::zeros(kspace.raw_dim()), sampled: sampled.clone() }
        }
        Samples::NonCartesian { trajectory, data } => {
            Samples::NonCartesian { trajectory: trajectory.clone(), data: Array2::zeros(data.raw_dim()) }
        }
    };
    let (matrix, times) = (matrix.clone(), times.clone());
    let calibration = calibration.as_ref().map(|lines| CalibrationLines {
        kspace: ArrayD::zeros(lines.kspace.raw_dim()),
        sampled: lines.sampled.clone(),
    });
    Frame {
        matrix,
        samples,
        times,
        calibration,
        label: *label,
        geometry: *geometry,
        interpolated: *interpolated,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use rayspin_core::{C32, Geometry};
    use rayspin_device::Backend;
    use rayspin_device::cuda::NullDriver;
    use rayspin_emu::Emulator;

    use super::*;
    use crate::methods::{CgSense, Methods};
    use crate::scan::FrameOptions;
    use crate::simulate::trajectory::{CartesianPattern, Sampling, SpokeAngles};
    use crate::simulate::{SimulateOptions, simulate};

    #[test]
    fn numbers_of_a_method_are_rehearsed_once_and_zero_apart() {
        let frame =
            Frame::from_grid(ArrayD::from_elem(ndarray::IxDyn(&[2, 6, 8]), C32::ONE), Geometry::default())
                .unwrap();
        let name = |lambda| name(&frame, &ReconOptions::of(CgSense { lambda, ..CgSense::default() }));
        assert_eq!(name(1e-3), name(1e-2));
        assert_ne!(name(1e-3), name(0.0));
    }

    #[test]
    fn what_a_run_loads_is_found_ahead() {
        let spokes = Sampling::Radial { spokes: 9, angles: SpokeAngles::Golden };
        let grid = Sampling::Cartesian(CartesianPattern::Full);
        // A GPU computes the centre of k-space for maps where that is small.
        for (sampling, calibration, methods) in [
            (spokes.clone(), None, &["gridding", "ls", "cg-sense", "wavelet", "tv", "low-rank-sparse"][..]),
            (spokes, Some(4), &["cg-sense"]),
            (grid, None, &["cartesian", "cg-sense", "wavelet"]),
        ] {
            let options =
                SimulateOptions { matrix: [32, 32, 1], coils: 4, sampling, ..SimulateOptions::default() };
            let scan = simulate(&options, &Monitor::silent()).unwrap().scan;
            let index = scan.frames().unwrap();
            let label = index.labels().next().unwrap();
            let frame = index.assemble(label, &FrameOptions::default(), &mut vec![]).unwrap();
            for method in methods {
                let method_of_name = Methods::default().named(method).unwrap().copy().into();
                let options = ReconOptions { calibration, ..ReconOptions::with_method(method_of_name) };
                let device = Emulator::device().unwrap();
                let Backend::Cuda(cuda) = device.backend() else {
                    unreachable!("the emulator is a CUDA device")
                };
                let driver = Arc::new(NullDriver::new(cuda.properties().clone(), true));
                rehearse(&Device::with_driver(driver.clone(), device.host()), &frame, &options);
                let found: HashSet<_> = driver
                    .take_programs()
                    .into_iter()
                    .map(|program| (program.name, program.defines))
                    .collect();
                reconstruct_frame(&device, frame.clone(), Vec::new(), &options, &Monitor::silent()).unwrap();
                let loaded: HashSet<_> = cuda.loaded().into_iter().collect();
                assert!(!loaded.is_empty());
                let missed: Vec<_> = loaded.difference(&found).collect();
                assert!(missed.is_empty(), "{method}: {missed:?}");
            }
        }
    }
}
