//! Buckets
