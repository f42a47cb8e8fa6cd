//! The library: session, context, model, gates, tools, one loop.
pub mod context;
