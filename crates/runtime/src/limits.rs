//! The limits of a run: what is counted, which one is reached, and how that is said.

use tracegate_core::{
    fact::run::{LimitReached, Limits},
    state::RunState,
    stop::StopReason,
};

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Steps.
    Steps {
        /// Taken.
        value: u64,
        /// Permitted.
        limit: u64,
    },
    /// Tokens, input and output together.
    Tokens {
        /// Used.
        value: u64,
        /// Permitted.
        limit: u64,
    },
    /// Cost in millionths of a US dollar.
    Cost {
        /// Spent.
        value: u64,
        /// Permitted.
        limit: u64,
    },
    /// Working time in milliseconds.
    Time {
        /// Worked.
        value: u64,
        /// Permitted.
        limit: u64,
    },
}

/// Returns the first limit that a run has reached; a cost without prices is never reached.
#[must_use]
pub fn reached(state: &RunState, limits: &Limits) -> Option<Reached> {
    let (steps, most) = (u64::from(state.step.0), u64::from(limits.max_steps));
    if steps >= most {
        let (value, limit) = (steps, most);
        return Some(Reached::Steps { value, limit });
    }
    let value = state.usage.total();
    if let Some(limit) = limits.max_tokens.filter(|limit| value >= *limit) {
        return Some(Reached::Tokens { value, limit });
    }
    if let Some((value, limit)) = state
        .cost()
        .zip(limits.max_cost)
        .filter(|(value, limit)| value >= limit)
    {
        return Some(Reached::Cost { value, limit });
    }
    let value = state.elapsed_ms();
    let limit = limits.max_ms.filter(|limit| value >= *limit)?;
    Some(Reached::Time { value, limit })
}

impl Reached {
    /// Returns the name of what is counted, as in the event.
    #[must_use]
    pub const fn which(self) -> &'static str {
        match self {
            Self::Steps { .. } => "steps",
            Self::Tokens { .. } => "tokens",
            Self::Cost { .. } => "cost",
            Self::Time { .. } => "time",
        }
    }

    /// Returns the limit, in the unit of what is counted.
    #[must_use]
    pub const fn limit(self) -> u64 {
        match self {
            Self::Steps { limit, .. }
            | Self::Tokens { limit, .. }
            | Self::Cost { limit, .. }
            | Self::Time { limit, .. } => limit,
        }
    }

    /// Returns the value that reached it.
    #[must_use]
    pub const fn value(self) -> u64 {
        match self {
            Self::Steps { value, .. }
            | Self::Tokens { value, .. }
            | Self::Cost { value, .. }
            | Self::Time { value, .. } => value,
        }
    }

    /// Returns what the run ends as.
    #[must_use]
    pub const fn stop(self) -> StopReason {
        match self {
            Self::Steps { .. } => StopReason::MaxSteps,
            Self::Tokens { .. } | Self::Cost { .. } | Self::Time { .. } => StopReason::BudgetExhausted,
        }
    }

    /// Returns the event that says so.
    #[must_use]
    pub fn event(self) -> LimitReached {
        LimitReached {
            which: self.which().to_owned(),
            value: self.value(),
            limit: self.limit(),
        }
    }
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Steps { limit, .. } => write!(f, "the limit of {limit} steps is reached"),
            Self::Tokens { value, limit } => {
                write!(f, "the limit of {limit} tokens is reached: {value} were used")
            }
            Self::Cost { value, limit } => {
                write!(
                    f,
                    "the limit of {} USD is reached: {} were spent",
                    dollars(*limit),
                    dollars(*value)
                )
            }
            Self::Time { value, limit } => {
                write!(f, "the limit of {limit} ms is reached: the run worked {value} ms")
            }
        }
    }
}

/// Writes millionths of a dollar as dollars, as short as they can be.
#[must_use]
pub fn dollars(millionths: u64) -> String {
    let (whole, part) = (millionths / 1_000_000, millionths % 1_000_000);
    let text = format!("{whole}.{part:06}");
    let short = text.trim_end_matches('0');
    short.strip_suffix('.').unwrap_or(short).to_owned()
}
