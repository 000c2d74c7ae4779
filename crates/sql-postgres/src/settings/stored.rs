//! Settings of roles and databases: texts `name=value`, which `pg_db_role_setting` shows and new sessions apply.

use crate::error::{PgError, Result, state};
use crate::settings::values::{Values, check_custom_name};
use crate::settings::{Context, SETTINGS, find, refusal};

/// Splits a text at the sign between name and value.
pub fn split(text: &str) -> (&str, &str) {
    text.split_once('=').unwrap_or((text, ""))
}

/// Returns the place of a setting among texts.
fn place(texts: &[String], name: &str) -> Option<usize> {
    texts.iter().position(|text| split(text).0.eq_ignore_ascii_case(name))
}

/// Adds a setting, or replaces its value in place, under the name that the table of settings has.
pub fn put(texts: &mut Vec<String>, name: &str, value: &str) {
    let name = find(name).map_or(name, |at| SETTINGS[at].name);
    let text = format!("{name}={value}");
    match place(texts, name) {
        Some(at) => texts[at] = text,
        None => texts.push(text),
    }
}

pub fn remove(texts: &mut Vec<String>, name: &str) {
    if let Some(at) = place(texts, name) {
        texts.remove(at);
    }
}

/// Removes the settings that a role may set.
pub fn remove_all(texts: &mut Vec<String>, is_super: bool) {
    texts.retain(|text| !may_set(split(text).0, is_super));
}

fn may_set(name: &str, is_super: bool) -> bool {
    match find(name).map(|at| SETTINGS[at].context) {
        Some(Context::User) => true,
        Some(Context::Superuser) => is_super,
        Some(_) => false,
        None => is_super && check_custom_name(name).is_ok(),
    }
}

/// Fails unless a role may store a setting of that name. Those whose names have a dot may later turn out to be a superuser's.
pub fn check_name(name: &str, is_super: bool) -> Result<()> {
    match find(name) {
        None => check_custom_name(name)?,
        Some(at) => match (refusal(&SETTINGS[at]), SETTINGS[at].name) {
            (Some(refused), _) => return Err(refused),
            // They are those of one transaction.
            (None, name) if name.starts_with("transaction_") => {
                return Err(PgError::unsupported(format!("\"{name}\" as a setting of roles and databases")));
            }
            _ => {}
        },
    }
    if may_set(name, is_super) {
        return Ok(());
    }
    let message = format!("permission denied to set parameter \"{name}\"");
    Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message))
}

/// The check of a value: `None` if it fits, or the notice of one that may fit later, when the object that it names exists.
pub fn check_value(values: &Values, name: &str, value: &str) -> Result<Option<PgError>> {
    let Some(at) = find(name) else { return Ok(None) };
    let kind = match SETTINGS[at].name {
        "default_tablespace" => "tablespace",
        "default_table_access_method" => "table access method",
        "default_text_search_config" => "text search configuration",
        _ => return values.check(at, value).map(|()| None),
    };
    match values.check(at, value) {
        Ok(()) => Ok(None),
        Err(_) => Ok(Some(PgError::new(state::UNDEFINED_OBJECT, format!("{kind} \"{value}\" does not exist")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_places_and_take_the_tables_names() {
        let mut texts = Vec::new();
        put(&mut texts, "WORK_MEM", "1MB");
        put(&mut texts, "my.X", "a=b");
        put(&mut texts, "datestyle", "iso");
        put(&mut texts, "work_mem", "2MB");
        put(&mut texts, "My.x", "c");
        assert_eq!(texts, ["work_mem=2MB", "My.x=c", "DateStyle=iso"]);
        assert_eq!(split("my.x=a=b"), ("my.x", "a=b"));
        remove(&mut texts, "DATESTYLE");
        remove(&mut texts, "jit");
        remove_all(&mut texts, false);
        assert_eq!(texts, ["My.x=c"], "an ordinary role keeps what only a superuser may set");
        remove_all(&mut texts, true);
        assert!(texts.is_empty());
    }
}
