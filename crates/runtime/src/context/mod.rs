//! The deterministic context: what is there, which tests belong to what, what fits, and what the model reads.
//!
//! [`inventory::take_inventory`] lists the workspace, [`build`] makes the context of one step and its report from it. Only the
//! inventory touches the disk.

mod candidates;
pub mod inventory;
pub mod links;
pub mod names;
mod pack;
mod render;

pub use pack::{
    Built, Contents, GoalView, How, Identity, Linking, LoadedBy, Request, Touched, Unreadable, build,
};
pub use render::{HEADROOM_PCT, estimate_tokens};
