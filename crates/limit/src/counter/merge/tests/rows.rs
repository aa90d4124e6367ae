//! Rows
