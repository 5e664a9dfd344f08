//! What every GPU programmer meets, one folder each, with every variant from naive to best.
//!
//! [`ladders`] lists them all, beside those of `rayspin-planes`. The public function of a folder runs its
//! best variant.

pub mod access;
pub mod coulomb;
pub mod matrix_add;
pub mod matrix_product;
pub mod pi;
pub mod random;
pub mod reduction;
pub mod sad;
pub mod sobel;
pub mod transfers;
pub mod transpose;

use rayspin_tune::{Build, Ladder, distinct};

/// Every algorithm here and in `rayspin-planes`, by name.
pub fn ladders() -> Vec<Box<dyn Ladder>> {
    let mut ladders = rayspin_planes::ladders();
    let own: [Box<dyn Ladder>; 11] = [
        Box::new(access::Access),
        Box::new(coulomb::Coulomb),
        Box::new(matrix_add::MatrixAdd),
        Box::new(matrix_product::MatrixProduct),
        Box::new(sad::Sad),
        Box::new(sobel::Sobel),
        Box::new(reduction::Reduction),
        Box::new(transfers::Transfers),
        Box::new(transpose::Transpose),
        Box::new(pi::Pi),
        Box::new(random::RandomNumbers),
    ];
    ladders.extend(own);
    ladders.sort_by_key(|ladder| ladder.about().name);
    ladders
}

/// Every program in every form that matters to its resources: what continuous integration compiles without a
/// GPU.
pub fn programs() -> Vec<Build> {
    distinct(ladders().iter().flat_map(|ladder| ladder.programs()))
}
