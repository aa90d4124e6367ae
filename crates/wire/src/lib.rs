//! tollgate-wire
