//! Where the samples of a sequence lie in k-space.

use std::path::Path;

use ndarray::Array2;
use rayspin_device::cpu::expect_memory;

use super::parse::{Adc, Block, Gradient, MOST, Pulse, Text, Version};
use super::timing::{Excitation, Taken, Times};
use crate::{Error, Result};

/// The largest flip angle, in degrees, of a pulse that excites, where the file does not state its use.
/// Rounding of short pulses is within 0.01.
const EXCITES: f64 = 90.01;
/// The most points of pulses and gradients that are played.
const MOST_PLAYED: u64 = 1 << 31;
/// How far from a raster the times of a gradient may lie, in steps of the raster.
const NEAR: f64 = 1e-6;

/// What the samples of a sequence need of it.
pub(super) struct Timeline<'a> {
    path: &'a Path,
    text: &'a Text,
    gradient_raster: f64,
    rf_raster: f64,
    /// The moment of each axis at the begin of the block, 1/m.
    moments: [f64; 3],
    /// What is added to the moments, so that excitations begin at the centre of k-space.
    offsets: [f64; 3],
    /// The gradients at the end of the block before, Hz/m.
    ends: [f64; 3],
    /// The time at the begin of the block, s.
    clock: f64,
    times: Times,
}

/// A gradient's waveform within its block: times in s, Hz/m.
type Waveform = Vec<[f64; 2]>;

/// An event of a block.
#[derive(Clone, Copy)]
enum Event {
    Excitation,
    Refocusing,
    Sample,
}

impl<'a> Timeline<'a> {
    pub(super) fn new(path: &'a Path, text: &'a Text) -> Self {
        Self {
            path,
            text,
            gradient_raster: text.raster("GradientRasterTime", 1e-5),
            rf_raster: text.raster("RadiofrequencyRasterTime", 1e-6),
            moments: [0.0; 3],
            offsets: [0.0; 3],
            ends: [0.0; 3],
            clock: 0.0,
            times: Times::default(),
        }
    }

    /// The places of the samples of each readout, `[sample, axis]` in 1/m, and when things happen.
    pub(super) fn readouts(mut self) -> Result<(Vec<Array2<f64>>, Times)> {
        self.expect_bounds()?;
        let mut readouts = Vec::new();
        for (number, block) in self.text.blocks.iter().enumerate() {
            let adc = self.event("ADC", number, block.adc, &self.text.adcs)?.copied();
            readouts.extend(self.block(number, block, adc)?);
        }
        Ok((readouts, self.times))
    }

    /// Errors: more samples than memory has room for, or more points of shapes than real sequences play.
    fn expect_bounds(&self) -> Result<()> {
        let Text { blocks, adcs, pulses, gradients, shapes, .. } = self.text;
        let of_adc = |block: &Block| adcs.get(&block.adc).map_or(0, |adc| adc.samples);
        let total = blocks.iter().map(of_adc).fold(0, usize::saturating_add);
        if total > MOST {
            return Err(self.error(format!("at most {MOST} samples"), total));
        }
        let longest = blocks.iter().map(of_adc).max().unwrap_or(0);
        let bytes = 3 * size_of::<f64>() * (total + longest) + size_of::<(f64, Event)>() * longest;
        expect_memory("places of samples", bytes as u64).map_err(|error| Error::core(self.path, error))?;
        let points = |id: usize| shapes.get(&id).map_or(0, |shape| shape.samples as u64);
        let of_gradient = |id: &usize| match gradients.get(id) {
            Some(Gradient::Shaped { shape, times, .. }) => {
                points(*shape) + usize::try_from(*times).map_or(0, points)
            }
            _ => 0,
        };
        let of_block = |block: &Block| {
            let pulse = pulses.get(&block.rf);
            let pulse = pulse.map_or(0, |own| points(own.magnitude) + points(own.phase) + points(own.times));
            pulse + block.gradients.iter().map(of_gradient).sum::<u64>()
        };
        let played = blocks.iter().map(of_block).fold(0, u64::saturating_add);
        if played > MOST_PLAYED {
            return Err(self.error(format!("at most {MOST_PLAYED} points of shapes that are played"), played));
        }
        Ok(())
    }

