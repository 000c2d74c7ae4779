//! Attributes of an account as a role in SQL.

const BYTES: usize = 13;

const IS_SUPER: u8 = 1;
const CREATES_DATABASES: u8 = 2;
const CREATES_ROLES: u8 = 4;
const INHERITS_NOT: u8 = 8;
const HAS_END: u8 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleAttributes {
    pub is_super: bool,
    pub creates_databases: bool,
    pub creates_roles: bool,
    /// Memberships that say nothing else give their rights at once.
    pub inherits: bool,
    /// The end of the password's validity, in microseconds since 2000.
    pub valid_until: Option<i64>,
    /// The most sessions at once; -1 without a limit.
    pub connections_max: i32,
}

impl Default for RoleAttributes {
    fn default() -> RoleAttributes {
        RoleAttributes {
            is_super: false,
            creates_databases: false,
            creates_roles: false,
            inherits: true,
            valid_until: None,
            connections_max: -1,
        }
    }
}

impl RoleAttributes {
    pub(super) fn encode(&self) -> [u8; BYTES] {
        let bits = [
            (self.is_super, IS_SUPER),
            (self.creates_databases, CREATES_DATABASES),
            (self.creates_roles, CREATES_ROLES),
            (!self.inherits, INHERITS_NOT),
            (self.valid_until.is_some(), HAS_END),
        ];
        let mut bytes = [0; BYTES];
        bytes[0] = bits.into_iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, bit)| flags | bit);
        bytes[1..5].copy_from_slice(&self.connections_max.to_le_bytes());
        bytes[5..].copy_from_slice(&self.valid_until.unwrap_or(0).to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; BYTES]) -> Option<RoleAttributes> {
        let (flags, rest) = bytes.split_first()?;
        let (limit, end) = rest.split_first_chunk()?;
        let end = i64::from_le_bytes(end.try_into().ok()?);
        Some(RoleAttributes {
            is_super: flags & IS_SUPER != 0,
            creates_databases: flags & CREATES_DATABASES != 0,
            creates_roles: flags & CREATES_ROLES != 0,
            inherits: flags & INHERITS_NOT == 0,
            valid_until: (flags & HAS_END != 0).then_some(end),
            connections_max: i32::from_le_bytes(*limit),
        })
    }
}
