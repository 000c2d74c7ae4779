//! One parameter of CONFIG: its values, its default, and whether it can change.

/// The values that a parameter can have.
#[derive(Clone, Copy)]
pub enum Kind {
    Switch,
    Number(i64, i64),
    /// Bytes, with a minimum.
    Size(i64),
    Choice(&'static [&'static str]),
    /// Numbers from 0 to 100, separated by blanks.
    Percentiles,
    /// `notify-keyspace-events`: letters.
    EventFlags,
    /// `client-output-buffer-limit`: a change may name some of the classes.
    OutputLimits,
    Text,
}

#[derive(Clone, Copy)]
pub enum Class {
    Remembered,
    /// Redis, too, only changes it at the start.
    Immutable,
    /// Redis could change it. Here there is nothing to change, for this reason.
    Fixed(&'static str),
}

pub struct Parameter {
    pub name: &'static str,
    pub default: &'static str,
    pub kind: Kind,
    pub class: Class,
    /// The newer name of the same parameter.
    pub alias_of: Option<&'static str>,
}

const fn parameter(name: &'static str, default: &'static str, kind: Kind, class: Class) -> Parameter {
    Parameter { name, default, kind, class, alias_of: None }
}

pub const fn remembered(name: &'static str, default: &'static str, kind: Kind) -> Parameter {
    parameter(name, default, kind, Class::Remembered)
}

pub const fn fixed(name: &'static str, value: &'static str, reason: &'static str) -> Parameter {
    parameter(name, value, Kind::Text, Class::Fixed(reason))
}

pub const fn immutable(name: &'static str, value: &'static str) -> Parameter {
    parameter(name, value, Kind::Text, Class::Immutable)
}

impl Parameter {
    pub const fn alias_of(mut self, name: &'static str) -> Parameter {
        self.alias_of = Some(name);
        self
    }

    /// Returns the name under which the value is stored.
    pub fn kept_as(&self) -> &'static str {
        self.alias_of.unwrap_or(self.name)
    }
}
