//! The points of a plan where their owner keeps them.

use std::borrow::Cow;

use ndarray::ArrayView2;
use rayon::prelude::*;
use rayspin_core::{Error, Real, Result, Trajectory};
use rayspin_device::cuda::HostCopy;
use rayspin_device::{Array, Device, Element};

use crate::concrete::{other_type, same_ref};

/// One component of all points: k_j = unit · values\[first + j · stride\] in cycles per field of view, j = 0
/// … count − 1.
///
/// The values are numbers of either precision, in memory of the host or of a GPU. A plan reads them there.
#[derive(Debug, Clone, Copy)]
pub struct Component<'a> {
    name: &'static str,
    values: Values<'a>,
    pub(super) first: usize,
    pub(super) stride: isize,
    count: usize,
    unit: f64,
}

/// The memory that holds a component, with elements of other use perhaps.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values<'a> {
    Single(&'a [f32]),
    Double(&'a [f64]),
    SingleOnGpu(&'a Array<f32>),
    DoubleOnGpu(&'a Array<f64>),
}

impl<'a> Component<'a> {
    /// All elements of an array, in cycles per field of view. Errors name the component `name`.
    ///
    /// Errors: a real type other than f32 and f64.
    pub fn new<R: Real>(name: &'static str, array: &'a Array<R>) -> Result<Self> {
        let on_gpu = array.device().kind() == rayspin_device::BackendKind::Cuda;
        let values = match (same_ref::<_, Array<f32>>(array), same_ref::<_, Array<f64>>(array)) {
            (Some(array), _) if on_gpu => Values::SingleOnGpu(array),
            (Some(array), _) => Values::Single(array.cpu()),
            (_, Some(array)) if on_gpu => Values::DoubleOnGpu(array),
            (_, Some(array)) => Values::Double(array.cpu()),
            _ => return Err(other_type::<R>()),
        };
        Ok(Self { name, values, first: 0, stride: 1, count: array.len(), unit: 1.0 })
    }

    /// `count` elements, `stride` apart, from the element `first` on. A negative stride leads backwards.
    ///
    /// Errors: elements outside the array.
    pub fn strided(mut self, first: usize, stride: isize, count: usize) -> Result<Self> {
        let last = (count.max(1) - 1)
            .try_into()
            .ok()
            .and_then(|steps: isize| steps.checked_mul(stride))
            .and_then(|way| first.checked_add_signed(way));
        let len = self.values.len();
        if count > 0 && !(first < len && last.is_some_and(|last| last < len)) {
            let expected = format!("elements within {len}");
            let given = format!("{count} elements {stride} apart from element {first} on");
            return Err(Error::value(self.name, expected, given));
        }
        (self.first, self.stride, self.count) = (first, stride, count);
        Ok(self)
    }

    /// In another unit: `unit` cycles per field of view, in place of one. A negative unit mirrors the points.
    #[must_use]
    pub fn in_unit(mut self, unit: f64) -> Self {
        self.unit = unit;
        self
    }

    /// Cells of the field of view's inverse per number of this component: 1/n of its unit, for an axis of n
    /// voxels.
    pub(super) fn inverse(&self, n: usize) -> f64 {
        self.unit / n as f64
    }

    /// The unit in cycles per field of view.
    pub(super) fn unit(&self) -> f64 {
        self.unit
    }

    /// The numbers of a component that a GPU holds, copied to the host; none of one that the host holds.
    /// Errors: a GPU that fails, no memory.
    fn copied(&self, host: &Device) -> Result<Option<Array<f64>>> {
        let copy = match self.values {
            Values::Single(_) | Values::Double(_) => return Ok(None),
            Values::SingleOnGpu(array) => {
                let numbers = array.to_vec()?;
                (0..self.count).map(|i| numbers[place(self.first, self.stride, i)].into()).collect()
            }
            Values::DoubleOnGpu(array) => {
                let numbers = array.to_vec()?;
                (0..self.count).map(|i| numbers[place(self.first, self.stride, i)]).collect()
            }
        };
        Array::from_vec(host, &[self.count], copy).map(Some)
    }

    /// The component on the host. Errors: it is on a GPU.
    pub(super) fn on_host(&self) -> Result<HostComponent<'a>> {
        let values = match self.values {
            Values::Single(values) => HostValues::Single(values),
            Values::Double(values) => HostValues::Double(values),
            Values::SingleOnGpu(array) => return Err(elsewhere(self.name, array.device())),
            Values::DoubleOnGpu(array) => return Err(elsewhere(self.name, array.device())),
        };
        Ok(HostComponent { values, first: self.first, stride: self.stride })
    }

    /// The numbers of this component alone, `values` of the host. Errors: memory.
    pub(super) fn without_gaps<T: Element>(&self, values: &'a [T]) -> Result<Cow<'a, [T]>> {
        if self.stride == 1 {
            return Ok(values[self.first..self.first + self.count].into());
        }
        const PART: usize = 1 << 16;
        let mut numbers = rayspin_device::cpu::zeroed("points", self.count)?;
        numbers.par_chunks_mut(PART).enumerate().for_each(|(part, to)| {
            gather(values, place(self.first, self.stride, part * PART), self.stride, to, |value| value);
        });
        Ok(numbers.into())
    }

    pub(super) fn values(&self) -> Values<'a> {
        self.values
    }

    /// The number of a point. Errors: a GPU that fails.
    fn number(&self, point: usize) -> Result<f64> {
        let index = place(self.first, self.stride, point);
        let (mut single, mut double) = ([0.0f32], [0.0f64]);
        match self.values {
            Values::Single(values) => return Ok(values[index].into()),
            Values::Double(values) => return Ok(values[index]),
            Values::SingleOnGpu(array) => array.get(index, &mut single, HostCopy::Unstaged)?,
            Values::DoubleOnGpu(array) => array.get(index, &mut double, HostCopy::Unstaged)?,
        }
        Ok(f64::from(single[0]) + double[0])
    }
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Single(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::SingleOnGpu(array) => array.len(),
            Self::DoubleOnGpu(array) => array.len(),
        }
    }
}

fn elsewhere(name: &str, device: &Device) -> Error {
    Error::value(name, "an array on the CPU", format!("one on {}", device.describe()))
}

/// The element of a point; within the array, as [`Component::strided`] has checked.
fn place(first: usize, stride: isize, point: usize) -> usize {
    first.wrapping_add_signed((point as isize).wrapping_mul(stride))
}

/// A component whose numbers are on the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostComponent<'a> {
    values: HostValues<'a>,
    first: usize,
    stride: isize,
}

