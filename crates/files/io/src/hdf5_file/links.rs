//! The other files that reading an HDF5 file reads: links lead to them, and the numbers of data sets may lie
//! in them.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use hdf5::plist::dataset_create::Layout;
use hdf5::{Dataset, Group, Location, LocationType};

use super::elsewhere::{raw_file, source_file};
use super::sources::sources;
use super::{is_text, open};
use crate::error::parent_folder;

/// Objects that are looked at, those near the root first: a file may have a group for each of many images,
/// and links in a circle have no end.
pub(super) const MOST: usize = 10_000;
/// Virtual data sets that are made of virtual data sets, one within the other.
const DEEPEST: usize = 8;

/// The files that an HDF5 file leads to: targets of external links, files of virtual data sets and raw files
/// of data sets (external storage), and the files that these lead to in turn. Only files that exist are
/// listed. A file that is not HDF5 leads to none.
pub(crate) fn linked(path: &Path) -> Vec<PathBuf> {
    let Ok(file) = open(path, "an HDF5 file") else { return Vec::new() };
    let mut walk = Walk { known: path.canonicalize().into_iter().collect(), ..Walk::default() };
    walk.object(&file);
    walk.waiting.push_back((*file).clone());
    while let Some(group) = walk.waiting.pop_front() {
        walk.group(&group);
    }
    walk.files.into_iter().map(|file| seen_from(path, file)).collect()
}

/// A file below the folder of `path` is named from where `path` is named from, so that a record of both can
/// be used elsewhere.
fn seen_from(path: &Path, file: PathBuf) -> PathBuf {
    let folder = parent_folder(path).canonicalize().ok();
    let rest = folder.and_then(|folder| Some(path.with_file_name(file.strip_prefix(folder).ok()?)));
    rest.unwrap_or(file)
}

#[derive(Default)]
struct Walk {
    /// Without links in the file system.
    known: BTreeSet<PathBuf>,
    /// Those of `known` that are to be told, in the order in which they are met.
    files: Vec<PathBuf>,
    /// The file of each object, and its address or its name.
    seen: BTreeSet<(String, String)>,
    waiting: VecDeque<Group>,
}

impl Walk {
    fn file(&mut self, file: &Path) {
        if let Ok(file) = file.canonicalize()
            && file.is_file()
            && self.known.insert(file.clone())
        {
            self.files.push(file);
        }
    }

    /// Whether this object is new. Its file is one that is read.
    fn object(&mut self, object: &Location) -> bool {
        let (file, Ok(info)) = (object.filename(), object.loc_info()) else { return false };
        self.file(Path::new(&file));
        self.seen.insert((file, format!("{:?}", info.token)))
    }

    fn group(&mut self, group: &Group) {
        let mut names = Vec::new();
        let left = MOST.saturating_sub(self.seen.len());
        // A group whose links cannot be listed to the end has told some.
        let _ = group.iter_visit_default(|name, _| {
            names.extend((names.len() < left && is_text(name)).then(|| name.to_owned()));
            Ok(())
        });
        for name in names {
            if self.seen.len() >= MOST {
                return;
            }
            // A link that leads nowhere has no type.
            match group.loc_type_by_name(&name) {
                Ok(LocationType::Group) => {
                    if let Ok(inner) = group.group(&name)
                        && self.object(&inner)
                    {
                        self.waiting.push_back(inner);
                    }
                }
                Ok(LocationType::Dataset) => {
                    if let Ok(data) = group.dataset(&name) {
                        self.data(&data, 0);
                    }
                }
                _ => {}
            }
        }
    }

    fn data(&mut self, data: &Dataset, depth: usize) {
        if !self.object(data) || depth > DEEPEST {
            return;
        }
        let Ok(plist) = data.dcpl() else { return };
        let holder = PathBuf::from(data.filename());
        for raw in plist.external() {
            if let Ok(Some(file)) = raw_file(&holder, &raw.name) {
                self.file(&file);
            }
        }
        if data.layout() != Layout::Virtual {
            return;
        }
        for source in sources(&holder, data, &data.name()).unwrap_or_default() {
            let Ok(Some(file)) = source_file(&holder, &source.file) else { continue };
            self.file(&file);
            if self.seen.len() < MOST
                && self.seen.insert((file.display().to_string(), source.dataset.to_string()))
                && let Ok(other) = hdf5::File::open(&file)
                && let Ok(data) = other.dataset(&source.dataset)
            {
                self.data(&data, depth + 1);
            }
        }
    }
}
