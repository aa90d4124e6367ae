//! tollgate-client
