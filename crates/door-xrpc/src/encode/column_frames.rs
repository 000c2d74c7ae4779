//! The column metadata of a cached statement, encoded once: its results mostly differ in nothing but the session's number.

use std::borrow::Cow;
use std::sync::Arc;

use sql_mysql::charset::Results;
use sql_mysql::types::Column;
use stdx::sync::Mutex;

use crate::encode::column;
use crate::frame::{self, Mode};
use crate::message::reply::{Names, Writer};

/// Longer metadata is encoded each time: cached statements are many.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// The frames that were written last. Results of other columns, or for clients that want another form, replace them.
#[derive(Default)]
pub struct ColumnFrames(Mutex<Option<EncodedColumns>>);

struct EncodedColumns {
    /// The list itself, so that its address names no other one.
    columns: Arc<[Column]>,
    form: ColumnForm,
    mode: Mode,
    frames: Box<[u8]>,
}

/// The form in which a client gets column metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ColumnForm {
    /// Without names.
    pub is_compact: bool,
    pub results: Results,
}

impl ColumnFrames {
    /// Writes the metadata of the columns.
    pub fn write(&self, writer: &mut Writer<'_>, columns: &Arc<[Column]>, form: ColumnForm) {
        let mut kept = self.0.lock();
        let begin = writer.out.len();
        if let Some(known) = &*kept
            && Arc::ptr_eq(&known.columns, columns)
            && (known.form, known.mode) == (form, writer.mode)
        {
            writer.out.extend_from_slice(&known.frames);
            return frame::renumber(&mut writer.out[begin..], writer.mode, writer.sid);
        }
        write_columns(writer, columns, form);
        let frames = &writer.out[begin..];
        if frames.len() <= KEPT_BYTES_MAX {
            *kept = Some(EncodedColumns { columns: columns.clone(), form, mode: writer.mode, frames: frames.into() });
        }
    }
}

/// Writes the metadata of the columns, a frame each.
pub fn write_columns(writer: &mut Writer<'_>, columns: &[Column], form: ColumnForm) {
    let ColumnForm { is_compact, results } = form;
    for told in columns {
        if is_compact {
            writer.column(&column::meta(told, None, results));
            continue;
        }
        let all: [Cow<'_, [u8]>; 5] =
            [&told.name, &told.org_name, &told.table, &told.org_table, &told.schema].map(|name| results.encode(name));
        let [name, original_name, table, original_table, schema] = &all;
        let names = Names { name, original_name, table, original_table, schema };
        writer.column(&column::meta(told, Some(names), results));
    }
}

#[cfg(test)]
mod tests {
    use sql_mysql::types::{MysqlType as _, Type};

    use super::*;

    const NAMED: ColumnForm = ColumnForm { is_compact: false, results: Results::UTF8 };

    fn columns(names: &[&str]) -> Arc<[Column]> {
        names.iter().map(|name| Column::computed(*name, Type::integer())).collect()
    }

    fn written(frames: &ColumnFrames, (mode, sid): (Mode, u64), columns: &Arc<[Column]>, form: ColumnForm) -> Vec<u8> {
        let mut out = b"before".to_vec();
        frames.write(&mut Writer { out: &mut out, mode, sid }, columns, form);
        out
    }

    #[test]
    fn kept_frames_are_those_that_would_be_encoded() {
        let (frames, wide) = (ColumnFrames::default(), "x".repeat(KEPT_BYTES_MAX));
        let lists = [columns(&["a", "b", "c"]), columns(&["d"]), columns(&[&wide, "e"]), columns(&[])];
        let latin = Results::named("latin1");
        let forms = [NAMED, ColumnForm { is_compact: true, ..NAMED }, ColumnForm { results: latin, ..NAMED }];
        for (mode, sid) in [(Mode::Legacy, 2), (Mode::Legacy, u64::MAX), (Mode::Galaxy(1), 7)] {
            for list in &lists {
                for form in forms {
                    let mut expected = b"before".to_vec();
                    write_columns(&mut Writer { out: &mut expected, mode, sid }, list, form);
                    for _ in 0..2 {
                        assert_eq!(written(&frames, (mode, sid), list, form), expected);
                    }
                    assert_eq!(
                        written(&frames, (mode, sid + (sid < 9) as u64), list, form).len(),
                        expected.len(),
                        "the same for another session"
                    );
                }
            }
        }
    }

    #[test]
    fn long_metadata_is_not_kept() {
        let frames = ColumnFrames::default();
        let (short, long) = (columns(&["a"]), columns(&[&"x".repeat(KEPT_BYTES_MAX)]));
        written(&frames, (Mode::Legacy, 2), &short, NAMED);
        written(&frames, (Mode::Legacy, 2), &long, NAMED);
        let kept = frames.0.lock();
        assert!(kept.as_ref().is_some_and(|known| Arc::ptr_eq(&known.columns, &short)));
    }
}
