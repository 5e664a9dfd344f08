//! Run records and self-contained HTML pages
