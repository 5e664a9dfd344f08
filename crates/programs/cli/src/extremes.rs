//! Every number on the command line may be huge, tiny, negative or none at all. A run ends with a result or
//! with one line that says what is wrong; it neither panics nor ends for want of memory. The parser lists the
//! options, so that new ones are tried, too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::ValueHint;
use rayspin::core::ErrorKind;
use rayspin::mri::methods::Methods;
use rayspin_shell::{BadInput, interrupt};

use crate::args::{self, Cli};
use crate::{PROGRAM, methods, start};

/// Commands with small inputs, and options that let others act. `@` stands for the folder of the files.
const LINES: &[&str] = &[
    "simulate mri --no-record -o @/made.h5 --matrix 8,8 --coils 2 --snr 30 --dynamics beat --truth @/made.npy",
    "simulate mri --no-record -o @/made.h5 --matrix 8,8 --coils 2 -t random",
    "simulate mri --no-record -o @/made.h5 --matrix 8,8 --coils 1 -t poisson",
    "simulate mri --no-record -o @/made.h5 --matrix 8,8 --coils 1 -t spiral --field-map-hz 20",
    "simulate mri --no-record -o @/made.h5 --matrix 8,8,8 --dims 3 --coils 1 -t kooshball --shots 9",
    "simulate ct --no-record -o @/made.h5 --matrix 6,6,4 --views 5 -g helix --motion 1,1,1",
    "simulate ct --no-record -o @/made.h5 --matrix 6,6 --views 5 -g parallel --kilovolts 80",
    "recon mri @/scan.h5 --no-record -o @/image.npy -m cg-sense --certify 2",
    "recon mri @/scan.h5 --no-record -o @/image.npy -m gridding",
    "recon mri @/scan.h5 --no-record -o @/image.npy -m tv",
    "recon mri @/scan.h5 --no-record -o @/image.npy -m wavelet",
    "recon mri @/scan.h5 --no-record -o @/image.npy -m cg-sense --sensitivities espirit",
    "recon mri @/lines.h5 --no-record -o @/image.npy -m grappa",
    "recon mri @/scan.h5 --no-record -o @/image.npy -m low-rank-sparse --window 6",
    "recon mri @/grid.npy --no-record -o @/image.npy",
    "recon ct @/ct.h5 --no-record -o @/volume.npy",
    "recon ct @/ct.h5 --no-record -o @/volume.npy -m tv",
    "recon ct @/views.npy --no-record -o @/volume.npy --arc 180 --flat 2 --dark 0",
    "render @/truth.npy -o @/picture.png -m surface --size 8 --perspective 30",
    "render @/truth.npy -o @/picture.png -m volume --size 8 --hu",
    "render @/truth.npy -o @/picture.png -m xray --size 8",
    "filter @/truth.npy -o @/smooth.npy --histogram @/counts.csv --compare @/both.png",
    "convert @/truth.npy @/other.png",
    "convert @/truth.npy @/other.npy",
    "convert --raw @/grid.npy @/other.h5",
    "batch @/scan.h5 -o @/{stem}.npy",
    "info @/scan.h5",
];

/// Texts of numbers.
const NUMBERS: [&str; 5] = ["0", "-1", "18446744073709551615", "1e300", "nan"];

/// The texts of an option's value: a number, or several where its name has commas.
fn values(option: &clap::Arg) -> Vec<String> {
    let name = option.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let name = name.unwrap_or_default();
    let commas = name.matches(',').count();
    let each = |number: &&str| match (name.as_str(), commas) {
        ("NUMBERS", _) => vec![(*number).to_owned(), format!("0-{number}")],
        (name, _) if name.starts_with("FILTER") => ["gaussian", "median", "resize", "resize:voxel=2,x"]
            .map(|filter| format!("{filter}{}{number}", if filter.contains(':') { "=" } else { ":" }))
            .into(),
        (_, 0) => vec![(*number).to_owned()],
        (_, commas) => {
            let repeated = vec![*number; commas + 1].join(",");
            vec![repeated, format!("8,{number}")]
        }
    };
    NUMBERS.iter().flat_map(each).collect()
}

