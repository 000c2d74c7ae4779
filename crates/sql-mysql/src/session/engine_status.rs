//! SHOW ENGINE INNODB STATUS and SHOW PRIVILEGES.

use crate::batch::Row;
use crate::error::Result;
use crate::rights::privilege::{ALL, DATABASE, TABLE};
use crate::session::Session;
use crate::session::show::{Answer, texts};
use crate::system;
use crate::value::Value;

/// MySQL's contexts and comments for static privileges.
const MEANT: &[(&str, &str, &str)] = &[
    ("SELECT", "Tables", "To retrieve rows from table"),
    ("INSERT", "Tables", "To insert data into tables"),
    ("UPDATE", "Tables", "To update existing rows"),
    ("DELETE", "Tables", "To delete existing rows"),
    ("CREATE", "Databases,Tables,Indexes", "To create new databases and tables"),
    ("DROP", "Databases,Tables", "To drop databases, tables, and views"),
    ("RELOAD", "Server Admin", "To reload or refresh tables, logs and privileges"),
    ("SHUTDOWN", "Server Admin", "To shut down the server"),
    ("PROCESS", "Server Admin", "To view the plain text of currently executing queries"),
    ("FILE", "File access on server", "To read and write files on the server"),
    ("REFERENCES", "Databases,Tables", "To have references on tables"),
    ("INDEX", "Tables", "To create or drop indexes"),
    ("ALTER", "Tables", "To alter the table"),
    ("SHOW DATABASES", "Server Admin", "To see all databases with SHOW DATABASES"),
    ("SUPER", "Server Admin", "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc."),
    ("CREATE TEMPORARY TABLES", "Databases", "To use CREATE TEMPORARY TABLE"),
    ("LOCK TABLES", "Databases", "To use LOCK TABLES (together with SELECT privilege)"),
    ("EXECUTE", "Functions,Procedures", "To execute stored routines"),
    ("REPLICATION SLAVE", "Server Admin", "To read binary log events from the source"),
    ("REPLICATION CLIENT", "Server Admin", "To ask where the slave or master servers are"),
    ("CREATE VIEW", "Tables", "To create new views"),
    ("SHOW VIEW", "Tables", "To see views with SHOW CREATE VIEW"),
    ("CREATE ROUTINE", "Databases", "To use CREATE FUNCTION/PROCEDURE"),
    ("ALTER ROUTINE", "Functions,Procedures", "To alter or drop stored functions/procedures"),
    ("CREATE USER", "Server Admin", "To create new users"),
    ("EVENT", "Server Admin", "To create, alter, drop and execute events"),
    ("TRIGGER", "Tables", "To use triggers"),
    ("CREATE TABLESPACE", "Server Admin", "To create/alter/drop tablespaces"),
    ("CREATE ROLE", "Server Admin", "To create new roles"),
    ("DROP ROLE", "Server Admin", "To drop roles"),
];

/// Returns `CREATE VIEW` as `Create view`.
fn capitalized(words: &str) -> String {
    let lower = words.to_ascii_lowercase();
    lower[..1].to_ascii_uppercase() + &lower[1..]
}

impl Session {
    /// SHOW PRIVILEGES: lists the privileges that can be granted, in MySQL's words.
    pub(super) fn show_privileges(&mut self) -> Answer {
        let mut rows: Vec<Row> = Vec::new();
        for row in ALL {
            let meant = MEANT.iter().find(|(name, ..)| *name == row.name);
            let name = if row.is_dynamic { row.name.to_owned() } else { capitalized(row.name) };
            let context = match meant {
                Some((_, context, _)) => context,
                None if row.levels & (DATABASE | TABLE) == 0 => "Server Admin",
                None => "Databases",
            };
            let comment = meant.map_or("", |(_, _, comment)| comment);
            rows.push(vec![Value::text(name), Value::text(context), Value::text(comment)]);
        }
        for (name, context, comment) in [
            (
                "Grant option",
                "Databases,Tables,Functions,Procedures",
                "To give to other users those privileges you possess",
            ),
            ("Usage", "Server Admin", "No privileges - allow connect only"),
        ] {
            rows.push(vec![Value::text(name), Value::text(context), Value::text(comment)]);
        }
        (texts(&["Privilege", "Context", "Comment"]), rows)
    }

    /// SHOW ENGINE INNODB STATUS: a section for each part of the engine.
    pub(super) fn show_engine_status(&mut self) -> Result<Answer> {
        let facts = system::status::of_server(&self.db);
        let fact = |name: &str| facts.iter().find(|(known, _)| *known == name).map_or(0, |(_, number)| *number);
        let counted = system::status::rows(&mut self.ctx, true);
        let count = |name: &str| {
            let row = counted.iter().find(|row| row[0] == Value::text(name));
            row.map_or_else(|| "0".to_owned(), |row| crate::instance::variables::text_of(&row[1]))
        };
        let rule = "=====================================";
        let mut out = format!(
            "\n{rule}\n{} BELUGA MONITOR OUTPUT\n{rule}\n",
            crate::scalar::temporal::Zone::utc().local(self.ctx.now)
        );
        let mut chapter = |title: &str, lines: &[String]| {
            let line = "-".repeat(title.len());
            out += &format!("{line}\n{title}\n{line}\n{}\n", lines.join("\n"));
        };
        chapter(
            "TRANSACTIONS",
            &[
                format!("Commits {}, rollbacks {}", count("Handler_commit"), count("Handler_rollback")),
                format!(
                    "Sessions {}, of them running a statement {}",
                    fact("Threads_connected"),
                    fact("Threads_running")
                ),
            ],
        );
        chapter(
            "LOG",
            &[
                format!("Log sequence number          {}", fact("Innodb_redo_log_current_lsn")),
                format!("Last checkpoint at           {}", fact("Innodb_redo_log_checkpoint_lsn")),
            ],
        );
        chapter(
            "BUFFER POOL AND MEMORY",
            &[
                format!("Buffer pool size   {}", fact("Innodb_buffer_pool_pages_total")),
                format!("Free buffers       {}", fact("Innodb_buffer_pool_pages_free")),
                format!("Database pages     {}", fact("Innodb_buffer_pool_pages_data")),
                format!("Modified db pages  {}", fact("Innodb_buffer_pool_pages_dirty")),
            ],
        );
        chapter(
            "ROW OPERATIONS",
            &[format!(
                "Number of rows inserted {}, updated {}, deleted {}",
                count("Innodb_rows_inserted"),
                count("Innodb_rows_updated"),
                count("Innodb_rows_deleted")
            )],
        );
        out += "----------------------------\nEND OF BELUGA MONITOR OUTPUT\n============================\n";
        Ok((texts(&["Type", "Name", "Status"]), vec![vec![Value::text("InnoDB"), Value::text(""), Value::text(out)]]))
    }
}
