use std::ops::Range;
use std::sync::Arc;

use ndarray::{ArrayD, IxDyn};
use num_complex::Complex;
use rayspin_core::{Error, Real, Result, expect_shape, voxels};
use rayspin_device::{Array, Backend, Device, DoubleBuffer, Pinned, cpu};
use rayspin_kernels::{sensitivity, vector};

use crate::sense::expect_maps;

/// Splits the coils into ranges of at most `batch`.
pub fn batches(coils: usize, batch: Option<usize>) -> impl Iterator<Item = Range<usize>> {
    let batch = batch.unwrap_or(coils).clamp(1, coils.max(1));
    (0..coils).step_by(batch).map(move |first| first..(first + batch).min(coils))
}

/// Coil sensitivities c_j(x), `[coil, image…]`. Cheap to clone.
///
/// The maps lie in the device's memory, or in pinned host memory if a GPU is too small for them. Maps on the
/// host are copied to the GPU one batch of coils after another. Two buffers on the GPU take turns, so that
/// the next batch is copied while the present one is used. Results agree to rounding. [`MapsBuilder`] makes
/// maps on the host; an [`Array`] of maps stays on its device. Work that copies maps cannot be recorded for
/// repetition (see [`rayspin_device::Cuda::record`]).
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{CoilMaps, random};
///
/// let device = Device::cpu()?;
/// let maps = CoilMaps::from(random::<f32>(&device, &[5, 4, 4], 1)?);
/// let mut seen = Vec::new();
/// maps.each(Some(2), |coils, _, _| {
///     seen.push(coils);
///     Ok(())
/// })?;
/// assert_eq!(seen, [0..2, 2..4, 4..5]);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct CoilMaps<R: Real> {
    storage: MapStorage<R>,
}

#[derive(Debug)]
enum MapStorage<R: Real> {
    Resident(Arc<Array<Complex<R>>>),
    Host(Arc<HostMaps<R>>),
}

/// Maps in parts of `batch` coils. The last part is padded with 0.
#[derive(Debug)]
struct HostMaps<R: Real> {
    device: Device,
    shape: Vec<usize>,
    batch: usize,
    parts: DoubleBuffer<Complex<R>>,
}

impl<R: Real> Clone for CoilMaps<R> {
    fn clone(&self) -> Self {
        let storage = match &self.storage {
            MapStorage::Resident(maps) => MapStorage::Resident(maps.clone()),
            MapStorage::Host(maps) => MapStorage::Host(maps.clone()),
        };
        Self { storage }
    }
}

impl<R: Real> From<Arc<Array<Complex<R>>>> for CoilMaps<R> {
    fn from(maps: Arc<Array<Complex<R>>>) -> Self {
        Self { storage: MapStorage::Resident(maps) }
    }
}

impl<R: Real> From<Array<Complex<R>>> for CoilMaps<R> {
    fn from(maps: Array<Complex<R>>) -> Self {
        Arc::new(maps).into()
    }
}

impl<R: Real> CoilMaps<R> {
    /// `[coil, image…]`.
    pub fn shape(&self) -> &[usize] {
        match &self.storage {
            MapStorage::Resident(maps) => maps.shape(),
            MapStorage::Host(maps) => &maps.shape,
        }
    }

    /// Number of coils.
    pub fn coils(&self) -> usize {
        self.shape().first().copied().unwrap_or(0)
    }

    /// The device that uses the maps.
    pub fn device(&self) -> &Device {
        match &self.storage {
            MapStorage::Resident(maps) => maps.device(),
            MapStorage::Host(maps) => &maps.device,
        }
    }

    /// Whether all maps lie in the device's memory.
    pub fn is_resident(&self) -> bool {
        self.resident().is_some()
    }

    /// All maps, if they lie in the device's memory.
    pub fn resident(&self) -> Option<&Arc<Array<Complex<R>>>> {
        match &self.storage {
            MapStorage::Resident(maps) => Some(maps),
            MapStorage::Host(_) => None,
        }
    }

