//! The scans of a batch and their images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rayspin_shell::BadInput;

use crate::commands::files;

/// The scans that names, folders and patterns stand for, each once, sorted by name: jobs on several machines
/// divide one list.
///
/// Errors: a pattern or a folder without scans, a name that is not Unicode.
pub(super) fn scans(names: &[PathBuf], is_scan: fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut scans: Vec<PathBuf> = Vec::new();
    for name in names {
        if name.exists() {
            scans.extend(files::inputs(std::slice::from_ref(name), is_scan)?.files);
            continue;
        }
        let refused = |found: &str| {
            let name = name.display();
            BadInput::new(format!("{name}: expected scans, a folder of scans or a pattern, found {found}"))
                .hint("a pattern stands in quotes: 'scans/*.h5'")
        };
        let pattern = name.to_str().ok_or_else(|| refused("a name that is not Unicode"))?;
        let paths = glob::glob(pattern).map_err(|error| refused(&format!("no pattern ({error})")))?;
        let before = scans.len();
        for path in paths {
            scans.push(path.map_err(|error| refused(&error.to_string()))?);
        }
        if scans.len() == before {
            return Err(refused("none").into());
        }
    }
    scans.sort();
    scans.dedup();
    // A name that begins with - is an option to the parser of the command that is made of it.
    scans
        .into_iter()
        .map(|scan| match scan.to_str() {
            Some(_) => Ok(files::argument(scan)),
            None => {
                let message = format!("{}: expected a name in Unicode, found other bytes", scan.display());
                Err(BadInput::new(message).hint("give the scan another name").into())
            }
        })
        .collect()
}

/// The outputs of each scan. Errors: two scans with one output.
pub(super) fn outputs(scans: &[PathBuf], patterns: &[String]) -> Result<Vec<Vec<PathBuf>>> {
    let mut taken: BTreeMap<PathBuf, &PathBuf> = BTreeMap::new();
    let mut outputs = Vec::with_capacity(scans.len());
    for scan in scans {
        let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let (stem, folder) = (name(scan.file_stem()), name(scan.parent().and_then(Path::file_name)));
        let fill = |pattern: &String| PathBuf::from(filled(pattern, &stem, &folder));
        let own: Vec<PathBuf> = patterns.iter().map(fill).map(files::argument).collect();
        for output in &own {
            if let Some(other) = taken.insert(output.clone(), scan) {
                let (one, other, scan) = (output.display(), other.display(), scan.display());
                let message =
                    format!("--output: expected an image for each scan, found {one} of {other} and {scan}");
                let hint =
                    "{stem} stands for the scan's name without its ending, {folder} for its folder's name";
                return Err(BadInput::new(message).hint(hint).into());
            }
        }
        outputs.push(own);
    }
    Ok(outputs)
}

/// A pattern with `{stem}` and `{folder}` filled in, which may hold such words themselves.
fn filled(pattern: &str, stem: &str, folder: &str) -> String {
    let (mut filled, mut rest) = (String::new(), pattern);
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let words = [("stem}", stem), ("folder}", folder)];
        let word = words.iter().find_map(|(word, text)| Some((*text, after.strip_prefix(word)?)));
        let (text, left) = word.unwrap_or(("{", after));
        filled += text;
        rest = left;
    }
    filled + rest
}
