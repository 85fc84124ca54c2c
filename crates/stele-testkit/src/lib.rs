//! A scripted model server on a local port, and what tests share.
