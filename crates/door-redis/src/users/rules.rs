//! The language of ACL rules.
//!
//! ACL SETUSER takes words one by one. Some change the account (`on`, `>password`), the others a selector: the user's own, or one in brackets. A selector can
//! be written back as words. Words about commands are kept in their order, without those that a later word made meaningless, so that rules keep their meaning
//! when commands are added. (Redis 7.0 generates an equivalent list from the allowed commands.)

use engine::Account;

use crate::command::unserved::UNSERVED;
use crate::command::{Command, category};
use crate::glob;
use crate::table::{self, COMMANDS};

/// Maximum number of words about commands per selector.
const WORDS_MAX: usize = 1024;

/// A key pattern and the access that it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    pub pattern: Vec<u8>,
    pub read: bool,
    pub write: bool,
}

/// One set of permissions. A command is allowed if one of the user's selectors allows it with all its keys.
#[derive(Clone)]
pub struct Selector {
    pub all_commands: bool,
    /// By index in the table. Commands that are not served follow.
    pub commands: Vec<bool>,
    /// `+select|0`: the command at this index, with this first argument only.
    pub first_arguments: Vec<(usize, String)>,
    /// The words that produced `commands`: `-@all +get`.
    words: Vec<String>,
    pub all_keys: bool,
    pub keys: Vec<KeyPattern>,
    all_channels: bool,
    channels: Vec<Vec<u8>>,
}

/// The error of a word, in Redis' text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad(pub &'static str);

const UNKNOWN: Bad = Bad("Unknown command or category name in ACL");
const SYNTAX: Bad = Bad("Syntax error");
const AFTER_ALL_KEYS: Bad = Bad(
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns",
);
const AFTER_ALL_CHANNELS: Bad = Bad(
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels",
);
const NO_SUCH_PASSWORD: Bad = Bad("The password you are trying to remove from the user does not exist");
const BAD_HASH: Bad =
    Bad("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters");
const OF_SUBCOMMAND: Bad = Bad("Allowing first-arg of a subcommand is not supported");

const TOO_MANY: Bad = Bad("Too many rules on commands");

/// A command named by a rule: a row of the table, or a command of Redis that is not served.
#[derive(Clone, Copy)]
enum Named {
    Served(&'static Command),
    /// By index in the list.
    Unserved(usize),
}

impl Named {
    /// Finds `get` or `config|get`, in any case.
    fn find(name: &[u8]) -> Option<Named> {
        let unserved = || UNSERVED.iter().position(|known| name.eq_ignore_ascii_case(known.name.as_bytes()));
        table::find_full(name).map(Named::Served).or_else(|| unserved().map(Named::Unserved))
    }

    fn name(self) -> &'static str {
        match self {
            Named::Served(command) => command.name,
            Named::Unserved(at) => UNSERVED[at].name,
        }
    }

    /// Returns its index among the bits of a selector.
    fn index(self) -> usize {
        match self {
            Named::Served(command) => command.index(),
            Named::Unserved(at) => COMMANDS.len() + at,
        }
    }

    fn is_subcommand(self) -> bool {
        self.name().contains('|')
    }

    /// Returns the bits of its subcommands, served or not.
    fn subcommands(self) -> impl Iterator<Item = usize> {
        let inside = move |name: &str| name.strip_prefix(self.name()).is_some_and(|rest| rest.starts_with('|'));
        let names = COMMANDS.iter().map(|row| row.name).chain(UNSERVED.iter().map(|known| known.name));
        names.enumerate().filter(move |(_, name)| inside(name)).map(|(at, _)| at)
    }
}

impl Selector {
    pub fn nothing() -> Selector {
        Selector {
            all_commands: false,
            commands: vec![false; COMMANDS.len() + UNSERVED.len()],
            first_arguments: Vec::new(),
            words: vec!["-@all".to_owned()],
            all_keys: false,
            keys: Vec::new(),
            all_channels: false,
            channels: Vec::new(),
        }
    }

    /// Applies one word.
    fn change(&mut self, word: &[u8]) -> Result<(), Bad> {
        match word.to_ascii_lowercase().as_slice() {
            b"allkeys" | b"~*" => (self.all_keys, self.keys) = (true, Vec::new()),
            b"resetkeys" => (self.all_keys, self.keys) = (false, Vec::new()),
            b"allchannels" | b"&*" => (self.all_channels, self.channels) = (true, Vec::new()),
            b"resetchannels" => (self.all_channels, self.channels) = (false, Vec::new()),
            b"allcommands" | b"+@all" => self.all(true),
            b"nocommands" | b"-@all" => self.all(false),
            _ => return self.change_one(word),
        }
        Ok(())
    }