#[derive(Debug, Clone, Copy)]
enum HostValues<'a> {
    Single(&'a [f32]),
    Double(&'a [f64]),
}

impl HostComponent<'_> {
    /// The numbers of the points from `point` on, to all of `to`.
    #[inline(always)]
    pub(super) fn read(&self, point: usize, to: &mut [f64]) {
        let first = place(self.first, self.stride, point);
        match self.values {
            HostValues::Single(values) => gather(values, first, self.stride, to, f64::from),
            HostValues::Double(values) => gather(values, first, self.stride, to, |value| value),
        }
    }
}

#[inline(always)]
fn gather<T: Copy, U>(values: &[T], first: usize, stride: isize, to: &mut [U], convert: impl Fn(T) -> U) {
    match stride {
        1 => to.iter_mut().zip(&values[first..]).for_each(|(to, &value)| *to = convert(value)),
        2.. => {
            let every = values[first..].iter().step_by(stride.unsigned_abs());
            to.iter_mut().zip(every).for_each(|(to, &value)| *to = convert(value));
        }
        _ => to.iter_mut().enumerate().for_each(|(i, to)| *to = convert(values[place(first, stride, i)])),
    }
}

/// The points of a plan, one [`Component`] for each axis, in the order x, y, z; all of one length.
///
/// ```
/// use rayspin_device::{Array, Device};
/// use rayspin_kernels::nufft::{Component, Coordinates, Nufft, Options};
///
/// let device = Device::cpu()?;
/// // Radians, [sample, dim].
/// let radians = Array::from_vec(&device, &[3, 2], vec![0.0f32, 0.1, 1.0, -2.0, 3.1, 0.5])?;
/// let component = |name, axis| {
///     let unit = 8.0 / std::f64::consts::TAU;
///     Ok(Component::new(name, &radians)?.strided(axis, 2, 3)?.in_unit(unit))
/// };
/// let points = Coordinates::new(&[component("x", 0)?, component("y", 1)?])?;
/// let plan = Nufft::<f32>::new(&device, points, &[8, 8], &Options::tolerance(1e-4))?;
/// assert_eq!(plan.samples(), 3);
/// # Ok::<(), rayspin_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Coordinates<'a> {
    components: [Component<'a>; 3],
    dims: usize,
}