    fn error(&self, expected: impl ToString, found: impl ToString) -> Error {
        Error::field(self.path, "sequence", expected, found)
    }

    /// The event of a number; none of number 0.
    fn event<T>(
        &self,
        what: &str,
        block: usize,
        id: usize,
        events: &'a std::collections::BTreeMap<usize, T>,
    ) -> Result<Option<&'a T>> {
        if id == 0 {
            return Ok(None);
        }
        let missing = || self.error(format!("the {what} {id} of block {}", block + 1), "no such event");
        events.get(&id).map(Some).ok_or_else(missing)
    }

    fn block(&mut self, number: usize, block: &Block, adc: Option<Adc>) -> Result<Option<Array2<f64>>> {
        let mut waves: [Waveform; 3] = Default::default();
        for (axis, wave) in waves.iter_mut().enumerate() {
            let gradient = self.event("gradient", number, block.gradients[axis], &self.text.gradients)?;
            if let Some(gradient) = gradient {
                *wave = self.waveform(number, axis, gradient)?;
            }
        }
        let pulse = self.event("RF pulse", number, block.rf, &self.text.pulses)?;
        let pulse = pulse.map(|pulse| self.played(number, pulse)).transpose()?;
        let duration = match self.text.version >= Version::TIMED {
            true => block.duration,
            false => {
                let id = block.duration as usize;
                let delay = self.event("delay", number, id, &self.text.delays)?.copied().unwrap_or(0.0);
                let of_wave = |wave: &Waveform| wave.last().map_or(0.0, |end| end[0]);
                let gradients = waves.iter().map(of_wave).fold(delay, f64::max);
                let of_adc = adc.map_or(0.0, |adc| adc.delay + adc.samples as f64 * adc.dwell);
                gradients.max(of_adc).max(pulse.as_ref().map_or(0.0, |pulse| pulse.end))
            }
        };

        let mut events: Vec<(f64, Event)> = Vec::new();
        if let Some(pulse) = &pulse {
            events.extend(pulse.event.map(|event| (pulse.centre, event)));
        }
        if let Some(adc) = adc {
            let sample = |index| (adc.delay + (index as f64 + 0.5) * adc.dwell, Event::Sample);
            events.extend((0..adc.samples).map(sample));
        }
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut places = Vec::with_capacity(3 * adc.map_or(0, |adc| adc.samples));
        let mut areas = waves.each_ref().map(Area::new);
        for (time, event) in events {
            if let (Event::Excitation, Some(pulse)) = (event, &pulse) {
                let time = self.clock + time;
                let Played { degrees, offset_hz, .. } = *pulse;
                self.times.excitations.push(Excitation { time, degrees, offset_hz });
            }
            if let (Event::Sample, true, Some(adc)) = (event, places.is_empty(), adc) {
                let excitation = self.times.excitations.len().checked_sub(1);
                self.times.taken.push(Taken { excitation, first: self.clock + time, dwell: adc.dwell });
            }
            let begin = self.moments;
            let moments: [f64; 3] = std::array::from_fn(|axis| begin[axis] + areas[axis].until(time));
            for (axis, moment) in moments.into_iter().enumerate() {
                match event {
                    Event::Excitation => self.offsets[axis] = -moment,
                    Event::Refocusing => self.offsets[axis] = -2.0 * moment - self.offsets[axis],
                    Event::Sample => places.push(moment + self.offsets[axis]),
                }
            }
        }
        for (axis, wave) in waves.iter().enumerate() {
            self.moments[axis] += areas[axis].until(f64::INFINITY);
            // A gradient that ends before its block has come down to 0.
            let end = wave.last().filter(|end| end[0] + 1e-9 >= duration);
            self.ends[axis] = end.map_or(0.0, |end| end[1]);
        }
        self.clock += duration;
        let Some(adc) = adc else { return Ok(None) };
        Array2::from_shape_vec((adc.samples, 3), places)
            .map(Some)
            .map_err(|_| self.error("three numbers a sample", adc.samples))
    }

    fn unpacked(&self, what: &str, id: usize) -> Result<Vec<f64>> {
        let shape = self.text.shapes.get(&id);
        let shape = shape.ok_or_else(|| self.error(format!("the shape {id} of {what}"), "no such shape"))?;
        let expected = || self.error(format!("{} samples of shape {id}", shape.samples), "other numbers");
        shape.unpacked(self.text.version).filter(|samples| !samples.is_empty()).ok_or_else(expected)
    }

    fn waveform(&self, number: usize, axis: usize, gradient: &Gradient) -> Result<Waveform> {
        match *gradient {
            Gradient::Trapezoid { amplitude, rise, flat, fall, delay } => {
                let [top, down] = [delay + rise, delay + rise + flat];
                Ok(vec![[delay, 0.0], [top, amplitude], [down, amplitude], [down + fall, 0.0]])
            }
            Gradient::Shaped { amplitude, ends, shape, times, delay } => {
                let what = format!("a gradient of block {}", number + 1);
                let values = self.unpacked(&what, shape)?;
                let values: Vec<f64> = values.into_iter().map(|value| value * amplitude).collect();
                let raster = self.gradient_raster;
                let even = |step: f64, first: f64| {
                    (0..values.len()).map(move |index| (index as f64 * step + first) * raster)
                };
                let own: Vec<f64> = match usize::try_from(times) {
                    Ok(0) => even(1.0, 0.5).collect(),
                    // Twice as many samples, on the raster and between.
                    Err(_) => even(0.5, 0.5).collect(),
                    Ok(id) => self.unpacked(&what, id)?.into_iter().map(|time| time * raster).collect(),
                };
                if own.len() != values.len() || own.windows(2).any(|two| two[1] < two[0]) {
                    let expected = format!("{} rising times of {what}", values.len());
                    return Err(self.error(expected, format!("{} times", own.len())));
                }
                // On the raster's middles, and not where the file states times of their own.
                let middle = |(index, time): (usize, &f64)| (time / raster - 0.5 - index as f64).abs() < NEAR;
                let on_middles = own.iter().enumerate().all(middle);
                let mut wave: Waveform =
                    own.iter().zip(&values).map(|(time, value)| [delay + time, *value]).collect();
                if on_middles || times < 0 {
                    let count = values.len();
                    let first = match ends {
                        Some([first, _]) => first,
                        None if delay > 0.0 => 0.0,
                        None => self.ends[axis],
                    };
                    let last = match ends {
                        Some([_, last]) => last,
                        None if count > 1 => (3.0 * values[count - 1] - values[count - 2]) / 2.0,
                        None => values[count - 1],
                    };
                    wave.insert(0, [delay, first]);
                    let end = own[count - 1] + raster / 2.0;
                    wave.push([delay + end, last]);
                }
                Ok(wave)
            }
        }
    }

    /// The flip angle of a pulse in degrees, on resonance: 360 |∫ B(t) dt|, B in Hz.
    fn flip_angle(&self, pulse: &Pulse, times: &[f64], magnitude: &[f64]) -> f64 {
        let phase = self.unpacked("a pulse", pulse.phase).unwrap_or_default();
        let value = |index: usize| {
            let turn = std::f64::consts::TAU * phase.get(index).copied().unwrap_or(0.0);
            let magnitude = magnitude.get(index).copied().unwrap_or(0.0);
            [magnitude * turn.cos(), magnitude * turn.sin()]
        };
        // Samples on the raster stand for their middles; others are joined by lines.
        let width = |index: usize| match pulse.times {
            0 => self.rf_raster,
            _ => {
                let before = times[index.saturating_sub(1)];
                let behind = times[(index + 1).min(times.len() - 1)];
                (behind - before) / 2.0
            }
        };
        let [re, im] = (0..times.len()).fold([0.0, 0.0], |[re, im], index| {
            let (width, [own_re, own_im]) = (width(index), value(index));
            [re + own_re * width, im + own_im * width]
        });
        (pulse.amplitude * re.hypot(im)).abs() * 360.0
    }

    /// When a pulse acts in its block, and how.
    fn played(&self, number: usize, pulse: &Pulse) -> Result<Played> {
        let what = format!("the RF pulse of block {}", number + 1);
        let magnitude = self.unpacked(&what, pulse.magnitude)?;
        let raster = self.rf_raster;
        let times: Vec<f64> = match pulse.times {
            0 => (0..magnitude.len()).map(|index| (index as f64 + 0.5) * raster).collect(),
            id => self.unpacked(&what, id)?.into_iter().map(|time| time * raster).collect(),
        };
        if times.len() != magnitude.len() {
            return Err(self.error(format!("{} times of {what}", magnitude.len()), times.len()));
        }
        let last = times.last().copied().unwrap_or(0.0);
        let length = if pulse.times == 0 { magnitude.len() as f64 * raster } else { last };
        let most = magnitude.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let peak = |value: &f64| value.abs() >= 0.99999 * most;
        let first = magnitude.iter().position(peak).unwrap_or(0);
        let last = magnitude.iter().rposition(peak).unwrap_or(0);
        let centre = pulse.centre.unwrap_or((times[first] + times[last]) / 2.0);
        let purpose = match pulse.purpose {
            Some(stated) => stated,
            None => {
                let phase = self.unpacked(&what, pulse.phase)?;
                let steps = times.windows(2).map(|two| two[1] - two[0]);
                let (mut re, mut im) = (0.0, 0.0);
                for ((step, magnitude), phase) in steps.zip(&magnitude).zip(&phase) {
                    let (sin, cos) = (std::f64::consts::TAU * phase).sin_cos();
                    (re, im) = (re + magnitude * cos * step, im + magnitude * sin * step);
                }
                let degrees = (pulse.amplitude * re.hypot(im)).abs() * 360.0;
                if degrees < EXCITES { 'e' } else { 'r' }
            }
        };
        let event = match purpose {
            'e' => Some(Event::Excitation),
            'r' => Some(Event::Refocusing),
            // Inversion, saturation and preparation come before an excitation.
            _ => None,
        };
        let degrees = match event {
            Some(Event::Excitation) => self.flip_angle(pulse, &times, &magnitude),
            _ => 0.0,
        };
        let (centre, end) = (pulse.delay + centre, pulse.delay + length);
        Ok(Played { centre, end, event, degrees, offset_hz: pulse.offset_hz })
    }
}

/// A pulse in its block.
struct Played {
    centre: f64,
    end: f64,
    event: Option<Event>,
    /// The flip angle of an excitation.
    degrees: f64,
    offset_hz: f64,
}

/// The area under a waveform, piecewise linear, up to times that rise.
struct Area<'a> {
    wave: &'a Waveform,
    /// Pieces before the time, and their area.
    pieces: usize,
    sum: f64,
}

impl<'a> Area<'a> {
    fn new(wave: &'a Waveform) -> Self {
        Self { wave, pieces: 0, sum: 0.0 }
    }

    fn until(&mut self, time: f64) -> f64 {
        while let [Some(&[t0, g0]), Some(&[t1, g1])] =
            [self.pieces, self.pieces + 1].map(|index| self.wave.get(index))
        {
            if time < t1 {
                if time <= t0 {
                    break;
                }
                let part = (time - t0) / (t1 - t0);
                let here = g0 + part * (g1 - g0);
                return self.sum + (g0 + here) / 2.0 * (time - t0);
            }
            self.sum += (g0 + g1) / 2.0 * (t1 - t0);
            self.pieces += 1;
        }
        self.sum
    }
}