    fn change_one(&mut self, word: &[u8]) -> Result<(), Bad> {
        match word {
            [] => Ok(()),
            [b'~' | b'%', ..] if self.all_keys => Err(AFTER_ALL_KEYS),
            [b'~', pattern @ ..] => self.add_keys(pattern, true, true),
            [b'%', rest @ ..] => self.add_limited_keys(rest),
            [b'&', pattern @ ..] => self.add_channels(pattern),
            [sign @ (b'+' | b'-'), name @ ..] => {
                let about = self.put_named(*sign == b'+', name)?;
                self.remember(*sign == b'+', &about)
            }
            _ => Err(SYNTAX),
        }
    }

    fn all(&mut self, allow: bool) {
        self.all_commands = allow;
        self.commands.fill(allow);
        self.first_arguments.clear();
        self.words = vec![if allow { "+@all" } else { "-@all" }.to_owned()];
    }

    /// Returns whether all served commands are allowed.
    pub fn has_all_served(&self) -> bool {
        self.all_commands || self.commands[..COMMANDS.len()].iter().all(|allowed| *allowed)
    }

    /// Allows or forbids a command. A container includes its subcommands.
    fn put(&mut self, command: Named, allow: bool) {
        let own = command.index();
        self.commands[own] = allow;
        command.subcommands().for_each(|at| self.commands[at] = allow);
        self.first_arguments.retain(|(other, _)| *other != own);
        self.all_commands &= allow;
    }

