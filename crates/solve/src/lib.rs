//! Iterative solvers over linear operators
