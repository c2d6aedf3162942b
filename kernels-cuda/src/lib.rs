//! NVIDIA backend.
