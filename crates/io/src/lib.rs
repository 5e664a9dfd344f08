//! Readers and writers for raw scans and images
