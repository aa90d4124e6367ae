//! tollgate-node