    /// Records a word. A later word about the same thing replaces an earlier one, and a word about a command also replaces those about its subcommands. A word
    /// without effect is not recorded.
    fn remember(&mut self, allow: bool, name: &str) -> Result<(), Bad> {
        self.words.retain(|word| {
            let about = &word[1..];
            let inside = about.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('|'));
            about == "@all" || !inside
        });
        let mut without = Selector::nothing();
        for word in &self.words {
            match word.as_str() {
                "+@all" | "-@all" => without.all(word.starts_with('+')),
                word => drop(without.put_named(word.starts_with('+'), &word.as_bytes()[1..])),
            }
        }
        let same = without.commands == self.commands
            && without.first_arguments == self.first_arguments
            && without.all_commands == self.all_commands;
        if !same {
            if self.words.len() >= WORDS_MAX {
                return Err(TOO_MANY);
            }
            self.words.push(format!("{}{name}", if allow { '+' } else { '-' }));
        }
        Ok(())
    }

    /// Allows or forbids `@category`, `command`, `command|subcommand` or, only to allow, `command|argument`. Returns the name as it is recorded.
    fn put_named(&mut self, allow: bool, name: &[u8]) -> Result<String, Bad> {
        if let [b'@', category @ ..] = name {
            let bit = category::of_name(category).ok_or(UNKNOWN)?;
            let served = COMMANDS.iter().filter(|row| row.categories() & bit != 0).map(Named::Served);
            served.for_each(|command| self.put(command, allow));
            for (at, _) in UNSERVED.iter().enumerate().filter(|(_, known)| known.categories & bit != 0) {
                self.commands[COMMANDS.len() + at] = allow;
                self.all_commands &= allow;
            }
            return Ok(String::from_utf8_lossy(name).to_ascii_lowercase());
        }
        let bar = name.iter().rposition(|byte| *byte == b'|');
        let Some(bar) = bar.filter(|_| allow) else {
            let command = Named::find(name).ok_or(UNKNOWN)?;
            self.put(command, allow);
            return Ok(command.name().to_owned());
        };
        let (command, second) = (Named::find(&name[..bar]).ok_or(UNKNOWN)?, &name[bar + 1..]);
        if command.is_subcommand() {
            return Err(OF_SUBCOMMAND);
        }
        if second.is_empty() {
            return Err(SYNTAX);
        }
        if command.subcommands().next().is_some() {
            let subcommand = Named::find(name).ok_or(UNKNOWN)?;
            self.put(subcommand, true);
            return Ok(subcommand.name().to_owned());
        }
        let rule = (command.index(), String::from_utf8_lossy(second).to_ascii_lowercase());
        let about = format!("{}|{}", command.name(), rule.1);
        if !self.first_arguments.contains(&rule) {
            self.first_arguments.push(rule);
        }
        Ok(about)
    }

    /// Parses `%R~pattern`, `%W~pattern`, `%RW~pattern`, without the percent sign. Redis takes one without a tilde as the empty pattern.
    fn add_limited_keys(&mut self, rest: &[u8]) -> Result<(), Bad> {
        let tilde = rest.iter().position(|byte| *byte == b'~').unwrap_or(rest.len());
        let (mut read, mut write) = (false, false);
        for letter in &rest[..tilde] {
            match letter.to_ascii_uppercase() {
                b'R' if !read => read = true,
                b'W' if !write => write = true,
                _ => return Err(SYNTAX),
            }
        }
        if !read && !write {
            return Err(SYNTAX);
        }
        self.add_keys(rest.get(tilde + 1..).unwrap_or_default(), read, write)
    }

    fn add_keys(&mut self, pattern: &[u8], read: bool, write: bool) -> Result<(), Bad> {
        check_pattern(pattern)?;
        match self.keys.iter_mut().find(|known| known.pattern == pattern) {
            Some(known) => {
                known.read |= read;
                known.write |= write;
            }
            None => self.keys.push(KeyPattern { pattern: pattern.to_vec(), read, write }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), Bad> {
        if self.all_channels {
            return Err(AFTER_ALL_CHANNELS);
        }
        check_pattern(pattern)?;
        if self.channels.iter().all(|known| known != pattern) {
            self.channels.push(pattern.to_vec());
        }
        Ok(())
    }

    /// Returns whether a channel may be used, or a pattern of channels: it must be one of those allowed, literally.
    pub fn may_use_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(
                |allowed| {
                    if is_pattern { allowed == name } else { glob::matches(allowed, name, false) }
                },
            )
    }

    /// Returns whether the selector allows to read any key.
    pub fn reads_all_keys(&self) -> bool {
        self.all_keys || self.keys.iter().any(|key| key.read && key.pattern == b"*")
    }

    /// Returns whether the selector allows all commands on all keys and channels.
    pub fn allows_everything(&self) -> bool {
        self.has_all_served() && self.all_keys && self.all_channels
    }

    pub fn commands_text(&self) -> String {
        self.words.join(" ")
    }

    pub fn keys_text(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let words = self.keys.iter().map(|keys| {
            let mark: &[u8] = match (keys.read, keys.write) {
                // `~*` is not a pattern but means all keys, after which no pattern may follow.
                (true, true) if keys.pattern == b"*" => b"%RW~",
                (true, true) => b"~",
                (true, false) => b"%R~",
                _ => b"%W~",
            };
            [mark, &keys.pattern].concat()
        });
        words.collect::<Vec<_>>().join(&b' ')
    }

    /// Returns the channels as GETUSER shows them. The stored rules say `resetchannels` unless it is `&*`.
    pub fn channels_text(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        self.channels.iter().map(|channel| [b"&", channel.as_slice()].concat()).collect::<Vec<_>>().join(&b' ')
    }

    /// Returns the whole selector as words, in the order of ACL LIST.
    fn text(&self) -> Vec<u8> {
        let mut words = vec![self.keys_text()];
        if !self.all_channels {
            words.push(b"resetchannels".to_vec());
        }
        words.push(self.channels_text());
        words.push(self.commands_text().into_bytes());
        words.retain(|word| !word.is_empty());
        words.join(&b' ')
    }
}

fn check_pattern(pattern: &[u8]) -> Result<(), Bad> {
    // The white space of C: blank, tab, line ends, vertical tab, form feed.
    let bad = |byte: &u8| matches!(byte, b' ' | 0 | b'\t'..=b'\r');
    if pattern.iter().any(bad) { Err(SYNTAX) } else { Ok(()) }
}

/// Parses the rules of an account: those written by [`Draft::finish`], and the engine's rules of the default account.
pub fn read(rules: &str) -> Result<Vec<Selector>, Bad> {
    let mut selectors = vec![Selector::nothing()];
    let mut inside = false;
    for word in rules.split_whitespace() {
        let opens = word.starts_with('(');
        if opens {
            selectors.push(Selector::nothing());
            inside = true;
        }
        let closes = inside && word.ends_with(')');
        let bare = word.strip_prefix('(').filter(|_| opens).unwrap_or(word);
        let bare = bare.strip_suffix(')').filter(|_| closes).unwrap_or(bare);
        let at = if inside { selectors.len() - 1 } else { 0 };
        if !bare.is_empty() {
            selectors[at].change(bare.as_bytes())?;
        }
        inside &= !closes;
    }
    Ok(selectors)
}

