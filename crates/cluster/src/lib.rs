//! tollgate-cluster
