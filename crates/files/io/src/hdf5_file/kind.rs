//! What an HDF5 file holds, by the names of its objects and nothing of its numbers: a scan or images of
//! ISMRMRD, a scan of fastMRI, arrays of MATLAB, or arrays of any program.

use std::collections::VecDeque;
use std::path::Path;

use hdf5::types::TypeDescriptor;
use hdf5::{Dataset, Group, LinkType, LocationType};

use super::arrays::element_of;
use super::is_text;

/// How deep groups are searched, and how many objects.
const DEEPEST: usize = 4;
const MOST: usize = 1000;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Data sets of numbers, without a header.
    Arrays,
    /// The same, with MATLAB's attributes.
    Matlab,
    /// K-space of fastMRI.
    FastMri,
    /// A scan or images of ISMRMRD, a CT scan, or what is none of these.
    Other,
}

/// Data sets beside `kspace` in files of fastMRI, and attributes of the root.
const FASTMRI_DATA: [&str; 4] = ["ismrmrd_header", "reconstruction_rss", "reconstruction_esc", "mask"];
const FASTMRI_ATTRIBUTES: [&str; 4] = ["acquisition", "patient_id", "norm", "max"];

/// What the file at `path` holds. Links into other files are not followed.
pub(crate) fn kind(path: &Path) -> Kind {
    let root = hdf5::File::open(path).and_then(|file| file.group("/"));
    root.map_or(Kind::Other, |root| kind_of(&root))
}

/// The names in a group, and whether each is of this file.
fn names(group: &Group) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    // A group whose links cannot be listed to the end has told some.
    let _ = group.iter_visit_default(|name, info| {
        names.extend(
            (names.len() < MOST && is_text(name))
                .then(|| (name.to_owned(), info.link_type == LinkType::Hard)),
        );
        Ok(())
    });
    names
}

fn has_attribute(held: &hdf5::Location, wanted: &[&str]) -> bool {
    held.attr_names().is_ok_and(|names| names.iter().any(|name| wanted.contains(&&**name)))
}

fn kind_of(root: &Group) -> Kind {
    let mut queue = VecDeque::from([(root.clone(), 0usize)]);
    let (mut arrays, mut matlab, mut seen) = (false, false, 0);
    while let Some((group, depth)) = queue.pop_front() {
        let names = names(&group);
        let has = |wanted: &str| names.iter().any(|(name, _)| name == wanted);
        let is_nexus = has("definition") || has("instrument") || has_attribute(&group, &["NX_class"]);
        let is_ct = (depth == 0 && has("exchange")) || is_nexus;
        if has("xml") || (has("data") && has("header")) || is_ct {
            return Kind::Other;
        }
        if depth == 0
            && let Ok(kspace) = hard(&names, "kspace").and_then(|name| group.dataset(name))
            && descriptor(&kspace).is_some_and(|kind| element_of(&kind).is_some_and(|of| of.is_complex()))
            && (FASTMRI_DATA.iter().any(|name| has(name)) || has_attribute(&group, &FASTMRI_ATTRIBUTES))
        {
            return Kind::FastMri;
        }
        for (name, _) in names.iter().filter(|(_, of_file)| *of_file) {
            seen += 1;
            if seen > MOST {
                break;
            }
            match group.loc_type_by_name(name) {
                Ok(LocationType::Group) if depth < DEEPEST && !name.starts_with('#') => {
                    queue.extend(group.group(name).ok().map(|inner| (inner, depth + 1)));
                }
                Ok(LocationType::Dataset) => {
                    let Ok(data) = group.dataset(name) else { continue };
                    let Some(kind) = descriptor(&data) else { continue };
                    // Acquisitions whose header is missing.
                    if let TypeDescriptor::Compound(compound) = &kind
                        && compound.fields.iter().any(|field| field.name == "head")
                    {
                        return Kind::Other;
                    }
                    arrays |= element_of(&kind).is_some();
                    matlab |= has_attribute(&data, &["MATLAB_class"]);
                }
                _ => {}
            }
        }
    }
    match (arrays, matlab) {
        (true, true) => Kind::Matlab,
        (true, false) => Kind::Arrays,
        (false, _) => Kind::Other,
    }
}

/// The name, where it is one of this file.
fn hard<'a>(names: &'a [(String, bool)], wanted: &str) -> hdf5::Result<&'a str> {
    let found = names.iter().find(|(name, of_file)| name == wanted && *of_file);
    found.map(|(name, _)| &**name).ok_or_else(|| "no such name".into())
}

fn descriptor(data: &Dataset) -> Option<TypeDescriptor> {
    data.dtype().and_then(|kind| kind.to_descriptor()).ok()
}
