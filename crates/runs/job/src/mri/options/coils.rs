//! Options of coils: their sensitivities, noise and number.

use rayspin_mri::maps::{EspiritOptions, Sensitivities};
use rayspin_mri::prepare::{Compression, CompressionKind, VirtualCoils};
use rayspin_run::BadInput;

use super::super::effect::{ITERATES, Requirement};
use super::super::request::{Beside, Request};
use super::{Row, recorded};
use crate::Result;
use crate::rows::{Kind, Named, Setting, choice};

const COILS: &str = "Coils";

pub(super) const ROWS: &[Row] = &[
    Row::new(COILS, "maps", Kind::Complex, "Sensitivity maps to use instead of estimated ones")
        .remedies(&[
            (
                &["maps", "sensitivity maps", "coils of maps", "planes of maps", "intensity of the maps"],
                "maps are [coil, z, y, x] on the scan's own matrix",
            ),
        ])
        .details(
            "[coil, z, y, x] or [set, coil, z, y, x], or in BART's order with sets in MAPS and slices in SLICE ({arrays read}).",
        )
        .value("FILE")
        .needs(&[Requirement::Maps])
        .recorded("maps", |request| recorded(&request.maps))
        .puts(|request, given| {
            request.maps = Some(match given.setting {
                Setting::Complex(maps) => Beside::Array(maps.clone()),
                _ => Beside::File(given.file()?.to_owned()),
            });
            Ok(())
        }),
    Row::new(
        COILS,
        "intensity",
        Kind::Flag,
        "Solve with `--maps` divided by their intensity, and divide the image by it [default: the maps as they are]",
    )
    .details(
        "The intensity is the root of the sum of squares of the maps over coils. Both images fit the samples. With this option \
         iterations converge faster where the intensity varies, and a penalty weighs all of the image alike.",
    )
    .rare()
    .needs(&[ITERATES])
    .beside("maps")
    .recorded("intensity", |request| request.intensity.into())
    .puts(|request, _| {
        request.intensity = true;
        Ok(())
    }),
    Row::new(
        COILS,
        "sensitivities",
        Kind::Names(&[
            choice("walsh", "Local principal components of low-resolution coil images"),
            choice("espirit", "Eigenvectors of the reproducing operator of the k-space centre"),
        ]),
        "How sensitivity maps are estimated [default: espirit on the grid, walsh with a trajectory]",
    )
    .value("SENSITIVITIES")
    .rare()
    .needs(&[Requirement::Estimate])
    .without(&["maps"])
    .puts(|request, given| {
        let espirit = Sensitivities::Espirit(EspiritOptions::default());
        let how = given.one_of(&[("walsh", Sensitivities::Walsh), ("espirit", espirit)])?;
        request.options.sensitivities = Some(how);
        Ok(())
    }),
    Row::new(
        COILS,
        "map_sets",
        Kind::Count,
        "Sets of ESPIRiT maps, 1 or 2 ({methods over sets of maps}) [default: 2 on a grid where the object is larger than the field \
         of view, else 1]",
    )
    .remedies(&[(&["sets of maps"], "`--map-sets` sets this")])
    .details(
        "Such an object folds over itself, and the image shows both layers. Implies `--sensitivities espirit`.",
    )
    .value("N")
    .rare()
    .needs(&[Requirement::Estimate])
    .without(&["maps"])
    .puts(|request, given| {
        let sets = given.count()?;
        espirit(request, given, |espirit| espirit.sets = sets)
    }),
    Row::new(COILS, "map_crop", Kind::Number, "Eigenvalue below which ESPIRiT maps are 0 [default: 0.8]")
        .remedies(&[(&["crop of maps"], "`--map-crop` sets this")])
        .value("VALUE")
        .rare()
        .needs(&[Requirement::Estimate])
        .without(&["maps"])
        .puts(|request, given| {
            let crop = given.number()?;
            espirit(request, given, |espirit| espirit.crop = crop)
        }),
    Row::new(
        COILS,
        "calibration",
        Kind::Count,
        "Width of the k-space centre for maps, at most the fully sampled width [default: 24]",
    )
    .remedies(&[
        (
            &["calibration centre"],
            "give sensitivity maps with `--maps`, or a narrower centre with `--calibration`",
        ),
    ])
    .value("LINES")
    .rare()
    .needs(&[Requirement::Estimate])
    .puts(|request, given| {
        request.options.calibration = Some(given.count()?);
        Ok(())
    }),
    Row::new(
        COILS,
        "coils",
        Kind::Number,
        "Compress to N virtual coils, or to those that hold this PART of the energy",
    )
    .remedies(&[
        (
            &["virtual coils"],
            "`--coils` takes fewer coils than the scan has, or a part of the energy below 1",
        ),
    ])
    .details("A number below 1 keeps as many virtual coils as hold this part of the energy.")
    .value("N|PART")
    .needs(&[Requirement::Coils])
    .recorded("compression", |request| serde_json::json!(request.options.prepare.compression))
    .puts(|request, given| {
        let number = given.number()?;
        let coils = match number {
            part if part > 0.0 && part < 1.0 => VirtualCoils::Energy(part),
            count if count >= 0.0 && count.fract() == 0.0 => VirtualCoils::Count(count as usize),
            _ => {
                let expected = "a number of virtual coils or a part of the energy below 1";
                let message = format!("{}: expected {expected}, found {number}", given.name);
                return Err(BadInput::new(message).into());
            }
        };
        request.options.prepare.compression = Some(Compression { coils, kind: CompressionKind::default() });
        Ok(())
    }),
    Row::new(
        COILS,
        "compression",
        Kind::Names(&[
            choice("svd", "Principal components of all samples"),
            choice(
                "geometric",
                "Principal components at each position along the readout, aligned (Cartesian, fully sampled readouts)",
            ),
        ]),
        "How coils are compressed [default: svd]",
    )
    .remedies(&[(&["geometric compression"], "`--compression svd` suits every scan")])
    .value("COMPRESSION")
    .rare()
    .beside("coils")
    .puts(|request, given| {
        let kinds = [("svd", CompressionKind::Svd), ("geometric", CompressionKind::Geometric)];
        let kind = given.one_of(&kinds)?;
        request.options.prepare.compression.iter_mut().for_each(|compression| compression.kind = kind);
        Ok(())
    }),
    Row::new(COILS, "no_prewhiten", Kind::Flag, "Do not whiten coils by the scan's noise readouts")
        .rare()
        .unless("prewhiten", "Whiten coils by the scan's noise readouts")
        .needs(&[Requirement::Noise, Requirement::Coils])
        .without(&["noise_covariance"])
        .recorded("prewhiten", |request| request.options.prepare.prewhiten.into())
        .puts(|request, _| {
            request.options.prepare.prewhiten = false;
            Ok(())
        }),
    Row::new(
        COILS,
        "noise_covariance",
        Kind::Double,
        "Covariance of the coils' noise [coil, coil] ({arrays read}) to whiten by, instead of the scan's noise readouts",
    )
    .remedies(&[(&["noise covariance"], "it is [coil, coil], of the scan's own coils")])
    .value("FILE")
    .rare()
    .needs(&[Requirement::Coils])
    .recorded("noise covariance", |request| recorded(&request.noise_covariance))
    .puts(|request, given| {
        request.noise_covariance = Some(match given.setting {
            Setting::Double(covariance) => Beside::Array(covariance.clone()),
            _ => Beside::File(given.file()?.to_owned()),
        });
        Ok(())
    }),
];

/// Changes how ESPIRiT estimates maps. Errors: the user chose Walsh's method, which has neither sets nor a
/// crop.
fn espirit(request: &mut Request, given: Named<'_>, change: impl FnOnce(&mut EspiritOptions)) -> Result<()> {
    let how = &mut request.options.sensitivities;
    match how.get_or_insert_with(|| Sensitivities::Espirit(EspiritOptions::default())) {
        Sensitivities::Espirit(options) => {
            change(options);
            Ok(())
        }
        Sensitivities::Walsh => {
            let name = given.name;
            Err(BadInput::new(format!("{name}: expected `--sensitivities espirit`, found walsh"))
                .hint(format!("leave {name} or `--sensitivities walsh` out"))
                .into())
        }
    }
}
