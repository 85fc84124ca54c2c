//! A credential that never shows itself.

/// A key or token. It has no `Display`, its `Debug` hides it, and it is wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(secrecy::SecretString);

impl Secret {
    /// Takes a credential; white space around it, as a shell or a file leaves it, is dropped.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// The credential itself, for the one header it belongs in.
    #[must_use]
    pub fn expose(&self) -> &str {
        secrecy::ExposeSecret::expose_secret(&self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_credential() {
        let secret = Secret::new(" sk-very-secret\n");
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        assert_eq!(secret.expose(), "sk-very-secret");
    }
}
