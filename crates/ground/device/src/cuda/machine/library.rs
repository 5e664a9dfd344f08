//! Where the vendor's libraries lie. The system's loader is asked first; then `RAYSPIN_CUDA_PATH` (folders
//! separated by colons) and the toolkit's usual folder.

use std::path::{Path, PathBuf};

/// Loads `lib<name>.so*` from the known folders when the loader does not find it by itself. A library that is
/// loaded by its path is found by its name from then on.
pub(in crate::cuda) fn find(name: &str) {
    let mut folders: Vec<PathBuf> = std::env::var_os("RAYSPIN_CUDA_PATH")
        .map(|paths| std::env::split_paths(&paths).collect())
        .unwrap_or_default();
    folders.extend(["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"].map(PathBuf::from));
    for folder in folders {
        for path in candidates(&folder, name) {
            // SAFETY: the vendor's libraries have no requirements on when they are loaded.
            #[allow(unsafe_code)]
            if let Ok(library) = unsafe { libloading::Library::new(&path) } {
                // Never unloaded: what is found by name later is this one.
                std::mem::forget(library);
                return;
            }
        }
    }
}

/// `libname.so` and `libname.so.12`, but not `libname-builtins.so` or `libname.alt.so.13`; the highest
/// version first.
fn candidates(folder: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("lib{name}.so");
    let version = |path: &PathBuf| -> Vec<u32> {
        let file = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        file[prefix.len()..].split('.').filter_map(|part| part.parse().ok()).collect()
    };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&prefix)))
        .collect();
    paths.sort_by_key(|path| std::cmp::Reverse(version(path)));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_of_a_library_comes_first() {
        let folder = std::env::temp_dir().join(format!("rayspin-libraries-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in
            ["libnvrtc.so.9", "libnvrtc.so.13", "libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0", "notes"]
        {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let names: Vec<_> = candidates(&folder, "nvrtc")
            .iter()
            .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["libnvrtc.so.13", "libnvrtc.so.9"]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(candidates(&folder, "nvrtc").is_empty());
    }
}
