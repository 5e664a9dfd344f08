//! Kernel launches. Arguments are checked against the kernel's declaration.

use std::any::TypeId;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use num_complex::Complex;
use rayspin_core::{Error, Result};

use super::Memory;
use super::driver::{Function, Launch, Properties, Resources};
use super::program::Parameter;
use crate::Element;

/// Elements in device memory that a kernel reads.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, T> {
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) home: Home,
    pub(super) life: PhantomData<&'a [T]>,
}

/// Elements in device memory that a kernel writes.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) home: Home,
    pub(super) life: PhantomData<&'a mut [T]>,
}

/// Identifies the device that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Home(usize);

impl Home {
    pub(super) fn of(memory: &Arc<Memory>) -> Self {
        Self(Arc::as_ptr(memory).addr())
    }

    /// Errors: `view` belongs to another device.
    pub(super) fn expect(self, what: &str, view: Self) -> Result<()> {
        if self == view {
            Ok(())
        } else {
            Err(Error::value(what, "memory of its own GPU", "another device's"))
        }
    }
}

impl<'a, T: Element> View<'a, T> {
    /// The address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same memory as words of 32 bits; `None` for elements that are no whole number of words.
    pub fn words(&self) -> Option<View<'a, u32>> {
        let whole = size_of::<T>().is_multiple_of(4) && align_of::<T>().is_multiple_of(4);
        whole.then(|| View {
            address: self.address,
            len: self.len * (size_of::<T>() / 4),
            home: self.home,
            life: PhantomData,
        })
    }

    /// `len` elements from `from` on, or `None` when they are not all there.
    pub fn part(&self, from: usize, len: usize) -> Option<View<'a, T>> {
        (from.checked_add(len)? <= self.len).then_some(View {
            address: self.address + (from * size_of::<T>()) as u64,
            len,
            ..*self
        })
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// No elements.
    pub(crate) fn none() -> Self {
        ViewMut { address: 0, len: 0, home: Home(0), life: PhantomData }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `len` elements from `from` on, or `None` when they are not all there.
    pub fn part(&mut self, from: usize, len: usize) -> Option<ViewMut<'_, T>> {
        (from.checked_add(len)? <= self.len).then_some(ViewMut {
            address: self.address + (from * size_of::<T>()) as u64,
            len,
            home: self.home,
            life: PhantomData,
        })
    }

    /// The same elements, for another kernel.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { address: self.address, len: self.len, home: self.home, life: PhantomData }
    }

    /// The same elements, for a kernel that reads them.
    pub fn view(&self) -> View<'_, T> {
        View { address: self.address, len: self.len, home: self.home, life: PhantomData }
    }
}

/// A value given to a kernel, with the C type that its parameter must have.
#[derive(Debug, Clone, Copy)]
pub struct Argument<'a> {
    /// Holds any scalar or an address.
    bits: [u64; 2],
    element: &'static str,
    pointer: bool,
    writes: bool,
    /// The device of an address or of a texture.
    home: Option<Home>,
    /// Bytes behind an address.
    bytes: u64,
    life: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    pub(super) fn scalar<T: bytemuck::Pod>(value: T, element: &'static str) -> Self {
        let mut bits = [0u64; 2];
        bytemuck::bytes_of_mut(&mut bits)[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        Self { bits, element, pointer: false, writes: false, home: None, bytes: 0, life: PhantomData }
    }

    pub(super) fn texture(handle: u64, home: Home) -> Self {
        Self { home: Some(home), ..Self::scalar(handle, "cudaTextureObject_t") }
    }

    /// A real number in the program's own precision.
    pub fn real<R: rayspin_core::Real>(value: R) -> Self {
        Self::scalar(value, c_name::<R>())
    }

    /// A complex number in the program's own precision.
    pub fn complex<R: rayspin_core::Real>(value: Complex<R>) -> Self {
        Self::scalar(value, c_name::<Complex<R>>())
    }

    /// The value of a scalar of an integer type.
    pub fn whole(&self) -> Option<i64> {
        let bits = self.bits[0];
        match self.element {
            _ if self.pointer => None,
            "int" => Some(i64::from(bits as u32 as i32)),
            "unsigned int" => Some(i64::from(bits as u32)),
            "long long" => Some(bits as i64),
            "unsigned long long" => i64::try_from(bits).ok(),
            _ => None,
        }
    }

    /// A whole number as a scalar of this C type; `None` where the type does not hold it.
    pub fn whole_as(value: i64, element: &str) -> Option<Self> {
        match element {
            "int" => i32::try_from(value).ok().map(Self::from),
            "unsigned int" => u32::try_from(value).ok().map(Self::from),
            "long long" => Some(Self::from(value)),
            "unsigned long long" => u64::try_from(value).ok().map(Self::from),
            "float" => Some(Self::from(value as f32)),
            "double" => Some(Self::from(value as f64)),
            _ => None,
        }
    }

    /// The same memory as an array of elements of another C type.
    pub fn of_elements(self, element: &'static str) -> Self {
        Self { element, ..self }
    }

    /// The address and the bytes of an array of this device.
    pub(super) fn memory(&self, what: &str, home: Home) -> Result<(u64, u64)> {
        match self.home.filter(|_| self.pointer) {
            Some(own) => home.expect(what, own).map(|()| (self.bits[0], self.bytes)),
            None => Err(Error::value(what, "an array", self)),
        }
    }

    /// A count or an index as `unsigned`. Errors: more than 32 bits.
    pub fn count(value: usize) -> Result<Self> {
        u32::try_from(value)
            .map(Self::from)
            .map_err(|_| Error::value("kernel argument", "a count of at most 32 bits", value))
    }
}

