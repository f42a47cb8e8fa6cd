//! A recorded run becomes a summary, evidence, attribution and a post-mortem. Pure.
