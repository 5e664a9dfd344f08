//! The rays of a tile of pixels that walk together.

use super::packets::RAYS;
use crate::render::ray::Ray;

/// Rays of a tile with one main axis and way. Those behind the last one repeat it, to fill a vector.
pub(super) struct Group {
    pub(super) main: usize,
    pub(super) ascending: bool,
    pub(super) count: usize,
    pub(super) pixel: [u16; RAYS],
    pub(super) b: [f32; RAYS],
    pub(super) db: [f32; RAYS],
    pub(super) c: [f32; RAYS],
    pub(super) dc: [f32; RAYS],
    pub(super) low: [f32; RAYS],
    pub(super) high: [f32; RAYS],
    pub(super) step: [f32; RAYS],
    /// Four numbers that a [`Shade`] keeps of each ray.
    pub(super) state: [[f32; RAYS]; 4],
    /// Cells that some ray is in, and cells that all rays are in.
    pub(super) some: [f32; 2],
    pub(super) common: [f32; 2],
}

impl Group {
    pub(super) fn new(main: usize, ascending: bool) -> Self {
        let none = [0.0; RAYS];
        Self {
            main,
            ascending,
            count: 0,
            pixel: [0; RAYS],
            b: none,
            db: none,
            c: none,
            dc: none,
            low: none,
            high: none,
            step: none,
            state: [none; 4],
            some: [f32::INFINITY, f32::NEG_INFINITY],
            common: [f32::NEG_INFINITY, f32::INFINITY],
        }
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.some = [f32::INFINITY, f32::NEG_INFINITY];
        self.common = [f32::NEG_INFINITY, f32::INFINITY];
    }

    pub(super) fn push(&mut self, pixel: usize, ray: &Ray, state: [f32; 4]) {
        let index = self.count;
        self.pixel[index] = pixel as u16;
        self.write(index, ray, state);
        let (low, high) = (self.low[index], self.high[index]);
        self.some = [self.some[0].min(low), self.some[1].max(high)];
        self.common = [self.common[0].max(low), self.common[1].min(high)];
        self.count += 1;
    }

    fn write(&mut self, index: usize, ray: &Ray, state: [f32; 4]) {
        self.b[index] = ray.b as f32;
        self.db[index] = ray.db as f32;
        self.c[index] = ray.c as f32;
        self.dc[index] = ray.dc as f32;
        self.low[index] = ray.low as f32;
        self.high[index] = ray.high as f32;
        self.step[index] = ray.step as f32;
        for (to, value) in self.state.iter_mut().zip(state) {
            to[index] = value;
        }
    }

    /// Fills the last vector.
    pub(super) fn fill(&mut self, lanes: usize) {
        let Some(last) = self.count.checked_sub(1) else { return };
        let end = self.count.next_multiple_of(lanes);
        for numbers in [
            &mut self.b,
            &mut self.db,
            &mut self.c,
            &mut self.dc,
            &mut self.low,
            &mut self.high,
            &mut self.step,
        ] {
            let value = numbers[last];
            numbers[self.count..end].fill(value);
        }
        for numbers in &mut self.state {
            let value = numbers[last];
            numbers[self.count..end].fill(value);
        }
    }
}
