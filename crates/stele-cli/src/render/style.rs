//! Colours by their ANSI names only, so that they follow the terminal's own light or dark theme.

use crate::args::ColorChoice;

/// Whether something is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Nothing is added.
    #[default]
    Plain,
    /// The eight colours, bold and dim.
    Coloured,
}

/// What an environment says about colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `NO_COLOR` is set and not empty (no-color.org).
    pub no_color: bool,
    /// `TERM` is `dumb` or not set.
    pub dumb: bool,
    /// The stream is a terminal.
    pub terminal: bool,
}

impl Style {
    /// What a choice comes to on a stream.
    pub fn choose(choice: ColorChoice, surroundings: Surroundings) -> Self {
        let coloured = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => surroundings.terminal && !surroundings.no_color && !surroundings.dumb,
        };
        if coloured { Self::Coloured } else { Self::Plain }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }

    /// Something that went well, or was added.
    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Something that went wrong, or was removed.
    pub fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    /// Something to notice.
    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// A place.
    pub fn cyan(self, text: &str) -> String {
        self.wrap("36", text)
    }

    /// What stands out.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What stands back. The colour itself is the terminal's, so that it can be read on any ground.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_and_a_dumb_terminal_are_heard_unless_colours_are_asked_for() {
        let terminal = Surroundings { terminal: true, ..Surroundings::default() };
        assert_eq!(Style::choose(ColorChoice::Auto, terminal), Style::Coloured);
        assert_eq!(Style::choose(ColorChoice::Auto, Surroundings::default()), Style::Plain);
        assert_eq!(Style::choose(ColorChoice::Auto, Surroundings { no_color: true, ..terminal }), Style::Plain);
        assert_eq!(Style::choose(ColorChoice::Auto, Surroundings { dumb: true, ..terminal }), Style::Plain);
        assert_eq!(Style::choose(ColorChoice::Always, Surroundings { no_color: true, ..terminal }), Style::Coloured);
        assert_eq!(Style::choose(ColorChoice::Never, terminal), Style::Plain);
    }
}
