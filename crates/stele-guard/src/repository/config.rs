//! Git's configuration files, read as git reads them (git 2.51, `git-config(1)`).

/// One setting, its section and key in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) section: String,
    pub(super) subsection: Option<String>,
    pub(super) key: String,
    /// None without a `=`, which means true.
    pub(super) value: Option<String>,
}

impl Setting {
    /// The name as git prints it.
    pub(super) fn name(&self) -> String {
        let Self { section, subsection, key, .. } = self;
        match subsection {
            Some(subsection) => format!("{section}.{subsection}.{key}"),
            None => format!("{section}.{key}"),
        }
    }
}

/// The settings of a file; `None` where git would not go on, or reads what is in no section or no text.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<Setting>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = Reader { rest: &text };
    let mut settings = Vec::new();
    let mut section = None;
    while let Some(character) = reader.next() {
        match character {
            _ if is_space(character) => {}
            '#' | ';' => while !matches!(reader.next(), None | Some('\n')) {},
            '[' => section = Some(reader.section()?),
            _ if character.is_ascii_alphabetic() => {
                let mut setting: Setting = section.clone()?;
                setting.key.push(character.to_ascii_lowercase());
                reader.setting(&mut setting)?;
                settings.push(setting);
            }
            _ => return None,
        }
    }
    Some(settings)
}

/// What the C library takes for white space.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

fn is_of_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-'
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next();
        self.rest = characters.as_str();
        character
    }

    /// `[section]`, `[section.sub]` or `[section "sub"]`, behind the first bracket.
    fn section(&mut self) -> Option<Setting> {
        let mut setting = Setting::default();
        loop {
            match self.next()? {
                ']' => break,
                space if is_space(space) => {
                    setting.subsection = Some(self.subsection(space)?);
                    break;
                }
                character if is_of_key(character) || character == '.' => {
                    setting.section.push(character.to_ascii_lowercase());
                }
                _ => return None,
            }
        }
        if let Some((section, subsection)) = setting.section.clone().split_once('.') {
            let quoted = setting.subsection.map(|quoted| format!(".{quoted}")).unwrap_or_default();
            setting = Setting {
                section: section.to_owned(),
                subsection: Some(format!("{subsection}{quoted}")),
                ..Setting::default()
            };
        }
        Some(setting)
    }

    fn subsection(&mut self, mut character: char) -> Option<String> {
        while is_space(character) {
            if character == '\n' {
                return None;
            }
            character = self.next()?;
        }
        if character != '"' {
            return None;
        }
        let mut subsection = String::new();
        loop {
            match self.next()? {
                '\n' => return None,
                '"' => break,
                '\\' => subsection.push(self.next().filter(|escaped| *escaped != '\n')?),
                other => subsection.push(other),
            }
        }
        (self.next()? == ']').then_some(subsection)
    }

    /// The rest of the key, and the value to the end of its line.
    fn setting(&mut self, setting: &mut Setting) -> Option<()> {
        let mut character = self.next();
        while let Some(of_key) = character.filter(|character| is_of_key(*character)) {
            setting.key.push(of_key.to_ascii_lowercase());
            character = self.next();
        }
        while matches!(character, Some(' ' | '\t')) {
            character = self.next();
        }
        match character {
            None | Some('\n') => Some(()),
            Some('=') => {
                setting.value = Some(self.value()?);
                Some(())
            }
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let mut value = String::new();
        // Length without white space at the end.
        let mut trimmed = 0;
        let mut quoted = false;
        loop {
            match self.next() {
                None | Some('\n') if quoted => return None,
                None | Some('\n') => break,
                Some(space) if is_space(space) && !quoted => {
                    if !value.is_empty() {
                        value.push(space);
                    }
                    continue;
                }
                Some('#' | ';') if !quoted => {
                    while !matches!(self.next(), None | Some('\n')) {}
                    break;
                }
                Some('"') => quoted = !quoted,
                Some('\\') => match self.next() {
                    None | Some('\n') => continue,
                    Some('t') => value.push('\t'),
                    Some('n') => value.push('\n'),
                    Some('b') => value.push('\u{8}'),
                    Some(escaped @ ('\\' | '"')) => value.push(escaped),
                    Some(_) => return None,
                },
                Some(other) => value.push(other),
            }
            trimmed = value.len();
        }
        value.truncate(trimmed);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<(String, Option<String>)>> {
        let settings = parse(text.as_bytes())?;
        Some(settings.into_iter().map(|setting| (setting.name(), setting.value)).collect())
    }

    #[test]
    fn what_git_cannot_read_is_not_guessed() {
        for text in
            ["[core", "[core]x y", "[a b]", "[core]\nx = \"y", "[core]\nx = \\q", "[a \"b\n\"]", "=x", "[core]\n1x=1"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(parse(b"[core]\nx = \xff"), None);
    }

    proptest::proptest! {
        /// Git itself says what a file sets; where it refuses one, so does this.
        #[test]
        fn every_file_is_read_as_git_reads_it(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "[core]", "[a.B]", "[A \"x Y\"]", "[s \"a\\\"b\"]", "\n", "\r\n", " ", "\t", "key", "K-2", "=", " = ",
                    "value", "\"a b\"", "\"", "\\", "\\\n", "\\n", "#", ";", "# x", "fsmonitor", "]", ".", "\u{e9}", "\r",
                ]),
                0..14,
            ),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("config");
            let text = format!("[core]{}", pieces.concat());
            std::fs::write(&file, &text).unwrap();
            let git = std::process::Command::new("git")
                .args(["config", "--null", "--list", "--no-includes", "--file"])
                .arg(&file)
                .output()
                .unwrap();
            let listed = String::from_utf8(git.stdout).unwrap();
            let listed: Vec<_> = listed
                .split_terminator('\0')
                .map(|entry| match entry.split_once('\n') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (entry.to_owned(), None),
                })
                .collect();
            match read(&text) {
                Some(settings) => proptest::prop_assert_eq!((git.status.success(), settings), (true, listed), "{:?}", text),
                None => proptest::prop_assert!(!git.status.success(), "{:?}", text),
            }
        }
    }
}
