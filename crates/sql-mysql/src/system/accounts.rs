//! Privileges as tables: those of information_schema, and MySQL's account tables, which are read-only and changed by
//! account statements.
//!
//! Without SELECT on `mysql` a session sees its own account in information_schema and nothing of `mysql`.

use crate::system::column::{DATE_TIME, LONG_TEXT, NUMBER, chars};
use crate::types::Type;
use std::sync::Arc;

use datum::Result;
use engine::Account;

use crate::batch::Row;
use crate::rights::privilege::{self, Privileges};
use crate::rights::{Grants, Who};
use crate::system::text;
use crate::system::viewer::viewer;
use crate::value::Value;
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemRows::Computed;
use query::nodes::system_table::SystemTable;

const NAME: Type = chars(64);
const HOST: Type = chars(255);
const USER: Type = chars(32);
const GRANTEE: Type = chars(292);
const FLAG: Type = chars(1);

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "information_schema",
        name: "USER_PRIVILEGES",
        columns: &[("GRANTEE", GRANTEE), ("TABLE_CATALOG", NAME), ("PRIVILEGE_TYPE", NAME), ("IS_GRANTABLE", chars(3))],
        rows: Computed(user_privileges),
    },
    SystemTable {
        schema: "information_schema",
        name: "SCHEMA_PRIVILEGES",
        columns: &[
            ("GRANTEE", GRANTEE),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("PRIVILEGE_TYPE", NAME),
            ("IS_GRANTABLE", chars(3)),
        ],
        rows: Computed(schema_privileges),
    },
    SystemTable {
        schema: "information_schema",
        name: "TABLE_PRIVILEGES",
        columns: &[
            ("GRANTEE", GRANTEE),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("PRIVILEGE_TYPE", NAME),
            ("IS_GRANTABLE", chars(3)),
        ],
        rows: Computed(table_privileges),
    },
    SystemTable {
        schema: "information_schema",
        name: "COLUMN_PRIVILEGES",
        columns: &[
            ("GRANTEE", GRANTEE),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("PRIVILEGE_TYPE", NAME),
            ("IS_GRANTABLE", chars(3)),
        ],
        rows: Computed(column_privileges),
    },
    SystemTable {
        schema: "mysql",
        name: "user",
        columns: &[
            ("Host", HOST),
            ("User", USER),
            ("Select_priv", FLAG),
            ("Insert_priv", FLAG),
            ("Update_priv", FLAG),
            ("Delete_priv", FLAG),
            ("Create_priv", FLAG),
            ("Drop_priv", FLAG),
            ("Reload_priv", FLAG),
            ("Shutdown_priv", FLAG),
            ("Process_priv", FLAG),
            ("File_priv", FLAG),
            ("Grant_priv", FLAG),
            ("References_priv", FLAG),
            ("Index_priv", FLAG),
            ("Alter_priv", FLAG),
            ("Show_db_priv", FLAG),
            ("Super_priv", FLAG),
            ("Create_tmp_table_priv", FLAG),
            ("Lock_tables_priv", FLAG),
            ("Execute_priv", FLAG),
            ("Repl_slave_priv", FLAG),
            ("Repl_client_priv", FLAG),
            ("Create_view_priv", FLAG),
            ("Show_view_priv", FLAG),
            ("Create_routine_priv", FLAG),
            ("Alter_routine_priv", FLAG),
            ("Create_user_priv", FLAG),
            ("Event_priv", FLAG),
            ("Trigger_priv", FLAG),
            ("Create_tablespace_priv", FLAG),
            ("ssl_type", chars(9)),
            ("ssl_cipher", LONG_TEXT),
            ("x509_issuer", LONG_TEXT),
            ("x509_subject", LONG_TEXT),
            ("max_questions", NUMBER),
            ("max_updates", NUMBER),
            ("max_connections", NUMBER),
            ("max_user_connections", NUMBER),
            ("plugin", NAME),
            ("authentication_string", LONG_TEXT),
            ("password_expired", FLAG),
            ("password_last_changed", DATE_TIME),
            ("password_lifetime", NUMBER),
            ("account_locked", FLAG),
            ("Create_role_priv", FLAG),
            ("Drop_role_priv", FLAG),
        ],
        rows: Computed(user),
    },
    SystemTable {
        schema: "mysql",
        name: "db",
        columns: &[
            ("Host", HOST),
            ("Db", NAME),
            ("User", USER),
            ("Select_priv", FLAG),
            ("Insert_priv", FLAG),
            ("Update_priv", FLAG),
            ("Delete_priv", FLAG),
            ("Create_priv", FLAG),
            ("Drop_priv", FLAG),
            ("Grant_priv", FLAG),
            ("References_priv", FLAG),
            ("Index_priv", FLAG),
            ("Alter_priv", FLAG),
            ("Create_tmp_table_priv", FLAG),
            ("Lock_tables_priv", FLAG),
            ("Create_view_priv", FLAG),
            ("Show_view_priv", FLAG),
            ("Create_routine_priv", FLAG),
            ("Alter_routine_priv", FLAG),
            ("Execute_priv", FLAG),
            ("Event_priv", FLAG),
            ("Trigger_priv", FLAG),
        ],
        rows: Computed(db),
    },
    SystemTable {
        schema: "mysql",
        name: "tables_priv",
        columns: &[
            ("Host", HOST),
            ("Db", NAME),
            ("User", USER),
            ("Table_name", NAME),
            ("Grantor", chars(288)),
            ("Timestamp", DATE_TIME),
            ("Table_priv", chars(256)),
            ("Column_priv", chars(64)),
        ],
        rows: Computed(tables_priv),
    },
    SystemTable {
        schema: "mysql",
        name: "columns_priv",
        columns: &[
            ("Host", HOST),
            ("Db", NAME),
            ("User", USER),
            ("Table_name", NAME),
            ("Column_name", NAME),
            ("Timestamp", DATE_TIME),
            ("Column_priv", chars(64)),
        ],
        rows: Computed(columns_priv),
    },
    SystemTable {
        schema: "mysql",
        name: "role_edges",
        columns: &[
            ("FROM_HOST", HOST),
            ("FROM_USER", USER),
            ("TO_HOST", HOST),
            ("TO_USER", USER),
            ("WITH_ADMIN_OPTION", FLAG),
        ],
        rows: Computed(role_edges),
    },
    SystemTable {
        schema: "mysql",
        name: "default_roles",
        columns: &[("HOST", HOST), ("USER", USER), ("DEFAULT_ROLE_HOST", HOST), ("DEFAULT_ROLE_USER", USER)],
        rows: Computed(default_roles),
    },
];

