//! The deterministic context: what is there, which tests belong to what, what fits, and what the model reads.
//!
//! [`inventory::take_inventory`] lists the workspace, [`pack()`] makes the context of one step and its report from it; both are pure
//! but for the inventory. [`build()`] is the phase of the loop that calls them and records the result.

mod build;
mod candidates;
mod instructions;
pub mod inventory;
pub mod links;
pub mod names;
mod pack;
mod render;

pub use build::{Context, build};
pub use instructions::INSTRUCTIONS;
pub(crate) use inventory::is_secret as is_secret_name;
pub use pack::{Built, Contents, How, Identity, Linking, LoadedBy, Request, Touched, Unreadable, pack};
pub use render::{HEADROOM_PCT, estimate_tokens};
