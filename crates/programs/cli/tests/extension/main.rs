//! A method of another crate, through public interfaces alone: the command's options, help, dry run, plan,
//! record and images pick it up, and it obeys what every method obeys.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::ExitCode;

use rayspin::core::{Monitor, Result};
use rayspin::device::{Array, Device};
use rayspin::kernels::vector;
use rayspin::mri::encoding::{Solving, Spec};
use rayspin::mri::methods::{About, MapUse, Method, Methods, Param, Solve, Uses, Value};
use rayspin::mri::{laws, params};
use rayspin::run::{Cost, Memory, Step};
use serde_json::Value as Json;

params! {
    /// ρ ← ρ + (Eᴴd − EᴴE ρ) · step / L: Landweber's iteration (Am J Math 73:615, 1951).
    pub struct Landweber {
        /// Steps.
        steps: usize = 20 => Param::new("Landweber", "How many steps").expects("at least 1", |v| matches!(v, Value::Count(1..))),
        /// Length of a step, at which it is stable below 2.
        step: f64 = 1.0 => Param::new("Landweber", "Length of a step")
            .expects("between 0 and 2", |v| matches!(v, Value::Number(s) if *s > 0.0 && *s < 2.0)),
    }
}

impl Landweber {
    fn solve(&self, state: &mut Solving<'_>, monitor: &Monitor<'_>) -> Result<()> {
        let (normal, rhs, largest) = (state.normal()?, state.take_rhs()?, state.eigenvalue()?.value);
        let mut image = Array::zeros(rhs.device(), rhs.shape())?;
        let mut residual = Array::zeros(rhs.device(), rhs.shape())?;
        let (mut residuals, norm) = (Vec::new(), vector::norm_squared(&rhs)?.sqrt());
        for _ in 0..self.steps {
            normal.forward_into(&image, &mut residual)?;
            vector::scale((-1.0).into(), &mut residual)?;
            vector::axpy(1.0.into(), &rhs, &mut residual)?;
            residuals.push(vector::norm_squared(&residual)?.sqrt() / norm);
            vector::axpy((self.step / largest).into(), &residual, &mut image)?;
            monitor.step("")?;
        }
        drop((residual, rhs));
        let solve = Solve { solver: "Landweber", residuals, eigenvalue: largest, ..Solve::default() };
        state.finish(image.into_host()?, Some(solve));
        Ok(())
    }
}

impl Method for Landweber {
    fn about(&self) -> About {
        About { name: "landweber", help: "Steepest descent with a fixed step" }
    }

    fn uses(&self) -> Uses {
        Uses { normal: true, own_eigenvalue: true, ..Uses::new(MapUse::One) }
    }

    fn steps<'a>(&'a self, spec: &'a Spec<'a>) -> Result<Vec<Step<'a, Solving<'a>>>> {
        let arrays = spec.arrays(2 * spec.image_bytes());
        Ok(vec![
            spec.right_hand_side(),
            spec.normal_operator(),
            spec.largest_eigenvalue(),
            Step::new("Landweber", move |state, monitor| self.solve(state, monitor))
                .progress(self.steps)
                .needs(move || {
                    let effort = spec.normal_effort(self.steps as u64)?.iterations(self.steps as u64);
                    Ok(Cost::of(Memory::temporary(arrays)).and(effort))
                }),
        ])
    }
}

/// Runs the command in this process, as a program of another crate would.
fn command(line: &str) -> ExitCode {
    let words = std::iter::once("rayspin").chain(line.split_whitespace());
    rayspin_cli::run(Methods::default().with(Landweber::default()), words.map(Into::into))
}

fn record(path: &Path) -> Json {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_command_takes_a_method_of_another_crate() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (scan, trajectory) in
        [("grid.h5", "cartesian --acceleration 2 --calibration 12"), ("spokes.h5", "radial")]
    {
        let scan = at(scan);
        let simulate =
            format!("simulate mri -q --no-record -o {scan} --matrix 32,32 --coils 3 -t {trajectory}");
        assert_eq!(command(&simulate), ExitCode::SUCCESS);
        let image = at("image.npy");
        let options = "-m landweber --steps 7 --step 1.5 --threads 2";
        assert_eq!(command(&format!("recon mri -q {scan} --dry-run {options}")), ExitCode::SUCCESS);
        assert_eq!(command(&format!("recon mri -q {scan} -o {image} {options}")), ExitCode::SUCCESS);
        let found = record(&folder.path().join("image.json"));
        let parameters = &found["parameters"];
        assert_eq!(parameters["method"], "landweber");
        assert_eq!((parameters["steps"].as_u64(), parameters["step"].as_f64()), (Some(7), Some(1.5)));
        let planned = |stage: &Json| stage["name"] == "Landweber" && stage["iterations"] == 7;
        assert!(parameters["budget"]["stages"].as_array().unwrap().iter().any(planned), "{parameters}");
        let ran = |stage: &Json| stage["name"] == "Landweber";
        assert!(found["stages"].as_array().unwrap().iter().any(ran), "{found}");
        assert_eq!(found["convergence"][0]["residual"].as_array().unwrap().len(), 7);
        // Options of other methods are refused with it, and its options with others.
        for line in
            [format!("{options} --wavelet haar"), "-m tv --steps 3".into(), "-m landweber --step 2".into()]
        {
            assert_eq!(
                command(&format!("recon mri -q {scan} -o {image} {line}")),
                ExitCode::from(2),
                "{line}"
            );
        }
    }
}

#[test]
fn it_obeys_what_every_method_obeys() {
    let devices = [Device::cpu_with_threads(2).unwrap()];
    laws::check(&Landweber::default(), &Methods::default(), &devices).unwrap();
}