impl<'a, T: Element> From<View<'a, T>> for Argument<'a> {
    fn from(view: View<'a, T>) -> Self {
        let (home, bytes) = (Some(view.home), (view.len * size_of::<T>()) as u64);
        Self { pointer: true, home, bytes, ..Self::scalar(view.address, c_name::<T>()) }
    }
}

impl<'a, T: Element> From<ViewMut<'a, T>> for Argument<'a> {
    fn from(view: ViewMut<'a, T>) -> Self {
        let (home, bytes) = (Some(view.home), (view.len * size_of::<T>()) as u64);
        Self { pointer: true, writes: true, home, bytes, ..Self::scalar(view.address, c_name::<T>()) }
    }
}

macro_rules! scalars {
    ($($rust:ty => $c:literal),*) => {
        $(impl From<$rust> for Argument<'_> {
            fn from(value: $rust) -> Self {
                Self::scalar(value, $c)
            }
        })*
        /// The C type of `T`, or `""` if it has no C type. No kernel parameter matches `""`.
        fn c_name<T: 'static>() -> &'static str {
            let id = TypeId::of::<T>();
            $(if id == TypeId::of::<$rust>() {
                return $c;
            })*
            if id == TypeId::of::<u8>() { "unsigned char" }
            else if id == TypeId::of::<u16>() { "unsigned short" }
            else if id == TypeId::of::<i16>() { "short" }
            else if id == TypeId::of::<[i16; 2]>() { "short2" }
            else if id == TypeId::of::<[f32; 2]>() { "float2" }
            else if id == TypeId::of::<[f64; 2]>() { "double2" }
            else if id == TypeId::of::<[u32; 2]>() { "uint2" }
            else if id == TypeId::of::<[i32; 4]>() { "int4" }
            else { "" }
        }
    };
}
scalars!(
    i32 => "int", u32 => "unsigned int", i64 => "long long", u64 => "unsigned long long",
    f32 => "float", f64 => "double", [u32; 4] => "uint4", [f32; 4] => "float4", Complex<f32> => "float2", Complex<f64> => "double2"
);

/// A compiled kernel on one device.
#[derive(Clone)]
pub struct Kernel {
    pub(super) name: Arc<str>,
    pub(super) function: Arc<dyn Function>,
    pub(super) parameters: Arc<Vec<Parameter>>,
    pub(super) limits: Arc<Properties>,
    /// Whether to wait after each launch, so that an error names its kernel.
    pub(super) wait: Option<Arc<dyn super::Driver>>,
    pub(super) program: Arc<super::Program>,
    pub(super) trace: Arc<super::Trace>,
    pub(super) memory: Arc<Memory>,
}

impl Kernel {
    /// The kernel's use of a multiprocessor's resources.
    pub fn resources(&self) -> Resources {
        self.function.resources()
    }

    /// Its parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Number of blocks that one multiprocessor holds at once, for blocks of `threads` threads with `shared`
    /// bytes of shared memory.
    pub fn occupancy(&self, threads: u32, shared: u32) -> Result<u32> {
        self.function.occupancy(threads, shared)
    }

    /// The most blocks of a launch that may wait for each other: all that the multiprocessors hold at once.
    /// On a device that runs blocks one after another, such as the emulated GPU, 1.
    ///
    /// It counts on an idle device: work of the same device comes in order, and blocks of other programs end.
    pub fn blocks_that_meet(&self, threads: u32, shared: u32) -> Result<u32> {
        if !self.function.blocks_meet() {
            return Ok(1);
        }
        Ok(self.occupancy(threads, shared)?.saturating_mul(self.limits.multiprocessors))
    }

