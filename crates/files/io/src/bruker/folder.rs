//! The folder of a scan: its raw data, and the parameters beside them.

use std::path::{Path, PathBuf};

use super::jcamp::Parameters;
use crate::bare_scan::Word;
use crate::error::{name, parent_folder};
use crate::{Error, Result};

/// Names of files of raw data, the one to read first.
const DATA: [&str; 2] = ["fid", "rawdata.job0"];
const ACQP: &str = "acqp";
const METHOD: &str = "method";
/// What the scanner's own reconstruction says of itself and of its images.
const OF_IMAGES: [&str; 2] = ["pdata/1/reco", "pdata/1/visu_pars"];
/// Places of k-space that a non-Cartesian method wrote.
pub(super) const TRAJECTORY: &str = "traj";

/// A block of `fid` is filled up to a multiple of this, where the parameters say so.
const BLOCK: u64 = 1024;
/// Receivers at most.
const MOST_RECEIVERS: usize = 1024;

/// Whether a path is the folder of a scan, or its raw data.
pub(crate) fn is_scan(path: &Path) -> bool {
    let folder = match path.is_dir() {
        true => path,
        false if DATA.contains(&name(path).as_str()) => parent_folder(path),
        false => return false,
    };
    [ACQP, METHOD].iter().all(|file| folder.join(file).is_file())
}

/// The files that are read for a scan.
pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    let (folder, data) = split(path);
    let there = [ACQP, METHOD, TRAJECTORY].iter().chain(&OF_IMAGES).map(|file| folder.join(file));
    std::iter::once(data).chain(there.filter(|file| file.is_file())).collect()
}

/// The folder of a scan, and its raw data.
fn split(path: &Path) -> (PathBuf, PathBuf) {
    if !path.is_dir() {
        return (parent_folder(path).to_owned(), path.to_owned());
    }
    let data = DATA.iter().map(|file| path.join(file)).find(|file| file.is_file());
    (path.to_owned(), data.unwrap_or_else(|| path.join(DATA[0])))
}

/// Versions of ParaVision with layouts of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// 4 and 5.
    Five,
    /// 6 and 7.
    Six,
    /// 360.
    ThreeSixty,
}

/// The parameters of a scan.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// The raw data.
    pub(super) data: PathBuf,
    pub(super) acqp: Parameters,
    pub(super) method: Parameters,
    pub(super) reco: Option<Parameters>,
    pub(super) visu: Option<Parameters>,
    pub(super) version: Version,
}

impl Folder {
    /// Errors: parameters that cannot be read.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (folder, data) = split(path);
        let acqp = Parameters::read(&folder.join(ACQP))?;
        let method = Parameters::read(&folder.join(METHOD))?;
        let other = |file: &str| {
            let file = folder.join(file);
            file.is_file().then(|| Parameters::read(&file)).transpose()
        };
        let (reco, visu) = (other(OF_IMAGES[0])?, other(OF_IMAGES[1])?);
        let software = acqp.word("ACQ_sw_version");
        let version = match software {
            _ if software.contains("360") => Version::ThreeSixty,
            _ if software.contains("PV 6") || software.contains("PV-6") || software.contains("7.") => {
                Version::Six
            }
            _ => Version::Five,
        };
        Ok(Self { path: folder, data, acqp, method, reco, visu, version })
    }

    /// The name of the method, without its owner.
    pub(super) fn method_name(&self) -> &str {
        let name = self.method.word("Method");
        name.rsplit_once(':').map_or(name, |(_, name)| name)
    }

    /// How many spatial dimensions are encoded. Errors: other than 2 or 3.
    pub(super) fn dims(&self) -> Result<usize> {
        let dims = self.acqp.expect_count("ACQ_dim")?;
        match dims {
            2 | 3 => Ok(dims),
            _ => Err(self.acqp.field("ACQ_dim", "2 or 3 (images and volumes)", dims)),
        }
    }

    /// Lengths along the axes, of which the file states at least `dims`.
    pub(super) fn lengths(&self, name: &str, dims: usize) -> Result<Vec<f64>> {
        let numbers = self.method.numbers(name, 16)?.unwrap_or_default();
        if numbers.len() < dims || numbers.iter().take(dims).any(|number| *number <= 0.0) {
            let found = if numbers.is_empty() { "nothing".to_owned() } else { format!("{numbers:?}") };
            return Err(self.method.field(name, format!("{dims} positive numbers"), found));
        }
        Ok(numbers)
    }
}

/// How scans lie in the file of raw data. A scan is what one start of the receiver gave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) word: Word,
    pub(super) big_endian: bool,
    pub(super) receivers: usize,
    /// Samples of a scan and a receiver.
    pub(super) samples: usize,
    /// Bytes from a scan to the next one.
    pub(super) block: u64,
}

