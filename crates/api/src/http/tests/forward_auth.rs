//! What proxies ask.
