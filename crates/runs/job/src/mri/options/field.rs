//! Options of the field and of accuracy.

use rayspin_core::Error;
use rayspin_mri::recon::Density;
use rayspin_run::Certify;

use super::super::effect::{HEADER, IN_A_FIELD, Requirement};
use super::super::request::Beside;
use super::{Row, recorded};
use crate::rows::{Kind, Setting, certify, certify_seed, choice};

const FIELD: &str = "Field and accuracy";

pub(super) const ROWS: &[Row] = &[
    Row::new(FIELD, "field_map", Kind::Real, "Map of the field in Hz: corrects off-resonance")
        .remedies(&[
            (&["field map"], "it needs the matrix of the image that is reconstructed"),
            (
                &["times of the samples", "times of the samples, which a field map needs"],
                "only ISMRMRD scans state when samples were taken; leave `--field-map` out",
            ),
        ])
        .details(
            "The map [z, y, x] has the image's matrix ({images read}) and states how far the field is from the receiver's frequency. \
             It corrects shifts and blurring of long readouts ({methods in a field}). The scan must be ISMRMRD, and state its dwell time or have it from `--dwell`. The sample that center_sample names has \
             time 0.",
        )
        .value("FILE")
        .needs(&[IN_A_FIELD])
        .recorded("field map", |request| recorded(&request.field_map))
        .puts(|request, given| {
            request.field_map = Some(match given.setting {
                Setting::Real(map) => Beside::Array(map.clone()),
                _ => Beside::File(given.file()?.to_owned()),
            });
            request.frames.times = true;
            Ok(())
        }),
    Row::new(
        FIELD,
        "field_tolerance",
        Kind::Number,
        "Largest error of the field's phases, which decides the number of time segments [default: 1e-4]",
    )
    .remedies(&[(&["tolerance of the field map's segments"], "`--field-tolerance` sets this")])
    .value("ERROR")
    .rare()
    .beside("field_map")
    .recorded("field tolerance", |request| serde_json::json!(request.field_map.as_ref().map(|_| request.options.field_tolerance)))
    .puts(|request, given| {
        request.options.field_tolerance = given.number()?;
        Ok(())
    }),
    Row::new(FIELD, "dwell", Kind::Number, "Time between samples in µs for `--field-map`, where the scan's header states 0")
        .remedies(&[
            (&["dwell time"], "leave `--dwell` out: it stands for a header that states 0"),
            (&["acquisition: sample_time_us, which a field map needs"], "`--dwell` states the time between samples in µs"),
        ])
        .value("US")
        .rare()
        .keyword("dwell_us")
        .beside("field_map")
        .needs(HEADER)
        .recorded("dwell", |request| serde_json::json!(request.frames.dwell_us))
        .puts(|request, given| {
            let dwell = given.number()?;
            if !(dwell > 0.0 && dwell.is_finite()) {
                return Err(Error::value(given.name, "a positive time in µs", dwell).into());
            }
            request.frames.dwell_us = Some(dwell);
            Ok(())
        }),
    Row::new(
        FIELD,
        "epsilon",
        Kind::Number,
        "Relative error that the NUFFT is planned for; the error is at most 3 times as large [default: 0.0001]",
    )
    .value("EPSILON")
    .rare()
    .keyword("nufft_tolerance")
    .needs(&[Requirement::Nufft])
    .recorded("epsilon", |request| request.options.nufft_tolerance.into())
    .puts(|request, given| {
        request.options.nufft_tolerance = given.number()?;
        Ok(())
    }),
    Row::new(
        FIELD,
        "density",
        Kind::Names(&[
            choice("pipe-menon", "Iteration of Pipe and Menon, for any trajectory"),
            choice("radial", "The ramp of straight spokes through the centre"),
        ]),
        "Density compensation of gridding [default: pipe-menon]",
    )
    .value("DENSITY")
    .rare()
    .needs(&[Requirement::Weights])
    .recorded("density", |request| serde_json::json!(request.options.density))
    .puts(|request, given| {
        request.options.density =
            given.one_of(&[("pipe-menon", Density::PipeMenon), ("radial", Density::Radial)])?;
        Ok(())
    }),
    certify(
        FIELD,
        |request, given| {
            request.certify = Some(Certify { outputs: given.count()?, seed: 1 });
            Ok(())
        },
        |request| serde_json::json!(request.certify),
    ),
    certify_seed(FIELD, |request, given| {
        let seed = given.count()?;
        request.certify.iter_mut().for_each(|certify| certify.seed = seed);
        Ok(())
    }),
];
