//! The contract between devices, operators and whoever runs them.