    /// Queues the kernel. Errors: arguments whose types differ from the kernel's declaration or that belong
    /// to another device; a launch beyond a limit of the device (the error names the limit); an error of the
    /// device.
    ///
    /// Views are borrowed until the call returns. The device works in order, so later work sees the values
    /// that this kernel writes.
    ///
    /// # Safety
    /// No check here can know how the kernel uses its arguments, so the caller answers for its source. Given
    /// the arguments, blocks, threads and bytes of shared memory of this launch, the kernel reads and writes
    /// only the elements of its views, its shared memory and its own variables, and it terminates. This holds
    /// for any values in memory that safe code may have left there.
    #[allow(unsafe_code)]
    pub unsafe fn launch(&self, launch: Launch, arguments: &mut [Argument<'_>]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.queue(launch, arguments, false) }
    }

    /// [`Kernel::launch`] as a programmatic dependent launch: on devices that support it, the kernel may
    /// start while the previous launch ends.
    ///
    /// # Safety
    /// As for [`Kernel::launch`]. If the kernel is compiled for compute capability 9.0 or newer, all its
    /// threads execute `griddepcontrol.wait` before they touch memory.
    #[allow(unsafe_code)]
    pub unsafe fn launch_early(&self, launch: Launch, arguments: &mut [Argument<'_>]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.queue(launch, arguments, true) }
    }

    /// # Safety
    /// As for [`Kernel::launch`], or with `early`, as for [`Kernel::launch_early`].
    #[allow(unsafe_code)]
    unsafe fn queue(&self, launch: Launch, arguments: &mut [Argument<'_>], early: bool) -> Result<()> {
        self.check_arguments(arguments)?;
        self.check_launch(launch)?;
        if launch.blocks.contains(&0) {
            return Ok(());
        }
        let mut pointers: Vec<*mut c_void> =
            arguments.iter_mut().map(|a| a.bits.as_mut_ptr().cast::<c_void>()).collect();
        let pass = self.memory.gate.pass();
        // SAFETY: the number and types of the arguments match the kernel's declaration. The caller promises
        // that the kernel stays inside its arrays, and that a kernel that starts early waits.
        let queued = match early {
            false => unsafe { self.function.launch(launch, &mut pointers) },
            true => unsafe { self.function.launch_early(launch, &mut pointers) },
        };
        queued.map_err(|e| self.named(launch, e.to_string()))?;
        drop(pass);
        self.trace.add(self, launch);
        match &self.wait {
            Some(driver) => driver.synchronize().map_err(|e| self.named(launch, e.to_string())),
            None => Ok(()),
        }
    }

    fn named(&self, launch: Launch, detail: String) -> Error {
        let [x, y, z] = launch.blocks;
        let [a, b, c] = launch.threads;
        let detail = format!("{detail} ({})", self.report(launch));
        Error::Device {
            what: format!("kernel {} of {x}×{y}×{z} blocks of {a}×{b}×{c} threads", self.name),
            detail,
        }
    }

    /// The resources of a block, and how many blocks a multiprocessor holds.
    fn report(&self, launch: Launch) -> String {
        let Resources { registers, shared, local, threads: compiled } = self.resources();
        let threads = launch.threads.iter().try_fold(1u32, |n, &t| n.checked_mul(t)).unwrap_or(u32::MAX);
        let most = self.limits.threads_per_multiprocessor;
        let fits = (1..=compiled.min(self.limits.threads_per_block)).contains(&threads);
        let held = fits.then(|| self.occupancy(threads, launch.shared).ok()).flatten().map(|held| {
            let share = (100 * u64::from(held) * u64::from(threads)) / u64::from(most.max(1));
            format!(", and holds {held} such blocks, {share}% of its threads")
        });
        format!(
            "a thread takes {registers} registers and {local} bytes of local memory, a block of at most {compiled} threads \
             {shared} bytes of shared memory of its own and {} asked for; a multiprocessor has {} registers, {} bytes of \
             shared memory and room for {most} threads{}",
            launch.shared,
            self.limits.registers_per_multiprocessor,
            self.limits.shared_per_multiprocessor,
            held.unwrap_or_default()
        )
    }

    fn check_arguments(&self, arguments: &[Argument<'_>]) -> Result<()> {
        let what = |i: usize| format!("kernel {}: argument {}", self.name, i + 1);
        if arguments.len() != self.parameters.len() {
            return Err(Error::value(
                format!("kernel {}", self.name),
                format!("{} arguments", self.parameters.len()),
                arguments.len(),
            ));
        }
        let home = Home::of(&self.memory);
        for (i, (parameter, argument)) in self.parameters.iter().zip(arguments).enumerate() {
            let fits = parameter.element == argument.element
                && parameter.pointer == argument.pointer
                && (!parameter.writes || argument.writes);
            if !fits {
                return Err(Error::value(what(i), parameter.to_string(), argument.to_string()));
            }
            if let Some(view) = argument.home.filter(|&view| view != home) {
                home.expect(&what(i), view)?;
            }
        }
        Ok(())
    }

    fn check_launch(&self, launch: Launch) -> Result<()> {
        let resources = self.resources();
        let threads = launch.threads.iter().try_fold(1u32, |n, &t| n.checked_mul(t)).unwrap_or(u32::MAX);
        let allowed = resources.threads.min(self.limits.threads_per_block);
        let beyond = |limit: &str, most: u64, asked: u64| {
            self.named(launch, format!("{limit}: at most {most} here, {asked} asked for"))
        };
        let registers = u64::from(resources.registers) * u64::from(threads);
        if (1..=allowed).contains(&threads) && registers > self.limits.registers_per_multiprocessor.into() {
            let most = self.limits.registers_per_multiprocessor;
            return Err(beyond("registers of a block", most.into(), registers));
        }
        if threads == 0 || threads > allowed {
            return Err(beyond("threads of a block", allowed.into(), threads.into()));
        }
        if launch.threads[2] > 64 {
            return Err(beyond("threads of a block along z", 64, launch.threads[2].into()));
        }
        let shared = u64::from(launch.shared) + u64::from(resources.shared);
        if shared > u64::from(self.limits.shared_per_block) {
            return Err(beyond("bytes of shared memory", self.limits.shared_per_block.into(), shared));
        }
        for (axis, most) in [(0, i32::MAX as u32), (1, 65535), (2, 65535)] {
            if launch.blocks[axis] > most {
                return Err(beyond("blocks along an axis", most.into(), launch.blocks[axis].into()));
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let constant = if self.pointer && !self.writes { "const " } else { "" };
        write!(f, "{constant}{}{} {}", self.element, if self.pointer { "*" } else { "" }, self.name)
    }
}

impl std::fmt::Display for Argument<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let constant = if self.pointer && !self.writes { "const " } else { "" };
        let element = if self.element.is_empty() { "a type without a C name" } else { self.element };
        write!(f, "{constant}{element}{}", if self.pointer { "*" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake(Resources);

    impl Function for Fake {
        fn resources(&self) -> Resources {
            self.0
        }
        fn occupancy(&self, threads: u32, _shared: u32) -> Result<u32> {
            Ok(65_536 / (self.0.registers * threads))
        }
        #[allow(unsafe_code)]
        unsafe fn launch(&self, _launch: Launch, _arguments: &mut [*mut c_void]) -> Result<()> {
            Err(Error::value("launch", "luck", "none"))
        }
    }

    #[test]
    fn a_refused_or_failing_launch_says_what_blocks_take_and_what_there_is() {
        let kernel = Kernel {
            name: "test::kernel".into(),
            function: Arc::new(Fake(Resources { registers: 100, shared: 2048, local: 16, threads: 1024 })),
            parameters: Arc::default(),
            program: Arc::new(crate::cuda::Program {
                name: "test",
                text: String::new(),
                defines: Vec::new(),
            }),
            trace: Arc::default(),
            limits: Arc::new(Properties {
                name: String::new(),
                capability: (9, 0),
                multiprocessors: 1,
                memory: 0,
                cache: 0,
                threads_per_block: 1024,
                threads_per_multiprocessor: 2048,
                shared_per_block: 200_000,
                shared_per_multiprocessor: 230_000,
                registers_per_multiprocessor: 65_536,
                driver: (13, 0),
            }),
            wait: None,
            memory: Arc::default(),
        };
        let says = |launch: Launch, words: &[&str]| {
            // SAFETY: it takes nothing and does nothing.
            #[allow(unsafe_code)]
            let text = unsafe { kernel.launch(launch, &mut []) }.unwrap_err().to_string();
            for word in words {
                assert!(text.contains(word), "{word}: {text}");
            }
        };
        let launch = |blocks: [u32; 3], threads: [u32; 3], shared| Launch { blocks, threads, shared };
        says(
            launch([7, 1, 1], [32, 32, 1], 5),
            &[
                "test::kernel of 7×1×1 blocks of 32×32×1 threads",
                "registers of a block: at most 65536 here, 102400",
            ],
        );
        says(launch([7, 1, 1], [32, 33, 1], 5), &["threads of a block: at most 1024 here, 1056 asked for"]);
        says(
            launch([7, 2, 1], [256, 1, 1], 199_000),
            &[
                "bytes of shared memory: at most 200000 here, 201048",
                "2048 bytes of shared memory of its own and 199000",
            ],
        );
        says(launch([1, 1, 65_536], [1; 3], 0), &["blocks along an axis: at most 65535 here, 65536"]);
        says(
            launch([7, 1, 1], [256, 1, 1], 0),
            &[
                "luck",
                "100 registers and 16 bytes of local memory",
                "holds 2 such blocks, 25% of its threads",
            ],
        );
    }
}