impl<'a> Coordinates<'a> {
    /// Points with these components.
    ///
    /// Errors: none or more than three components, components of different lengths, no points.
    pub fn new(components: &[Component<'a>]) -> Result<Self> {
        let (Some(x), 1..=3) = (components.first(), components.len()) else {
            return Err(Error::value("points", "1 to 3 components", components.len()));
        };
        if x.count == 0 {
            return Err(Error::value("points", "at least one", 0));
        }
        if let Some(other) = components.iter().find(|other| other.count != x.count) {
            return Err(Error::shape(other.name, &[x.count], &[other.count]));
        }
        let padded = std::array::from_fn(|d| components.get(d).copied().unwrap_or(*x));
        Ok(Self { components: padded, dims: components.len() })
    }

    /// The rows of an array `[point, dim]`, components x, y, z, in C order. Errors name them `name`.
    ///
    /// Errors: another order; no points, no or more than three components.
    pub fn rows(name: &'static str, rows: ArrayView2<'a, f64>) -> Result<Self> {
        let (count, dims) = rows.dim();
        if count == 0 || !(1..=3).contains(&dims) {
            return Err(Error::Shape {
                what: name.into(),
                expected: "[at least 1, 1 to 3]".into(),
                found: rayspin_core::format_shape(rows.shape()),
            });
        }
        let Some(all) = rows.to_slice() else {
            return Err(Error::value(name, "an array in C order", "another order"));
        };
        let (values, stride) = (Values::Double(all), dims as isize);
        let component = |first| Component { name, values, first, stride, count, unit: 1.0 };
        Ok(Self { components: std::array::from_fn(component), dims })
    }

    /// The components that a GPU holds, copied to the host.
    pub(super) fn copied(&self, host: &Device) -> Result<Vec<Option<Array<f64>>>> {
        self.components().iter().map(|component| component.copied(host)).collect()
    }

    /// The points with [copies](Coordinates::copied) in place of the components that a GPU holds.
    pub(super) fn with_copies(mut self, copies: &'a [Option<Array<f64>>]) -> Self {
        for (component, copy) in self.components.iter_mut().zip(copies) {
            if let Some(copy) = copy {
                (component.values, component.first, component.stride) = (Values::Double(copy.cpu()), 0, 1);
            }
        }
        self
    }

    /// Number of points.
    pub fn samples(&self) -> usize {
        self.components[0].count
    }

    /// Number of components.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The components x, y, z, as many as there are.
    pub(super) fn components(&self) -> &[Component<'a>] {
        &self.components[..self.dims]
    }

    /// The numbers of a trajectory, one point after the other; `None` where components lie otherwise.
    pub(super) fn interleaved(&self) -> Option<&'a [f64]> {
        let Values::Double(numbers) = self.components[0].values else { return None };
        let part = |(d, component): (usize, &Component<'a>)| match component.values {
            Values::Double(values) => {
                std::ptr::eq(values, numbers)
                    && (component.first, component.stride) == (d, self.dims as isize)
            }
            _ => false,
        };
        let whole = numbers.len() == self.samples() * self.dims;
        (whole && self.components().iter().enumerate().all(part)).then_some(numbers)
    }

    /// What is wrong with the first point that has a number that is not finite. Takes points on the host.
    pub(super) fn first_not_finite(&self) -> Error {
        (0..self.samples()).find_map(|point| self.not_finite(point)).unwrap_or_else(numbers_changed)
    }

    /// What is wrong with a point that has a number that is not finite: its first such component.
    pub(super) fn not_finite(&self, point: usize) -> Option<Error> {
        self.components().iter().find_map(|component| match component.number(point) {
            Ok(number) if number.is_finite() => None,
            Ok(number) => {
                let what = component.name.to_owned();
                Some(Error::NotFinite { what, index: point, found: number.to_string() })
            }
            Err(error) => Some(error),
        })
    }
}

/// The error where another thread changes the caller's memory.
pub(super) fn numbers_changed() -> Error {
    Error::value("points", "numbers that stay as they are during a call", "numbers that changed")
}

