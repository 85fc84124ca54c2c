//! Rules and the three lists they stand in.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::Error;
use crate::glob::{CommandPattern, Unit};
use crate::paths::{Target, Workspace};

/// Tools that rules can name, with what their patterns are about.
const TOOLS: [(&str, About); 8] = [
    ("bash", About::Commands),
    ("read", About::Reads),
    ("write", About::Writes),
    ("edit", About::Writes),
    ("glob", About::Paths),
    ("grep", About::Paths),
    ("todo", About::Nothing),
    ("ask", About::Nothing),
];

/// What a tool's patterns are matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// Simple commands.
    Commands,
    /// Every file that is read, by whatever tool.
    Reads,
    /// Every file that is written, by whatever tool.
    Writes,
    /// The paths of this tool's own calls.
    Paths,
    /// Nothing: the tool has no patterns.
    Nothing,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The machine's policy.
    Managed,
    /// The person's configuration.
    User,
    /// The command line.
    Flag,
    /// A person's "always" in this session.
    Session,
}

impl Layer {
    /// The name in a rule's identity.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Flag => "flag",
            Self::Session => "session",
        }
    }
}

/// What a rule does with what it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// It is refused, in every mode.
    Deny,
    /// A person is asked.
    Ask,
    /// It runs without asking.
    Allow,
}

/// `tool` or `tool(pattern)`.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    layer: Layer,
    index: usize,
    tool: &'static str,
    about: About,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    Everything,
    Command(CommandPattern),
    Path(Box<PathPattern>),
}

#[derive(Clone, Debug)]
struct PathPattern {
    /// What the glob is relative to.
    base: Base,
    /// The pattern as it stands.
    exact: GlobMatcher,
    /// For `folder/**`, the folder itself.
    folder: Option<GlobMatcher>,
    /// The same at any depth, for a pattern of one part: a refusal reaches further than a permission.
    anywhere: Option<GlobMatcher>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Root,
    Home,
    Absolute,
}

impl Rule {
    /// Reads a rule; `index` is its place among the rules of its layer.
    ///
    /// # Errors
    /// `rule.syntax`, `rule.tool` or `rule.pattern`, with what is wrong and what to write.
    pub fn parse(text: &str, layer: Layer, index: usize) -> Result<Self, Error> {
        let text = text.trim();
        let syntax = |detail: &str| Error::Syntax { rule: text.to_owned(), detail: detail.to_owned() };
        let (name, pattern) = match text.split_once('(') {
            Some((name, rest)) => {
                let pattern = rest.strip_suffix(')').ok_or_else(|| syntax("the closing parenthesis is missing"))?;
                (name.trim_end(), Some(pattern.trim()))
            }
            None => (text, None),
        };
        if name.is_empty() {
            return Err(syntax("the tool's name is missing"));
        }
        let (tool, about) = *TOOLS
            .iter()
            .find(|(tool, _)| *tool == name)
            .ok_or_else(|| Error::Tool { rule: text.to_owned(), nearest: nearest_tool(name) })?;
        let pattern = match pattern {
            None => Pattern::Everything,
            Some("") => return Err(syntax("the pattern is empty")),
            Some(pattern) => compile(text, about, pattern)?,
        };
        Ok(Self { text: text.to_owned(), layer, index, tool, about, pattern })
    }