/// An account, its name in SQL, and its grants.
type Entry = (Arc<Account>, Who, Grants);

fn entries(ctx: &mut EvalContext) -> Result<Vec<Entry>> {
    let db = viewer(ctx).db.clone();
    let accounts = db.engine().accounts();
    let is_known = |name: &str| accounts.get(name).is_some();
    let entry = |account: Arc<Account>| {
        let grants = Grants::of(&account)?;
        Ok((account.clone(), Who::of(&account.name, is_known), grants))
    };
    accounts.list().into_iter().map(entry).collect()
}

/// Returns the accounts that the session may see.
fn seen(ctx: &mut EvalContext) -> Result<Vec<Entry>> {
    let rights = viewer(ctx).rights.clone();
    let sees_all = rights.database("mysql").has(Privileges::SELECT);
    Ok(entries(ctx)?.into_iter().filter(|(_, who, _)| sees_all || *who == rights.who).collect())
}

fn yes_no(yes: bool) -> Value {
    text(if yes { "YES" } else { "NO" })
}

fn flag(yes: bool) -> Value {
    text(if yes { "Y" } else { "N" })
}

/// Emits a row for each privilege, or one of USAGE for an empty set if `bare`.
fn each(set: Privileges, bare: bool, out: &mut Vec<Row>, row: impl Fn(&str, Value) -> Row) {
    let grantable = yes_no(set.has(Privileges::GRANT));
    let names = set.names();
    if names.is_empty() && bare {
        out.push(row("USAGE", grantable));
        return;
    }
    out.extend(names.into_iter().map(|name| row(name, grantable.clone())));
}

fn user_privileges(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (_, who, grants) in seen(ctx)? {
        each(grants.global, true, &mut rows, |name, grantable| {
            vec![text(who.to_string()), text("def"), text(name), grantable]
        });
    }
    Ok(rows)
}

fn schema_privileges(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (_, who, grants) in seen(ctx)? {
        for (pattern, set) in &grants.databases {
            each(*set, true, &mut rows, |name, grantable| {
                vec![text(who.to_string()), text("def"), text(pattern), text(name), grantable]
            });
        }
    }
    Ok(rows)
}

fn table_privileges(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (_, who, grants) in seen(ctx)? {
        for ((schema, table), of) in &grants.tables {
            each(of.table, false, &mut rows, |name, grantable| {
                vec![text(who.to_string()), text("def"), text(schema), text(table), text(name), grantable]
            });
        }
    }
    Ok(rows)
}