    /// Calls `work(coils, maps, taken)` with one range of at most `batch` coils after another. `maps` `[row,
    /// image…]` holds the maps of these coils in the rows `taken`. If maps are copied, threads take turns.
    /// `work` must not use these maps itself.
    ///
    /// Errors: errors of `work` and of the device; maps are copied while work is being recorded.
    pub fn each(
        &self,
        batch: Option<usize>,
        work: impl FnMut(Range<usize>, &Array<Complex<R>>, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        self.each_of(0..self.coils(), batch, work)
    }

    /// [`CoilMaps::each`] for the coils of a range. Errors: also coils that do not exist.
    pub fn each_of(
        &self,
        coils: Range<usize>,
        batch: Option<usize>,
        mut work: impl FnMut(Range<usize>, &Array<Complex<R>>, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        if coils.start > coils.end || coils.end > self.coils() {
            let expected = format!("a range within 0..{}", self.coils());
            return Err(Error::value("coils of maps", expected, format!("{coils:?}")));
        }
        let mut some = |maps: &Array<Complex<R>>, first: usize, coils: Range<usize>| {
            batches(coils.len(), batch).try_for_each(|part| {
                let coils = coils.start + part.start..coils.start + part.end;
                work(coils.clone(), maps, coils.start - first..coils.end - first)
            })
        };
        match &self.storage {
            MapStorage::Resident(maps) => some(maps, 0, coils),
            MapStorage::Host(maps) => {
                let parts = coils.start / maps.batch..coils.end.div_ceil(maps.batch);
                maps.parts.each(if coils.is_empty() { 0..0 } else { parts }, |part, held| {
                    let first = part * maps.batch;
                    some(held, first, coils.start.max(first)..coils.end.min(first + maps.batch))
                })
            }
        }
    }

    /// ρ(x) ← ρ(x) + Σ_j conj(c_j(x)) y_j(x) over the coils of a range: `images` `[taken, image…]`, `image`
    /// `[image…]`.
    ///
    /// Errors: coils that do not exist; shapes that do not fit; other devices; as [`CoilMaps::each`].
    pub fn combine_add(
        &self,
        coils: Range<usize>,
        images: &Array<Complex<R>>,
        image: &mut Array<Complex<R>>,
    ) -> Result<()> {
        let (first, shape) = (coils.start, self.shape().get(1..).unwrap_or_default());
        expect_shape("coil images", &[&[coils.len()], shape].concat(), images.shape())?;
        self.each_of(coils, None, |coils, maps, taken| {
            sensitivity::combine_rows_add(maps, taken, images, coils.start - first..coils.end - first, image)
        })
    }

    /// ρ ← ρ / Σ_j |c_j|², 0 where no coil sees anything. Errors: another shape or device, memory, and as
    /// [`CoilMaps::each`].
    pub fn normalise(&self, image: &mut Array<Complex<R>>) -> Result<()> {
        let maps = match &self.storage {
            MapStorage::Resident(maps) => return sensitivity::normalise(maps, image),
            MapStorage::Host(maps) => maps,
        };
        let mut power = Array::zeros(&maps.device, &maps.shape[1..])?;
        maps.parts.each(0..maps.parts.len(), |_, held| sensitivity::sum_of_squares_add(held, &mut power))?;
        sensitivity::divide(&power, image)
    }

    /// A copy of the maps on the host. Errors: a failure of the device; no memory.
    pub fn to_host(&self) -> Result<ArrayD<Complex<R>>> {
        let maps = match &self.storage {
            MapStorage::Resident(maps) => return maps.to_host(),
            MapStorage::Host(maps) => maps,
        };
        let len = voxels(&maps.shape)?;
        let mut values = cpu::zeroed("coil sensitivities on the host", len)?;
        let part_len = maps.batch * voxels(&maps.shape[1..])?;
        for (part, to) in values.chunks_mut(part_len.max(1)).enumerate() {
            maps.parts.read(part, |from| to.copy_from_slice(&from[..to.len()]))?;
        }
        let count = values.len();
        ArrayD::from_shape_vec(IxDyn(&maps.shape), values)
            .map_err(|_| Error::shape("coil sensitivities", &[len], &[count]))
    }

    /// [`CoilMaps::to_host`], without a copy if a CPU holds the maps and nothing else shares them.
    pub fn into_host(self) -> Result<ArrayD<Complex<R>>> {
        match self.storage {
            MapStorage::Resident(maps) => match Arc::try_unwrap(maps) {
                Ok(maps) => maps.into_host(),
                Err(shared) => shared.to_host(),
            },
            MapStorage::Host(_) => self.to_host(),
        }
    }

    /// Bytes of device memory and of pinned host memory for maps of `shape` from a [`MapsBuilder`] with
    /// `cut`. A CPU has no memory of its own; its bytes count as the host's.
    ///
    /// Errors: sizes that overflow.
    pub fn bytes_needed(device: &Device, shape: &[usize], cut: Option<usize>) -> Result<(u64, u64)> {
        let size = |coils: usize| {
            let image = shape.get(1..).unwrap_or_default();
            Ok::<_, Error>(voxels(&[&[coils], image].concat())? as u64 * size_of::<Complex<R>>() as u64)
        };
        let coils = shape.first().copied().unwrap_or(0);
        match batch(device, coils, cut) {
            None => Ok((size(coils)?, 0)),
            Some(batch) => Ok((size(2 * batch)?, size(coils.div_ceil(batch) * batch)?)),
        }
    }

    pub(crate) fn expect(&self, matrix: &[usize]) -> Result<()> {
        expect_maps(self.shape())?;
        expect_shape("coil sensitivities, [coil, matrix…]: matrix", matrix, &self.shape()[1..])
    }
}

/// Coils of a batch, as even as possible, if maps are copied in batches. `None` on a CPU, or if two batches
/// hold all coils.
fn batch(device: &Device, coils: usize, cut: Option<usize>) -> Option<usize> {
    let parts = coils.div_ceil(cut?.max(1));
    (matches!(device.backend(), Backend::Cuda(_)) && parts > 2).then(|| coils.div_ceil(parts))
}

/// Builds [`CoilMaps`]. The maps are filled coil by coil or some voxels at a time, and can be read back
/// before they are complete.
///
/// ```
/// use rayspin_device::Device;
/// use rayspin_linop::{MapsBuilder, random};
///
/// let device = Device::cpu()?;
/// let mut maps = MapsBuilder::<f32>::new(&device, &[2, 3, 3], None)?;
/// let coil = random(&device, &[1, 3, 3], 1)?;
/// // The second coil, all of its voxels.
/// maps.put(1..2, 0..9, &coil, 0)?;
/// let made = maps.finish()?.to_host()?;
/// assert_eq!((made[[0, 1, 1]].norm(), made[[1, 1, 1]]), (0.0, coil.to_host()?[[0, 1, 1]]));
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug)]
pub struct MapsBuilder<R: Real> {
    device: Device,
    shape: Vec<usize>,
    voxels: usize,
    making: Making<R>,
}