    /// The identity, such as `rule:user:3`.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("rule:{}:{}", self.layer.name(), self.index)
    }

    /// The rule as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it comes from.
    #[must_use]
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// True when it speaks of every call of a tool, whatever it touches.
    pub(crate) fn is_whole_tool(&self, tool: &str) -> bool {
        self.tool == tool && matches!(self.pattern, Pattern::Everything)
    }

    /// The command pattern, when it is a rule about commands.
    pub(crate) fn command(&self) -> Option<&CommandPattern> {
        match &self.pattern {
            Pattern::Command(pattern) => Some(pattern),
            Pattern::Everything | Pattern::Path(_) => None,
        }
    }

    /// True when it covers all that an exact pattern covers: a command in certain words, or one path.
    pub(crate) fn covers_exactly(&self, exact: &str) -> bool {
        match &self.pattern {
            Pattern::Everything => false,
            Pattern::Command(pattern) => pattern.covers(&exact.chars().map(Unit::Char).collect::<Vec<_>>()),
            Pattern::Path(pattern) => {
                let base = if exact.starts_with('/') { Base::Absolute } else { Base::Root };
                pattern.base == base && pattern.matches(Path::new(&unescaped(exact)))
            }
        }
    }

    /// True when the rule can say anything about commands or what they write and read.
    pub(crate) fn concerns_shell(&self) -> bool {
        matches!(self.about, About::Commands | About::Reads | About::Writes)
    }

    /// True when it has a pattern over paths.
    pub(crate) fn is_about_paths(&self) -> bool {
        matches!(self.pattern, Pattern::Path(_))
    }

    /// True when it is a rule about files that are touched in this way by this tool.
    fn concerns_file(&self, tool: &str, access: Access) -> bool {
        match (self.about, access) {
            (About::Reads, Access::Read) | (About::Writes, Access::Write) => true,
            (About::Paths, Access::Read) => self.tool == tool,
            _ => false,
        }
    }

    /// True when a permission covers the file: only the file that the path leads to counts.
    pub(crate) fn permits(&self, tool: &str, access: Access, target: &Target, workspace: &Workspace) -> bool {
        self.concerns_file(tool, access)
            && match &self.pattern {
                Pattern::Everything => true,
                Pattern::Path(pattern) => {
                    pattern.subject(&target.resolved, workspace).is_some_and(|path| pattern.matches(path))
                }
                Pattern::Command(_) => false,
            }
    }

    /// True when a refusal reaches the file: by the path as it was written or as it resolves, by a
    /// folder above it, and, for a pattern of one part, at any depth.
    pub(crate) fn restrains(&self, tool: &str, access: Access, target: &Target, workspace: &Workspace) -> bool {
        self.concerns_file(tool, access)
            && match &self.pattern {
                Pattern::Everything => true,
                Pattern::Path(pattern) => [&target.resolved, &target.written].into_iter().any(|path| {
                    pattern.subject(path, workspace).is_some_and(|path| {
                        path.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| {
                            pattern.matches(part)
                                || pattern.anywhere.as_ref().is_some_and(|anywhere| anywhere.is_match(part))
                        })
                    })
                }),
                Pattern::Command(_) => false,
            }
    }
}

impl PathPattern {
    fn matches(&self, path: &Path) -> bool {
        self.exact.is_match(path) || self.folder.as_ref().is_some_and(|folder| folder.is_match(path))
    }

    /// The part of an absolute path that the glob is matched against.
    fn subject<'a>(&self, path: &'a Path, workspace: &Workspace) -> Option<&'a Path> {
        match self.base {
            Base::Root => workspace.relative(path),
            Base::Home => workspace.beneath_home(path),
            Base::Absolute => Some(path),
        }
    }
}

/// How a file is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

fn compile(rule: &str, about: About, pattern: &str) -> Result<Pattern, Error> {
    let invalid = |detail: String| Error::Pattern { rule: rule.to_owned(), detail };
    match about {
        About::Commands => {
            let compiled = CommandPattern::new(pattern);
            Ok(if compiled.is_everything() { Pattern::Everything } else { Pattern::Command(compiled) })
        }
        About::Nothing => Err(invalid("this tool has no patterns, write its name alone".to_owned())),
        About::Reads | About::Writes | About::Paths => {
            let (base, glob) = if let Some(inner) = pattern.strip_prefix("~/") {
                (Base::Home, inner)
            } else if pattern.starts_with('/') {
                (Base::Absolute, pattern)
            } else {
                (Base::Root, pattern.strip_prefix("./").unwrap_or(pattern))
            };
            let glob = if base == Base::Absolute && glob == "/" { glob } else { glob.trim_end_matches('/') };
            if glob.is_empty() || glob.split('/').any(|part| part == "..") {
                return Err(invalid(
                    "paths are relative to the workspace and never leave it; write an absolute path for what lies outside"
                        .to_owned(),
                ));
            }
            let build = |glob: &str| {
                GlobBuilder::new(glob)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .build()
                    .map(|glob| glob.compile_matcher())
                    .map_err(|error| invalid(error.kind().to_string()))
            };
            let anywhere =
                if base == Base::Absolute || glob.contains('/') { None } else { Some(build(&format!("**/{glob}"))?) };
            let folder = glob.strip_suffix("/**").filter(|folder| !folder.is_empty()).map(build).transpose()?;
            Ok(Pattern::Path(Box::new(PathPattern { base, exact: build(glob)?, folder, anywhere })))
        }
    }
}

