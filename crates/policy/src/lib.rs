//! A policy file and an action become a decision. Pure.