#[derive(Debug)]
enum Making<R: Real> {
    Resident(Array<Complex<R>>),
    Host { batch: usize, parts: Vec<Pinned<Complex<R>>> },
}

impl<R: Real> MapsBuilder<R> {
    /// Maps of `shape` `[coil, image…]`, all 0. On a GPU with `cut`, the maps lie on the host, and each of
    /// two buffers on the GPU holds at most `cut` coils. The maps lie on the GPU if two buffers hold all
    /// coils. [`MapsBuilder::finish`] allocates the buffers.
    ///
    /// Errors: no axis of coils, memory.
    pub fn new(device: &Device, shape: &[usize], cut: Option<usize>) -> Result<Self> {
        expect_maps(shape)?;
        let (coils, voxels) = (shape[0], voxels(&shape[1..])?);
        let making = match batch(device, coils, cut) {
            None => Making::Resident(Array::zeros(device, shape)?),
            Some(batch) => {
                let part = rayspin_core::voxels(&[batch, voxels])?;
                let parts = (0..coils.div_ceil(batch)).map(|_| Pinned::new(device, part));
                Making::Host { batch, parts: parts.collect::<Result<_>>()? }
            }
        };
        Ok(Self { device: device.clone(), shape: shape.to_vec(), voxels, making })
    }

