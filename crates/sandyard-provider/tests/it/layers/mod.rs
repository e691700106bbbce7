//! Each layer alone, and all of them together.

mod breaker;
mod breaker_one;
mod chaos;
mod limit;
mod retry;
mod stack;
mod timeout;
