//! `pg_settings`.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::functions::temporal::values::short_double;
use crate::session::facts::FactsOf as _;
use crate::settings::{Kind, SETTINGS, Setting};
use crate::system::cells::{null, text, truth};
use crate::system::wanted::Wanted;

pub fn pg_settings(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let values = &ctx.facts().settings;
    let row = |(at, setting): (usize, &Setting)| {
        let (min, max) = match setting.kind {
            Kind::Integer { min, max } => (text(min.to_string()), text(max.to_string())),
            Kind::Real { min, max } => (text(short_double(min)), text(short_double(max))),
            _ => (null(), null()),
        };
        vec![
            text(setting.name),
            text(values.at(at)),
            setting.unit.name().map_or(null(), text),
            text(setting.category),
            text(setting.description),
            null(),
            text(setting.context.name()),
            text(setting.kind.name()),
            text(values.source(at).name()),
            min,
            max,
            null(),
            text(setting.default),
            text(values.initial(at)),
            null(),
            null(),
            truth(false),
        ]
    };
    let rows: Vec<Row> = SETTINGS.iter().enumerate().filter(|(_, setting)| !setting.is_hidden()).map(row).collect();
    rows.into_iter().try_for_each(|row| give(row, ctx))
}