fn column_privileges(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (_, who, grants) in seen(ctx)? {
        for ((schema, table), of) in &grants.tables {
            for (column, set) in &of.columns {
                each(*set | of.table & Privileges::GRANT, false, &mut rows, |name, grantable| {
                    let (schema, table, column) = (text(schema), text(table), text(column));
                    vec![text(who.to_string()), text("def"), schema, table, column, text(name), grantable]
                });
            }
        }
    }
    Ok(rows)
}

/// Returns the value of a column like `Select_priv`, or None for other columns.
fn privilege_column(name: &str, set: Privileges) -> Option<Value> {
    if name == "Grant_priv" {
        return Some(flag(set.has(Privileges::GRANT)));
    }
    privilege::ALL.iter().find(|row| row.column == name).map(|row| flag(set.has(row.set)))
}

fn user(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let table = crate::system::find("mysql", "user");
    let columns = table.map_or(&[][..], |table| table.columns);
    let row = |(account, who, grants): Entry| -> Row {
        let verifier = account.verifier.as_ref();
        let value = |(name, _): &(&'static str, Type)| {
            privilege_column(name, grants.global).unwrap_or_else(|| match *name {
                "Host" => text(&who.host),
                "User" => text(&who.user),
                "ssl_type" => text(if account.needs_tls { "ANY" } else { "" }),
                "plugin" => text(verifier.map_or("caching_sha2_password", |verifier| verifier.plugin())),
                "authentication_string" => {
                    text(verifier.map_or(String::new(), |known| String::from_utf8_lossy(&known.encode()).into_owned()))
                }
                "password_expired" => flag(account.expired),
                "account_locked" => flag(!account.enabled),
                "password_last_changed" | "password_lifetime" => Value::Null,
                name if name.starts_with("max_") => Value::UInt(0),
                _ => text(""),
            })
        };
        columns.iter().map(value).collect()
    };
    Ok(entries(ctx)?.into_iter().map(row).collect())
}

fn db(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let table = crate::system::find("mysql", "db");
    let columns = table.map_or(&[][..], |table| table.columns);
    let mut rows = Vec::new();
    for (_, who, grants) in entries(ctx)? {
        for (pattern, set) in &grants.databases {
            let value = |(name, _): &(&'static str, Type)| match *name {
                "Host" => text(&who.host),
                "User" => text(&who.user),
                "Db" => text(pattern),
                name => privilege_column(name, *set).unwrap_or(Value::Null),
            };
            rows.push(columns.iter().map(value).collect());
        }
    }
    Ok(rows)
}

/// Returns `Select,Insert`, as in MySQL's SET columns.
fn set_words(set: Privileges) -> Value {
    let title = |name: &str| match name {
        "CREATE VIEW" => "Create View".to_owned(),
        "SHOW VIEW" => "Show view".to_owned(),
        name => format!("{}{}", &name[..1], name[1..].to_ascii_lowercase()),
    };
    let mut words: Vec<String> = set.names().into_iter().map(title).collect();
    if set.has(Privileges::GRANT) {
        words.push("Grant".to_owned());
    }
    text(words.join(","))
}

fn tables_priv(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (_, who, grants) in entries(ctx)? {
        for ((schema, table), of) in &grants.tables {
            let columns = of.columns.values().fold(Privileges::NONE, |set, more| set | *more);
            let (host, user) = (text(&who.host), text(&who.user));
            let (words, columns) = (set_words(of.table), set_words(columns));
            rows.push(vec![host, text(schema), user, text(table), text(""), Value::Null, words, columns]);
        }
    }
    Ok(rows)
}

fn columns_priv(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (_, who, grants) in entries(ctx)? {
        for ((schema, table), of) in &grants.tables {
            for (column, set) in &of.columns {
                let (host, user) = (text(&who.host), text(&who.user));
                rows.push(vec![host, text(schema), user, text(table), text(column), Value::Null, set_words(*set)]);
            }
        }
    }
    Ok(rows)
}

fn role_edges(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let all = entries(ctx)?;
    let who = |key: &str| all.iter().find(|(account, ..)| account.name == key).map(|(_, who, _)| who.clone());
    let mut rows = Vec::new();
    for (_, to, grants) in &all {
        for (role, admin) in &grants.roles {
            if let Some(from) = who(role) {
                rows.push(vec![text(from.host), text(from.user), text(&to.host), text(&to.user), flag(*admin)]);
            }
        }
    }
    Ok(rows)
}

fn default_roles(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let all = entries(ctx)?;
    let who = |key: &str| all.iter().find(|(account, ..)| account.name == key).map(|(_, who, _)| who.clone());
    let mut rows = Vec::new();
    for (_, of, grants) in &all {
        for role in grants.default_roles.iter().filter_map(|role| who(role)) {
            rows.push(vec![text(&of.host), text(&of.user), text(role.host), text(role.user)]);
        }
    }
    Ok(rows)
}
