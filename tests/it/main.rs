//! What needs the whole program: real processes, real sockets.
