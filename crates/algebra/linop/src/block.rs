use std::sync::Arc;

use rayspin_core::{Error, Result, expect_shape};
use rayspin_device::Array;
use rayspin_kernels::vector::{self, Scalar};

use crate::{LinearOp, Scratch};

/// y_t = A_t x_t over a leading axis. The operators share no unknown, like the frames of a series.
///
/// ```
/// use std::sync::Arc;
///
/// use rayspin_core::C32;
/// use rayspin_device::Device;
/// use rayspin_linop::{BlockDiagonal, Identity, LinearOp, random};
///
/// let device = Device::cpu()?;
/// let twice: Arc<dyn LinearOp<C32>> = Arc::new(Identity::new(&[4]).scaled(2.0));
/// let series = BlockDiagonal::new(vec![Arc::new(Identity::new(&[4])), twice])?;
/// let x = random(&device, &[2, 4], 1)?;
/// let y = series.forward(&x)?.to_host()?;
/// assert_eq!((y[[0, 3]], y[[1, 3]]), (x.to_host()?[[0, 3]], x.to_host()?[[1, 3]] * 2.0));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
pub struct BlockDiagonal<S: Scalar> {
    blocks: Vec<Arc<dyn LinearOp<S>>>,
    domain: Vec<usize>,
    range: Vec<usize>,
    from: Scratch<S>,
    to: Scratch<S>,
}

impl<S: Scalar> BlockDiagonal<S> {
    /// From operators with equal domains and equal ranges. Errors: no operators, or shapes that differ.
    pub fn new(blocks: Vec<Arc<dyn LinearOp<S>>>) -> Result<Self> {
        let Some(first) = blocks.first() else {
            return Err(Error::value("blocks of an operator", "at least one", 0));
        };
        for block in &blocks {
            expect_shape("domain of a block", first.domain(), block.domain())?;
            expect_shape("range of a block", first.range(), block.range())?;
        }
        let stacked = |shape: &[usize]| [&[blocks.len()], shape].concat();
        let (domain, range) = (stacked(first.domain()), stacked(first.range()));
        Ok(Self { blocks, domain, range, from: Scratch::default(), to: Scratch::default() })
    }

    fn each(
        &self,
        from: &Array<S>,
        to: &mut Array<S>,
        apply: impl Fn(&dyn LinearOp<S>, &Array<S>, &mut Array<S>) -> Result<()>,
    ) -> Result<()> {
        let mut one = self.from.take(from.device(), &from.shape()[1..])?;
        let mut made = self.to.take(from.device(), &to.shape()[1..])?;
        let (len, made_len) = (one.len(), made.len());
        for (index, block) in self.blocks.iter().enumerate() {
            vector::copy_part(from, index * len, &mut one, 0, len)?;
            apply(&**block, &one, &mut made)?;
            vector::copy_part(&made, 0, to, index * made_len, made_len)?;
        }
        Ok(())
    }
}

impl<S: Scalar> LinearOp<S> for BlockDiagonal<S> {
    fn name(&self) -> &str {
        "block diagonal"
    }
    fn domain(&self) -> &[usize] {
        &self.domain
    }
    fn range(&self) -> &[usize] {
        &self.range
    }
    fn forward_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_forward(x, y)?;
        self.each(x, y, |block, x, y| block.forward_into(x, y))
    }
    fn adjoint_into(&self, y: &Array<S>, x: &mut Array<S>) -> Result<()> {
        self.check_adjoint(y, x)?;
        self.each(y, x, |block, y, x| block.adjoint_into(y, x))
    }
    fn normal_into(&self, x: &Array<S>, y: &mut Array<S>) -> Result<()> {
        self.check_normal(x, y)?;
        self.each(x, y, |block, x, y| block.normal_into(x, y))
    }
}
