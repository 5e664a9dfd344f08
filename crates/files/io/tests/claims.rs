//! Outputs that another process, or another user, has claimed or left behind.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rayspin_io::atomic::Claim;

/// The test that a second process runs, which then claims the output of this variable.
const TEST: &str = "outputs_are_claimed_among_processes_and_users";
const OUTPUT: &str = "RAYSPIN_TEST_CLAIM";
/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// A process that claims an output until it is killed, and whether it got the claim.
struct Other {
    process: Child,
    has_claim: bool,
}

impl Other {
    /// By this user, or by [`NOBODY`].
    fn on(output: &Path, program: &Path, by_nobody: bool) -> Self {
        let mut command = Command::new(program);
        command.args(["--exact", TEST, "--nocapture"]).env(OUTPUT, output);
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        if by_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = lines.map_while(Result::ok).find_map(|line| Some(line.split_once("claim: ")?.1 == "true"));
        Self { process, has_claim: said.expect("a process that says whether it has the claim") }
    }

    /// Ends it as a signal does that no process can catch.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn lock_of(output: &Path) -> PathBuf {
    output.with_file_name(format!(".{}.lock", output.file_name().unwrap().to_string_lossy()))
}

#[test]
fn outputs_are_claimed_among_processes_and_users() {
    if let Some(output) = std::env::var_os(OUTPUT) {
        let claim = Claim::on(&[PathBuf::from(output)]).unwrap();
        println!("claim: {}", claim.is_some());
        // Until the other end is gone, or this process is killed.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    // A folder and a program that every user may use.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let output = folder.path().join("image.npy");
    let outputs = [&output];
    let lock = lock_of(&output);
    // Only the superuser can start a process of another user.
    let is_superuser = fs::metadata(folder.path()).unwrap().uid() == 0;
    for by_nobody in [false, true].into_iter().filter(|nobody| !nobody || is_superuser) {
        let other = |output: &Path| Other::on(output, &program, by_nobody);
        // Whoever comes second gets none, until the first is killed. What that leaves keeps nobody out.
        let first = other(&output);
        assert!(first.has_claim && lock.exists());
        assert!(Claim::on(&outputs).unwrap().is_none());
        first.kill();
        assert!(lock.exists());
        let claim = Claim::on(&outputs).unwrap().expect("a claim on what a killed process had");
        assert!(claim.is_certain());
        let second = other(&output);
        assert!(!second.has_claim);
        second.kill();
        drop(claim);
        assert!(!lock.exists());
        // A file that this user left, and that the other may read alone.
        fs::write(&lock, "").unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o444)).unwrap();
        let third = other(&output);
        assert!(third.has_claim);
        assert!(Claim::on(&outputs).unwrap().is_none());
        third.kill();
        // What is left is removed with the outputs' other remains.
        assert!(lock.exists());
        Claim::clear(&outputs);
        assert!(!lock.exists());
    }
}
