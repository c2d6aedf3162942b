//! Kernel rows of the `norm` operators.

mod rms;
