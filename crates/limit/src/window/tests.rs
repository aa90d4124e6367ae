//! Tests of the sliding window.
