//! A credential that never shows itself.

/// A key or token. It has no `Display`, its `Debug` hides it, and it is wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(secrecy::SecretString);

/// Bytes of the shortest credential that is looked for in a text. Local servers are given words such as `ollama`, which
/// are no secret and stand in messages for other reasons.
const SECRET_MIN: usize = 8;

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

    /// A text from outside without the credential, should somebody have put it there.
    #[must_use]
    pub fn blanked(&self, text: &str) -> String {
        let secret = self.expose();
        if secret.len() < SECRET_MIN { text.to_owned() } else { text.replace(secret, "[key]") }
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

    #[test]
    fn a_text_loses_the_credential_but_no_common_word() {
        assert_eq!(Secret::new("sk-very-secret").blanked("bad sk-very-secret: no"), "bad [key]: no");
        assert_eq!(Secret::new("ollama").blanked("ollama is loading"), "ollama is loading");
    }
}