/// The path that [`globset::escape`] made a pattern of.
fn unescaped(pattern: &str) -> String {
    let characters: Vec<char> = pattern.chars().collect();
    let mut path = String::new();
    let mut rest = characters.as_slice();
    while let [first, after @ ..] = rest {
        (path, rest) = match rest {
            ['[', inner, ']', after @ ..] => (path + &inner.to_string(), after),
            _ => (path + &first.to_string(), after),
        };
    }
    path
}

/// The tools that rules are about.
pub(crate) fn tools() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|(tool, _)| *tool)
}

/// The tool that a name was probably meant as; `None` where it is like none of them.
fn nearest_tool(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if matches!(lower.as_str(), "shell" | "sh" | "terminal" | "command" | "exec" | "run") {
        return Some("bash");
    }
    let shared = |tool: &str| {
        let prefix = tool.bytes().zip(lower.bytes()).take_while(|(a, b)| a == b).count();
        let letters = lower.chars().filter(|letter| tool.contains(*letter)).count();
        (usize::from(tool == lower), prefix, letters, usize::MAX - tool.len().abs_diff(lower.len()))
    };
    let nearest = TOOLS.iter().map(|(tool, _)| *tool).max_by_key(|tool| shared(tool))?;
    Some(nearest).filter(|tool| shared(tool).1 >= 2)
}

/// All rules that hold, from every layer.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
}

impl Policy {
    /// Adds a rule; its index is the number of rules that its layer already has.
    ///
    /// # Errors
    /// As [`Rule::parse`].
    pub fn add(&mut self, list: List, layer: Layer, text: &str) -> Result<(), Error> {
        let index = self.rules().filter(|(_, rule)| rule.layer == layer).count();
        let rule = Rule::parse(text, layer, index)?;
        match list {
            List::Deny => self.deny.push(rule),
            List::Ask => self.ask.push(rule),
            List::Allow => self.allow.push(rule),
        }
        Ok(())
    }

    /// Every rule with its list: denies first, then asks, then allows.
    pub fn rules(&self) -> impl Iterator<Item = (List, &Rule)> {
        let denies = self.deny.iter().map(|rule| (List::Deny, rule));
        let asks = self.ask.iter().map(|rule| (List::Ask, rule));
        let allows = self.allow.iter().map(|rule| (List::Allow, rule));
        denies.chain(asks).chain(allows)
    }

    pub(crate) fn denies(&self) -> &[Rule] {
        &self.deny
    }

    pub(crate) fn asks(&self) -> &[Rule] {
        &self.ask
    }

    pub(crate) fn allows(&self) -> &[Rule] {
        &self.allow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, code: &str, says: &str) {
        let error = Rule::parse(text, Layer::Flag, 0).unwrap_err();
        assert_eq!(error.code(), code, "{text}");
        assert!(error.to_string().contains(says), "{error}");
    }

    #[test]
    fn a_bad_rule_says_what_is_wrong() {
        refused("", "rule.syntax", "name is missing");
        refused("bash(git", "rule.syntax", "closing parenthesis");
        refused("bash()", "rule.syntax", "pattern is empty");
        refused("bahs(git)", "rule.tool", "`bash`");
        refused("Bash(git)", "rule.tool", "`bash`");
        refused("todo(x)", "rule.pattern", "no patterns");
        refused("edit(../x)", "rule.pattern", "absolute");
        refused("edit(a[)", "rule.pattern", "");
    }

    #[test]
    fn identities_count_within_a_layer() {
        let mut policy = Policy::default();
        policy.add(List::Deny, Layer::User, "bash(rm *)").unwrap();
        policy.add(List::Allow, Layer::Flag, "bash(git *)").unwrap();
        policy.add(List::Allow, Layer::User, "edit(src/**)").unwrap();
        let identities: Vec<_> = policy.rules().map(|(_, rule)| rule.identity()).collect();
        assert_eq!(identities, ["rule:user:0", "rule:flag:0", "rule:user:1"]);
    }

    proptest::proptest! {
        #[test]
        fn reading_a_rule_never_panics(text in "\\PC{0,40}", tool in "bash|edit|read|grep") {
            let _ = Rule::parse(&text, Layer::User, 0);
            let _ = Rule::parse(&format!("{tool}({text})"), Layer::User, 0);
        }
    }
}