impl Stored {
    /// Errors: parameters that are absent or unknown.
    pub(super) fn of(folder: &Folder) -> Result<Self> {
        let Folder { acqp, method, .. } = folder;
        let receivers = method.count("PVM_EncNReceivers")?.unwrap_or(1);
        if !(1..=MOST_RECEIVERS).contains(&receivers) {
            return Err(method.field("PVM_EncNReceivers", format!("1 to {MOST_RECEIVERS}"), receivers));
        }
        let big_endian = match acqp.word("BYTORDA") {
            "little" | "" => false,
            "big" => true,
            other => return Err(acqp.field("BYTORDA", "little or big", other)),
        };
        let word = word(acqp)?;
        let of_job = name(&folder.data) != DATA[0];
        let (what, words) = match of_job {
            true => ("ACQ_jobs", job_size(acqp)?),
            false => ("ACQ_size", acqp.expect_count("ACQ_size")?),
        };
        if words == 0 || words % 2 != 0 || words / 2 > usize::from(u16::MAX) * 64 {
            return Err(acqp.field(what, "an even number of parts of samples above 0", words));
        }
        let bytes = words as u64 * receivers as u64 * word.bytes();
        let padded = !of_job && acqp.word("GO_block_size") == "Standard_KBlock_Format";
        let block = if padded { bytes.next_multiple_of(BLOCK) } else { bytes };
        Ok(Self { word, big_endian, receivers, samples: words / 2, block })
    }
}

fn word(acqp: &Parameters) -> Result<Word> {
    let pipe = acqp.structs("ACQ_ScanPipeJobSettings");
    let of_job = pipe.first().and_then(|fields| fields.get(1)).map(String::as_str);
    let (name, value) = match acqp.word("GO_raw_data_format") {
        "" => match of_job {
            Some(value) => ("ACQ_ScanPipeJobSettings", value),
            None => ("ACQ_word_size", acqp.word("ACQ_word_size")),
        },
        value => ("GO_raw_data_format", value),
    };
    Ok(match value {
        "GO_16BIT_SGN_INT" | "_16_BIT" => Word::I16,
        "GO_32BIT_SGN_INT" | "_32_BIT" | "STORE_32bit_signed" => Word::I32,
        "GO_32BIT_FLOAT" | "_32_BIT_FLOAT" => Word::F32,
        "STORE_64bit_float" => Word::F64,
        other => {
            let expected =
                "GO_16BIT_SGN_INT, GO_32BIT_SGN_INT, GO_32BIT_FLOAT, STORE_32bit_signed or STORE_64bit_float";
            return Err(acqp.field(name, expected, if other.is_empty() { "nothing" } else { other }));
        }
    })
}

/// Parts of samples of a scan of the first job.
fn job_size(acqp: &Parameters) -> Result<usize> {
    let jobs = acqp.structs("ACQ_jobs");
    let size = jobs.first().and_then(|job| job.first());
    size.and_then(|size| size.parse().ok()).ok_or_else(|| {
        let found = size.cloned().unwrap_or_else(|| "nothing".into());
        acqp.field("ACQ_jobs", "a struct that begins with the size of a scan", found)
    })
}

/// Errors: scans of kinds that are not read.
pub(super) fn expect_images(folder: &Folder, notes: &mut Vec<String>) -> Result<()> {
    let refuse = |what: String, hint: &str| Err(Error::unsupported(&folder.path, what).with_hint(hint));
    let kind =
        "rayspin reads images of FLASH, RARE, MSME, MGE, FISP and the like, EPI, and UTE with its file traj";
    if folder.acqp.words("ACQ_dim_desc").contains(&"Spectroscopic") {
        return refuse("spectroscopy (ACQ_dim_desc: Spectroscopic)".into(), kind);
    }
    let method = folder.method_name().to_ascii_uppercase();
    for other in ["SPIRAL", "ZTE", "CSI", "EPSI", "PRESS", "STEAM", "ISIS", "NSPECT", "SINGLEPULSE"] {
        if method.contains(other) {
            return refuse(format!("the method {} (method: Method)", folder.method_name()), kind);
        }
    }
    for (file, name, value) in [
        (&folder.method, "PVM_EpiCombine", "Yes"),
        (&folder.acqp, "AQ_mod", "qf"),
        (&folder.acqp, "AQ_mod", "qseq"),
    ] {
        if file.word(name) == value {
            return refuse(format!("{name} {value}"), kind);
        }
    }
    if folder.acqp.is_on("ACQ_user_filter") {
        notes.push(
            "a filter of the user changed the raw data (ACQ_user_filter), in a way that is not known".into(),
        );
    }
    let settings = folder.acqp.structs("ACQ_ScanPipeJobSettings");
    let stored = settings.first().and_then(|fields| fields.first()).map_or("", String::as_str);
    if stored == "STORE_raw" && folder.acqp.count("NA")?.unwrap_or(1) > 1 {
        return refuse("STORE_raw (scans before they are averaged)".into(), kind);
    }
    Ok(())
}
