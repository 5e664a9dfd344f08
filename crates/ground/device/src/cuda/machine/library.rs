//! Where the vendor's libraries lie. The system's loader is asked first; then `RAYSPIN_CUDA_PATH` (folders
//! separated by colons), the toolkit's usual folder, and the packages that `pip install nvidia-cuda-nvrtc`
//! and its like leave in a Python environment.

use std::path::{Path, PathBuf};

/// Loads `lib<name>.so*` from the known folders when the loader does not find it by itself. A library that is
/// loaded by its path is found by its name from then on.
pub(in crate::cuda) fn find(name: &str) {
    let mut folders: Vec<PathBuf> = std::env::var_os("RAYSPIN_CUDA_PATH")
        .map(|paths| std::env::split_paths(&paths).collect())
        .unwrap_or_default();
    folders.extend(["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"].map(PathBuf::from));
    folders.extend(prefixes_of_python().iter().flat_map(|prefix| packages(prefix)));
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

/// Prefixes of the Python environments that a user has at hand: the active ones, that of the `python3` on the
/// path, the user's own packages, the system's.
fn prefixes_of_python() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut prefixes: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).collect();
    let on_path: Vec<PathBuf> =
        variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    if let Some(folder) = on_path.iter().find(|folder| folder.join("python3").is_file()) {
        prefixes.extend(folder.parent().map(Path::to_owned));
        // A link to the program of another prefix.
        let program = std::fs::canonicalize(folder.join("python3")).ok();
        prefixes.extend(program.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned));
    }
    if let Some(home) = variable("HOME") {
        prefixes.push(home.join(".local"));
        let versions = variable("PYENV_ROOT").unwrap_or_else(|| home.join(".pyenv")).join("versions");
        prefixes.extend(children(&versions));
    }
    prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
    prefixes
}

/// `lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib` and `…/nvidia/cu13/lib` of a prefix: packages for
/// CUDA 12 have a folder each, those for later versions share one.
fn packages(prefix: &Path) -> Vec<PathBuf> {
    let is_python = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
    };
    let mut folders = Vec::new();
    for lib in ["lib", "lib64"] {
        for python in children(&prefix.join(lib)).into_iter().filter(is_python) {
            for packages in ["site-packages", "dist-packages"] {
                folders.extend(
                    children(&python.join(packages).join("nvidia")).into_iter().map(|p| p.join("lib")),
                );
            }
        }
    }
    folders
}

/// What a folder holds, by name; nothing where there is none.
fn children(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort_unstable();
    paths
}

/// `libname.so` and `libname.so.12`, but not `libname-builtins.so` or `libname.alt.so.13`; the highest
/// version first.
fn candidates(folder: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("lib{name}.so");
    let version = |path: &PathBuf| -> Vec<u32> {
        let file = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        file[prefix.len()..].split('.').filter_map(|part| part.parse().ok()).collect()
    };
    let mut paths: Vec<PathBuf> = children(folder)
        .into_iter()
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

    #[test]
    fn packages_of_python_are_found() {
        let prefix = std::env::temp_dir().join(format!("rayspin-packages-{}", std::process::id()));
        let folders = [
            "lib/python3.11/site-packages/nvidia/cu13/lib",
            "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
        ]
        .map(|folder| prefix.join(folder));
        for folder in &folders {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::create_dir_all(prefix.join("lib/other/site-packages/nvidia/cu13/lib")).unwrap();
        assert_eq!(packages(&prefix), folders);
        std::fs::remove_dir_all(&prefix).unwrap();
        assert!(packages(&prefix).is_empty());
    }
}
