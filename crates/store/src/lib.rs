//! A run on disk: log, artifacts, checkpoints, lock.