/// An account that ACL SETUSER is changing.
pub struct Draft {
    account: Account,
    selectors: Vec<Selector>,
    /// New selectors allow all channels.
    gives_channels: bool,
}

impl Draft {
    /// Starts from an existing account.
    pub fn of(account: &Account, gives_channels: bool) -> Draft {
        let selectors = read(&account.rules).unwrap_or_else(|_| vec![Selector::nothing()]);
        Draft { account: account.clone(), selectors, gives_channels }
    }

    /// Starts from a new account, which may do nothing, except perhaps use channels.
    pub fn new(name: &str, gives_channels: bool) -> Draft {
        let selectors = vec![Selector { all_channels: gives_channels, ..Selector::nothing() }];
        Draft { account: Account::new(name), selectors, gives_channels }
    }

    /// Applies one word of ACL SETUSER. A selector in brackets is one word.
    pub fn change(&mut self, word: &[u8]) -> Result<(), Bad> {
        let account = &mut self.account;
        match (word.to_ascii_lowercase().as_slice(), word) {
            (b"on", _) => account.enabled = true,
            (b"off", _) => account.enabled = false,
            // A password set through SQL is one of the account's and is removed with the others.
            (b"nopass", _) => {
                account.clear_passwords();
                account.nopass = true;
            }
            (b"resetpass", _) => account.clear_passwords(),
            // RESTORE checks every payload.
            (b"sanitize-payload" | b"skip-sanitize-payload", _) => {}
            (b"clearselectors", _) => self.selectors.truncate(1),
            (b"reset", _) => *self = Draft::new(&account.name, self.gives_channels),
            (_, [b'>', password @ ..]) => account.add_password(password),
            (_, [b'#', digest @ ..]) => account.add_digest(read_digest(digest)?),
            (_, [b'<', password @ ..]) => return self.remove_password(engine::sha256(password)),
            (_, [b'!', digest @ ..]) => return self.remove_password(read_digest(digest)?),
            (_, [b'(', inner @ .., b')']) => {
                let mut selector = Selector { all_channels: self.gives_channels, ..Selector::nothing() };
                for word in inner.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                    selector.change(word)?;
                }
                self.selectors.push(selector);
            }
            _ => return self.selectors[0].change(word),
        }
        Ok(())
    }

    fn remove_password(&mut self, digest: [u8; 32]) -> Result<(), Bad> {
        if self.account.remove_digest(&digest) { Ok(()) } else { Err(NO_SUCH_PASSWORD) }
    }

    /// Returns the account with its rules as text, or None if a pattern is not UTF-8, which rules must be.
    pub fn finish(mut self) -> Option<Account> {
        let (own, others) = self.selectors.split_first()?;
        let mut text = own.text();
        for selector in others {
            text.extend_from_slice(b" (");
            text.extend_from_slice(&selector.text());
            text.push(b')');
        }
        self.account.rules = String::from_utf8(text).ok()?;
        Some(self.account)
    }
}

fn read_digest(text: &[u8]) -> Result<[u8; 32], Bad> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let digits: Option<Vec<u8>> = text.iter().map(|byte| digit(*byte)).collect();
    let digits = digits.filter(|digits| digits.len() == 64).ok_or(BAD_HASH)?;
    Ok(std::array::from_fn(|at| digits[2 * at] << 4 | digits[2 * at + 1]))
}

/// Joins a selector that spans several arguments into one word. The error is the argument with the open bracket.
pub fn join_selectors<'a>(args: &[&'a [u8]]) -> Result<Vec<Vec<u8>>, &'a [u8]> {
    let mut words = Vec::new();
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for word in args {
        let (start, text) = match open.take() {
            None => (*word, word.to_vec()),
            Some((start, text)) => (start, [text.as_slice(), word].join(&b' ')),
        };
        if text.first() == Some(&b'(') && text.last() != Some(&b')') {
            open = Some((start, text));
        } else {
            words.push(text);
        }
    }
    match open {
        Some((start, _)) => Err(start),
        None => Ok(words),
    }
}
