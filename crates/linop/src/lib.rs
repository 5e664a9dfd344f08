//! Linear operators over device arrays, and the laws they obey
