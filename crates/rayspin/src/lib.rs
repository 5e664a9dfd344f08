//! Rayspin: raw MRI and CT scans into images
