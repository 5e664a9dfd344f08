//! The commands of README.md, docs/ and docs/course/ work.

use crate::documents;

#[test]
fn commands_of_the_documents_run() {
    // Blocks of the program that reconstructs run in its tests.
    assert!(documents::run(|block| block.contains("rayspin-ladder")) >= 50);
}