impl<'a> From<&'a Trajectory> for Coordinates<'a> {
    fn from(trajectory: &'a Trajectory) -> Self {
        let (dims, values) =
            (trajectory.dims(), Values::Double(trajectory.points().to_slice().unwrap_or_default()));
        let (stride, count) = (dims as isize, trajectory.samples());
        let component = |first| Component { name: "trajectory", values, first, stride, count, unit: 1.0 };
        Self { components: std::array::from_fn(component), dims }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rayspin_core::{C32, C64};

    use super::*;
    use crate::cuda::gpus;
    use crate::nufft::tests::{cpu, distance, nan, random};
    use crate::nufft::{Nufft, Options};

    /// Numbers of a component in memory with others: the array, its first element and its stride.
    pub(in crate::nufft) struct Held {
        single: Option<Array<f32>>,
        double: Array<f64>,
        first: usize,
        stride: isize,
    }

    /// Memory of `device` with gaps, which hold numbers that are not finite.
    pub(in crate::nufft) fn held(
        device: &Device,
        numbers: &[f64],
        first: usize,
        stride: isize,
        single: bool,
    ) -> Held {
        let len = first.max(place(first, stride, numbers.len() - 1)) + 2;
        let mut all = vec![f64::NAN; len];
        for (i, &number) in numbers.iter().enumerate() {
            all[place(first, stride, i)] = number;
        }
        let narrow: Vec<f32> = all.iter().map(|&number| number as f32).collect();
        Held {
            single: single.then(|| Array::from_vec(device, &[len], narrow).unwrap()),
            double: Array::from_vec(device, &[len], all).unwrap(),
            first,
            stride,
        }
    }

    impl Held {
        pub(in crate::nufft) fn component(
            &self,
            name: &'static str,
            unit: f64,
            count: usize,
        ) -> Component<'_> {
            let all = match &self.single {
                Some(array) => Component::new(name, array),
                None => Component::new(name, &self.double),
            };
            all.unwrap().strided(self.first, self.stride, count).unwrap().in_unit(unit)
        }
    }

    const NAMES: [&str; 3] = ["x", "y", "z"];
    const UNITS: [f64; 3] = [0.75, -2.0, 1.0];

    #[test]
    fn points_are_read_where_they_lie() {
        let options = Options { tolerance: 1e-6, upsampling: Some(2.0) };
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for device in [&cpu()].into_iter().chain(gpus()) {
            for matrix in [vec![31], vec![14, 18], vec![9, 8, 13]] {
                let dims = matrix.len();
                let mut plan = None;
                for (turn, samples) in [300, 700, 1, 700].into_iter().enumerate() {
                    // Numbers of f32, so that both precisions hold the same.
                    let numbers: Vec<Vec<f64>> = (0..dims)
                        .map(|_| (0..samples).map(|_| f64::from(rng.random_range(-20.0f32..20.0))).collect())
                        .collect();
                    let back = (3 * samples + 1, -3);
                    let strides = [[(0, 1), (2, 5), back], [back, (1, 1), (4, 2)]][turn % 2];
                    let there: Vec<Held> = (0..dims)
                        // Memory of the host serves a GPU too.
                        .map(|d| {
                            let owner = if (turn + d) % 3 == 0 { &device.host() } else { device };
                            let (first, stride) = strides[d];
                            held(owner, &numbers[d], first, stride, (turn + d) % 2 == 0)
                        })
                        .collect();
                    let components: Vec<_> =
                        (0..dims).map(|d| there[d].component(NAMES[d], UNITS[d], samples)).collect();
                    let points = Coordinates::new(&components).unwrap();
                    let trajectory = Trajectory::from_cycles_per_fov(ndarray::Array2::from_shape_fn(
                        (samples, dims),
                        |(j, d)| numbers[d][j] * UNITS[d],
                    ))
                    .unwrap();
                    let plan = match &mut plan {
                        None => plan.insert(Nufft::<f64>::new(device, points, &matrix, &options).unwrap()),
                        Some(plan) => {
                            plan.set_points(points).unwrap();
                            plan
                        }
                    };
                    let expected = Nufft::<f64>::new(device, &trajectory, &matrix, &options).unwrap();
                    let run = |plan: &Nufft<f64>, data: &[C64]| {
                        let data = Array::from_slice(device, &[samples], data).unwrap();
                        let (mut image, mut back) = (nan(device, &matrix), nan(device, &[samples]));
                        plan.adjoint(&data, &mut image).unwrap();
                        plan.forward(&image, &mut back).unwrap();
                        (image.to_vec().unwrap(), back.to_vec().unwrap())
                    };
                    let data = random(samples, &mut rng);
                    let (found, expected) = (run(plan, &data), run(&expected, &data));
                    // The units are multiplied with 1/n first.
                    assert!(distance(&found.0, &expected.0) < 1e-12, "{matrix:?} {samples}");
                    assert!(distance(&found.1, &expected.1) < 1e-12, "{matrix:?} {samples}");
                }
            }
        }
    }

    #[test]
    fn a_number_that_is_not_finite_is_named_and_the_plan_stays() {
        for device in [&cpu()].into_iter().chain(gpus()) {
            for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::from_bits(0x7ff0_0000_dead_beef)] {
                let numbers: Vec<f64> = (0..600).map(|i| f64::from(i % 7) - 3.0).collect();
                let mut faulty = numbers.clone();
                (faulty[599], faulty[411], faulty[412]) = (wrong, wrong, wrong);
                let good = held(device, &numbers, 0, 1, false);
                let bad = held(device, &faulty, 0, 2, wrong.is_infinite());
                let x = good.component("x", 1.0, 600);
                let right = Coordinates::new(&[x, good.component("y", 1.0, 600)]).unwrap();
                let faulty = Coordinates::new(&[x, bad.component("y", 1.0, 600)]).unwrap();
                let options = Options::tolerance(1e-4);
                let mut plan = Nufft::<f32>::new(device, right, &[8, 9], &options).unwrap();
                let errors = [
                    Nufft::<f32>::new(device, faulty, &[8, 9], &options).unwrap_err(),
                    plan.set_points(faulty).unwrap_err(),
                ];
                for error in errors {
                    let Error::NotFinite { what, index, found } = &error else { panic!("{error}") };
                    assert_eq!((&what[..], *index, &found[..]), ("y", 411, &wrong.to_string()[..]));
                }
                let data = Array::from_vec(device, &[600], vec![C32::ONE; 600]).unwrap();
                let image = |plan: &Nufft<f32>| {
                    let mut image = nan(device, &[8, 9]);
                    plan.adjoint(&data, &mut image).unwrap();
                    image.to_vec().unwrap()
                };
                let expected = image(&Nufft::<f32>::new(device, right, &[8, 9], &options).unwrap());
                assert_eq!(image(&plan), expected);
            }
        }
    }

    #[test]
    fn what_cannot_be_points_is_refused() {
        let device = cpu();
        let array = Array::from_vec(&device, &[10], vec![0.5f32; 10]).unwrap();
        let all = Component::new("x", &array).unwrap();
        for (first, stride, count) in [
            (0, 1, 11),
            (10, 1, 1),
            (9, 1, 2),
            (0, -1, 2),
            (8, -3, 4),
            (0, isize::MAX, 3),
            (1, isize::MIN, 3),
        ] {
            let error = all.strided(first, stride, count).unwrap_err().to_string();
            assert!(error.contains("x: expected elements within 10"), "{error}");
        }
        all.strided(9, -3, 4).unwrap();
        all.strided(3, 0, 1000).unwrap();
        let two = all.strided(0, 1, 2).unwrap();
        let three = all.strided(0, 1, 3).unwrap();
        let none = all.strided(0, 1, 0).unwrap();
        for wrong in [&[][..], &[two; 4], &[two, three], &[none]] {
            assert!(Coordinates::new(wrong).is_err(), "{wrong:?}");
        }
        let points = Coordinates::new(&[two, two]).unwrap();
        assert!(Nufft::<f32>::new(&device, points, &[8], &Options::default()).is_err());
        for gpu in gpus() {
            let far = Array::from_vec(gpu, &[10], vec![0.5f32; 10]).unwrap();
            let far = Component::new("x", &far).unwrap();
            let points = Coordinates::new(&[far]).unwrap();
            let error = Nufft::<f32>::new(&device, points, &[8], &Options::default()).unwrap_err();
            assert!(error.to_string().contains("x: expected an array on the CPU"), "{error}");
        }
    }
}
