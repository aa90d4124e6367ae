//! tollgate-api