/// What a command line ends with: a panic, or an error that is no line for people.
fn wrong_end(line: Vec<String>, command: &clap::Command) -> Option<String> {
    let run = || -> anyhow::Result<()> {
        let (cli, given) = PROGRAM.parse::<Cli>(command.clone(), line.iter().map(Into::into))?;
        start(cli, given)
    };
    let error = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => error,
        Err(_) => return Some("a panic".into()),
    };
    let known = error.chain().any(|cause| {
        let of_core = cause.downcast_ref::<rayspin::core::Error>();
        let of_io = cause.downcast_ref::<rayspin::io::Error>();
        let kind = of_core.map(rayspin::core::Error::kind).or(of_io.map(rayspin::io::Error::kind));
        let memory = matches!(of_core, Some(rayspin::core::Error::Memory { .. }))
            || matches!(
                of_io,
                Some(rayspin::io::Error::Core { source: rayspin::core::Error::Memory { .. }, .. })
            );
        // The numbers of a run may break down, and this test ends runs that take long.
        let breakdown = matches!(
            of_core,
            Some(rayspin::core::Error::Numerical { .. } | rayspin::core::Error::Interrupted)
        );
        cause.is::<BadInput>() || kind == Some(ErrorKind::Input) || memory || breakdown
    });
    let text = format!("{error:#}");
    (!known || text.contains('\n') || text.is_empty()).then_some(text)
}

#[test]
fn extreme_numbers_end_with_a_result_or_one_line() {
    methods::take(Methods::default());
    let folder = tempfile::tempdir().unwrap();
    let command = args::command();
    let words = |line: &str, folder: &Path| -> Vec<String> {
        let own = ["rayspin", "-q", "--threads", "2", "--device", "cpu"].into_iter().chain(line.split(' '));
        own.map(|word| word.replace('@', &folder.display().to_string())).collect()
    };
    for line in [
        "simulate mri --no-record -o @/scan.h5 --matrix 12,12 --coils 2 -t radial --shots 18 --snr 40 --noise-readouts 2",
        "simulate mri --no-record -o @/lines.h5 --matrix 24,24 --coils 3 --acceleration 2 --calibration 12",
        "simulate ct --no-record -o @/ct.h5 --matrix 6,6,4 --views 6",
        "simulate mri --no-record -o @/unused.h5 --matrix 8,8,3 --coils 2 --truth @/truth.npy",
    ] {
        let words = words(line, folder.path()).into_iter().filter(|word| word != "--device" && word != "cpu");
        assert_eq!(wrong_end(words.collect(), &command), None, "{line}");
    }
    let grid = ndarray::Array3::from_elem((2, 8, 8), rayspin::core::C32::ONE);
    rayspin::io::npy::write(folder.path().join("grid.npy"), grid.view()).unwrap();
    let views = ndarray::Array2::from_elem((6, 8), 0.5f32);
    rayspin::io::npy::write(folder.path().join("views.npy"), views.view()).unwrap();
    let mut built = command.clone();
    built.build();
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for line in LINES {
        let own = line.split(' ').map_while(|word| Some(word).filter(|word| !word.starts_with(['-', '@'])));
        let subcommand = own.fold(&built, |inner, word| inner.find_subcommand(word).unwrap_or(inner));
        for option in subcommand.get_arguments() {
            let Some(long) = option.get_long() else { continue };
            // The output of batch is a template of names.
            let names_files = matches!(option.get_value_hint(), ValueHint::FilePath | ValueHint::DirPath)
                || long == "output";
            let takes_names = !option.get_possible_values().is_empty();
            if names_files || takes_names || !option.get_action().takes_values() || option.is_global_set() {
                continue;
            }
            for value in values(option) {
                let mut line = words(line, folder.path());
                if subcommand.get_name() == "ct" && line.contains(&"simulate".into())
                    || subcommand.get_name() == "convert"
                {
                    line.retain(|word| word != "--device" && word != "cpu");
                }
                // An option stands once.
                while let Some(before) = line.iter().position(|word| *word == format!("--{long}")) {
                    line.drain(before..before + 2);
                }
                line.push(format!("--{long}={value}"));
                let shown = line[6..].join(" ");
                let began = Instant::now();
                let watched = std::sync::atomic::AtomicBool::new(true);
                let end = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while watched.load(Ordering::Relaxed) {
                            std::thread::sleep(Duration::from_millis(2));
                            if began.elapsed() > Duration::from_secs(1) {
                                interrupt::STOP.store(true, Ordering::Relaxed);
                            }
                        }
                    });
                    let end = wrong_end(line, &command);
                    watched.store(false, Ordering::Relaxed);
                    end
                });
                interrupt::STOP.store(false, Ordering::Relaxed);
                if began.elapsed() > Duration::from_millis(300) {
                    println!("{:.2} s: {shown}", began.elapsed().as_secs_f64());
                }
                tried += 1;
                wrong.extend(end.map(|end| format!("{shown}: {end}")));
            }
        }
    }
    println!("{tried} lines");
    assert!(
        wrong.is_empty() && tried > 300,
        "{} of {tried} end otherwise:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
