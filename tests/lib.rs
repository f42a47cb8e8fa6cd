//! End to end, crash, golden, corpus and tidy tests of tracegate.
