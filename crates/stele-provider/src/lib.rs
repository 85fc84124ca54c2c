//! The four wires: encode, decode, usage, errors, model catalogue and prices.
