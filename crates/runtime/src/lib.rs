//! The library: session, context, model, gates, tools, one loop.