    /// `[coil, image…]`.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The device of the maps.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Sets the `voxels` of the images of `coils` from `from` `[taken, …]`, starting at element `offset` of
    /// each coil.
    ///
    /// Errors: coils or voxels that do not exist; another device.
    pub fn put(
        &mut self,
        coils: Range<usize>,
        voxels: Range<usize>,
        from: &Array<Complex<R>>,
        offset: usize,
    ) -> Result<()> {
        let row = self.row(&coils, &voxels, from.len(), offset)?;
        let (each, len) = (self.voxels, voxels.len());
        for (taken, coil) in coils.enumerate() {
            let from_at = taken * row + offset;
            match &mut self.making {
                Making::Resident(maps) => {
                    vector::copy_part(from, from_at, maps, coil * each + voxels.start, len)?;
                }
                Making::Host { batch, parts } => {
                    let start = coil % *batch * each + voxels.start;
                    from.send_part(from_at, &mut parts[coil / *batch], start..start + len)?;
                }
            }
        }
        Ok(())
    }

    /// Copies the `voxels` of all coils' images to `to` `[coil, …]`, starting at element `offset` of each
    /// coil.
    ///
    /// Errors: voxels that do not exist; another device.
    pub fn get(&mut self, voxels: Range<usize>, to: &mut Array<Complex<R>>, offset: usize) -> Result<()> {
        let coils = 0..self.shape[0];
        let row = self.row(&coils, &voxels, to.len(), offset)?;
        let (each, len) = (self.voxels, voxels.len());
        for coil in coils {
            let to_at = coil * row + offset;
            match &mut self.making {
                Making::Resident(maps) => {
                    vector::copy_part(maps, coil * each + voxels.start, to, to_at, len)?;
                }
                Making::Host { batch, parts } => {
                    let start = coil % *batch * each + voxels.start;
                    to.receive_part(to_at, &mut parts[coil / *batch], start..start + len)?;
                }
            }
        }
        Ok(())
    }

    /// Elements per coil of an array of `len` elements for `coils`. Checks that it has `voxels` starting at
    /// element `offset`.
    fn row(&self, coils: &Range<usize>, voxels: &Range<usize>, len: usize, offset: usize) -> Result<usize> {
        for (what, range, count) in [("coils", coils, self.shape[0]), ("voxels", voxels, self.voxels)] {
            if range.start > range.end || range.end > count {
                let expected = format!("a range within 0..{count}");
                return Err(Error::value(format!("{what} of maps"), expected, format!("{range:?}")));
            }
        }
        let row = len / coils.len().max(1);
        let expected = [coils.len(), offset.saturating_add(voxels.len()).max(row)];
        expect_shape("part of maps", &expected, &[coils.len(), row])?;
        expect_shape("part of maps", &[coils.len() * row], &[len])?;
        Ok(row)
    }

    /// The finished maps. Errors: no memory for the two buffers.
    pub fn finish(self) -> Result<CoilMaps<R>> {
        let (batch, parts) = match self.making {
            Making::Resident(maps) => return Ok(maps.into()),
            Making::Host { batch, parts } => (batch, parts),
        };
        let mut buffer = DoubleBuffer::new(&self.device, "coil sensitivities that are copied", 2);
        parts.into_iter().for_each(|part| buffer.push(part));
        let shape = [&[batch], &self.shape[1..]].concat();
        for _ in 0..2 {
            buffer.add_buffer(Array::zeros(&self.device, &shape)?);
        }
        let maps = HostMaps { device: self.device, shape: self.shape, batch, parts: buffer };
        Ok(CoilMaps { storage: MapStorage::Host(Arc::new(maps)) })
    }
}
