//! Optimizer hints: index hints, STRAIGHT_JOIN, MAX_EXECUTION_TIME. Other hints in comments are ignored.

use syntax::tree::{HintAction, HintScope, IndexHint, Query, QueryBody};

use crate::error::{self, Result};
use query::catalog::table::Table;
use query::nodes::relation::Allowed;

/// Evaluates USE, FORCE and IGNORE INDEX. An unknown index is error 1176.
pub fn allowed(table: &Table, alias: &str, hints: &[IndexHint]) -> Result<Option<Allowed>> {
    let named = hints.iter().flat_map(|hint| &hint.indexes).map(|name| &name.value);
    let is_missing = |name: &&String| {
        table.index(name).is_none() && !(name.eq_ignore_ascii_case("primary") && table.primary.is_some())
    };
    if let Some(name) = named.into_iter().find(is_missing) {
        return Err(error::KEY_DOES_NOT_EXIST.with(&[name, &alias]));
    }
    let hints: Vec<&IndexHint> =
        hints.iter().filter(|hint| matches!(hint.scope, None | Some(HintScope::Join))).collect();
    if hints.is_empty() {
        return Ok(None);
    }
    let all: Vec<usize> = (0..table.indexes.len()).collect();
    let chooses = hints.iter().any(|hint| hint.action != HintAction::Ignore);
    let mut allowed = match chooses {
        true => Allowed { primary: false, indexes: Vec::new(), forced: false },
        false => Allowed { primary: true, indexes: all, forced: false },
    };
    for IndexHint { action, scope: _, indexes } in hints {
        let ignores = *action == HintAction::Ignore;
        allowed.forced |= *action == HintAction::Force;
        for name in indexes {
            if name.value.eq_ignore_ascii_case("primary") && table.primary.is_some() {
                allowed.primary = !ignores;
                continue;
            }
            let Some(at) = table.index(&name.value) else { continue };
            allowed.indexes.retain(|known| *known != at);
            if !ignores {
                allowed.indexes.push(at);
            }
        }
    }
    Ok(Some(allowed))
}

/// Returns `/*+ MAX_EXECUTION_TIME(1000) */` of the outermost SELECT, in milliseconds.
pub fn max_execution_ms(query: &Query) -> Option<u64> {
    let QueryBody::Select(select) = &query.body else { return None };
    select.hints.iter().find_map(|hint| {
        let text = hint.to_ascii_uppercase();
        let rest = &text[text.find("MAX_EXECUTION_TIME")? + "MAX_EXECUTION_TIME".len()..];
        let inside = rest.trim_start().strip_prefix('(')?;
        inside[..inside.find(')')?].trim().parse().ok()
    })
}
