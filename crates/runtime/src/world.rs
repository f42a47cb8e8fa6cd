//! The sources of chance: clocks, random bytes, process id. Everything else in this library is a function of its input.
#![expect(clippy::disallowed_methods, reason = "this is the clock")]

use std::{
    future::Future,
    pin::Pin,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tracegate_core::ids::Timestamp;

/// A stretch of time to come.
pub type Sleeping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time and chance.
pub trait World: Send + std::fmt::Debug {
    /// Returns the wall clock, which may step.
    fn wall(&self) -> Timestamp;

    /// Returns nanoseconds of a clock that never goes back.
    fn monotonic_ns(&self) -> u64;

    /// Returns 32 random bytes.
    fn random(&self) -> [u8; 32];

    /// Returns the process id.
    fn pid(&self) -> u32;

    /// Completes once `ms` milliseconds have passed.
    fn sleep(&self, ms: u64) -> Sleeping;
}

/// The machine's clocks and random bytes.
#[derive(Debug, Clone, Copy)]
pub struct RealWorld {
    began: Instant,
}

impl Default for RealWorld {
    fn default() -> Self {
        Self {
            began: Instant::now(),
        }
    }
}

impl World for RealWorld {
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn random(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        // With a buffer of 32 bytes the kernel fills all of it or nothing; without it, time and pid still make ids differ.
        if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).is_err() {
            let seed = self.wall().0 ^ (u64::from(self.pid()) << 32);
            for (byte, from) in bytes.iter_mut().zip(seed.to_le_bytes().iter().cycle()) {
                *byte = *from;
            }
        }
        bytes
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn sleep(&self, ms: u64) -> Sleeping {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// A world in which every look at the clock takes a millisecond and chance is a counter: two runs in it are equal.
#[derive(Debug)]
pub struct FixedWorld {
    start: Timestamp,
    ticks: std::sync::atomic::AtomicU64,
}

impl FixedWorld {
    /// Creates a world whose wall clock begins at `start`.
    #[must_use]
    pub const fn new(start: Timestamp) -> Self {
        Self {
            start,
            ticks: std::sync::atomic::AtomicU64::new(0),
        }
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

impl World for FixedWorld {
    fn wall(&self) -> Timestamp {
        Timestamp(self.start.0 + self.tick() * 1_000_000)
    }

    fn monotonic_ns(&self) -> u64 {
        self.tick() * 1_000_000
    }

    fn random(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (byte, from) in bytes.iter_mut().zip(self.tick().to_be_bytes().into_iter().rev()) {
            *byte = from;
        }
        bytes
    }

    fn pid(&self) -> u32 {
        1
    }

    fn sleep(&self, _ms: u64) -> Sleeping {
        // Time passes by looking at the clock here, and nobody looks while the run does something.
        Box::pin(std::future::pending())
    }
}
