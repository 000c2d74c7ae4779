//! FROM: the range table of a query and the names in it.

use syntax::postgres::tree::{Alias, FromItem, Ident, Join, JoinKind, JoinQual, TableRef};

use crate::bind::from::FoundRelation;
use crate::bind::typing::unsupported;
use crate::define::names::schema_of;
use crate::deparse::analyse::Analyser;
use crate::deparse::node::{FromSource, QueryBody, SqlItem, SqlNode, Table, Ty};
use crate::deparse::scope::{NamedSource, column};
use crate::error::Result;
use crate::system::view::{columns, type_of};

/// The names of an operand of a join.
struct Side {
    item: SqlItem,
    names: Vec<NamedSource>,
}

impl Analyser<'_, '_> {
    /// Adds the items of FROM to the open scope.
    pub fn from(&mut self, items: &[FromItem]) -> Result<Vec<SqlItem>> {
        let mut all = Vec::new();
        for item in items {
            let side = self.analyse_item(item)?;
            self.scope().names.extend(side.names);
            all.push(side.item);
        }
        Ok(all)
    }

    fn analyse_item(&mut self, item: &FromItem) -> Result<Side> {
        let mut side = self.table_ref(&item.first)?;
        for join in &item.joins {
            side = self.join(side, join)?;
        }
        Ok(side)
    }

    fn table_ref(&mut self, table: &TableRef) -> Result<Side> {
        match table {
            TableRef::Relation(relation) => {
                if relation.sample.is_some() {
                    return Err(unsupported("TABLESAMPLE in a definition"));
                }
                let (source, own, columns, schema) = self.relation(&relation.name)?;
                let schema = schema.filter(|_| relation.alias.is_none());
                self.entry(source, own, schema, columns, relation.alias.as_ref(), false)
            }
            TableRef::Subselect(subselect) => {
                let query = if subselect.lateral {
                    self.query(&subselect.query)?
                } else {
                    self.apart(|analyser| analyser.query(&subselect.query))?
                };
                let columns = query.columns.clone();
                // A list of values alone is an entry of its own kind.
                let is_plain = query.with.is_empty()
                    && query.order_by.is_empty()
                    && query.limit.is_none()
                    && query.offset.is_none();
                let source = match query.body {
                    QueryBody::Values(rows) if is_plain => FromSource::Values(rows),
                    _ => FromSource::Subquery(query),
                };
                self.entry(source, String::new(), None, columns, subselect.alias.as_ref(), subselect.lateral)
            }
            TableRef::Joined(joined) => {
                let side = self.analyse_item(&joined.item)?;
                match (&joined.alias, side.item) {
                    (None, item) => Ok(Side { item, ..side }),
                    _ => Err(unsupported("an alias of a join in a definition")),
                }
            }
            TableRef::Function(_) => Err(unsupported("a function in FROM of a definition")),
        }
    }

    /// Returns the source of a name in FROM, its own name, its columns and its schema.
    #[allow(clippy::type_complexity)]
    fn relation(
        &mut self,
        name: &syntax::postgres::tree::RangeVar,
    ) -> Result<(FromSource, String, Vec<(String, Ty)>, Option<String>)> {
        if name.schema.is_none()
            && let Some(common) = self.commons.iter().rev().find(|common| common.name == name.name)
        {
            let columns = [&common.query.columns[..], &common.added].concat();
            return Ok((FromSource::Common(name.name.clone()), name.name.clone(), columns, None));
        }
        let (schema, columns) = match self.binder.find_relation(name)? {
            FoundRelation::Table(table) => {
                let columns: Vec<(String, Ty)> =
                    columns(&table).map(|(_, column)| (column.name.clone(), type_of(column))).collect();
                (schema_of(&table.schema).to_owned(), columns)
            }
            FoundRelation::View(view) => {
                let types = view.types.iter().map(crate::system::view::type_of_view_column);
                (schema_of(&view.schema).to_owned(), view.columns.iter().cloned().zip(types).collect())
            }
            FoundRelation::System(system) => {
                let typed = |(name, ty): &(&'static str, query::types::Type)| {
                    ((*name).to_owned(), crate::system::view::type_of_view_column(ty))
                };
                (system.schema.to_owned(), system.columns.iter().map(typed).collect())
            }
            FoundRelation::Sequence(_) => return Err(unsupported("a sequence in FROM of a definition")),
        };
        let source = FromSource::Relation { schema: schema.clone(), name: name.name.clone(), only: name.only };
        Ok((source, name.name.clone(), columns, Some(schema)))
    }

    /// Adds an entry to the range table.
    fn entry(
        &mut self,
        source: FromSource,
        own: String,
        schema: Option<String>,
        mut columns: Vec<(String, Ty)>,
        alias: Option<&Alias>,
        is_lateral: bool,
    ) -> Result<Side> {
        let shown = alias.map_or(own, |alias| alias.name.value.clone());
        let names: &[Ident] = alias.map_or(&[], |alias| &alias.columns);
        if names.len() > columns.len() {
            return Err(unsupported("more names than columns in a definition"));
        }
        columns.iter_mut().zip(names).for_each(|((name, _), given)| name.clone_from(&given.value));
        let table = Table {
            source,
            alias: shown.clone(),
            has_alias: alias.is_some(),
            columns: columns.clone(),
            has_column_aliases: !names.is_empty(),
            is_lateral,
            is_join: false,
        };
        let at = self.scope().add(table);
        let columns = columns.into_iter().enumerate().map(|(nth, (name, ty))| (name, column(at, nth, ty))).collect();
        let names = vec![NamedSource { alias: shown, schema, columns, are_columns_visible: true }];
        Ok(Side { item: SqlItem::Table(at), names })
    }

    fn join(&mut self, left: Side, join: &Join) -> Result<Side> {
        let right = self.analyse_item(&join.right)?;
        let kind = match join.kind {
            JoinKind::Inner => "JOIN",
            JoinKind::Left => "LEFT JOIN",
            JoinKind::Right => "RIGHT JOIN",
            JoinKind::Full => "FULL JOIN",
        };
        let using: Vec<String> = match &join.qual {
            JoinQual::Using { columns, alias: None } => columns.iter().map(|name| name.value.clone()).collect(),
            JoinQual::Using { .. } => return Err(unsupported("an alias of USING in a definition")),
            JoinQual::Natural => common_names(&left.names, &right.names),
            JoinQual::Cross | JoinQual::On(_) => Vec::new(),
        };
        let mut names = left.names;
        let split = names.len();
        names.extend(right.names);
        // Joins are entries of the range table too.
        self.scope().add(Table {
            source: FromSource::Join,
            alias: String::new(),
            has_alias: false,
            columns: Vec::new(),
            has_column_aliases: false,
            is_lateral: false,
            is_join: true,
        });
        let on = match &join.qual {
            JoinQual::On(condition) => {
                let before = self.scope().names.len();
                self.scope().names.extend(names.iter().cloned());
                let condition = self.condition(condition);
                self.scope().names.truncate(before);
                Some(condition?)
            }
            _ => None,
        };
        if !using.is_empty() {
            self.merge(&mut names, split, &using, join.kind)?;
        }
        let (left, right) = (Box::new(left.item), Box::new(right.item));
        Ok(Side { item: SqlItem::Join { kind, left, right, on, using, alias: None }, names })
    }

    /// Makes one column of those of USING.
    fn merge(&mut self, names: &mut Vec<NamedSource>, split: usize, using: &[String], kind: JoinKind) -> Result<()> {
        let mut merged = Vec::new();
        for name in using {
            let find = |names: &[NamedSource]| {
                let visible = names.iter().filter(|named| named.are_columns_visible);
                visible.flat_map(|named| &named.columns).find(|(known, _)| known == name).map(|(_, node)| node.clone())
            };
            let (Some(left), Some(right)) = (find(&names[..split]), find(&names[split..])) else {
                return Err(unsupported("a column of USING in a definition"));
            };
            let both = vec![left.clone(), right.clone()];
            let ty = self.common(&both)?;
            let node = match kind {
                JoinKind::Inner if left.ty().0 != ty => right,
                JoinKind::Inner | JoinKind::Left => left,
                JoinKind::Right => right,
                JoinKind::Full => SqlNode::Coalesce(self.coerce_all(both, ty)?, (ty, -1)),
            };
            merged.push((name.clone(), node));
        }
        let rest = names.iter().filter(|named| named.are_columns_visible).flat_map(|named| named.columns.clone());
        merged.extend(rest.filter(|(name, _)| !using.contains(name)).collect::<Vec<_>>());
        names.iter_mut().for_each(|named| named.are_columns_visible = false);
        names.push(NamedSource { alias: String::new(), schema: None, columns: merged, are_columns_visible: true });
        Ok(())
    }
}

fn common_names(left: &[NamedSource], right: &[NamedSource]) -> Vec<String> {
    let of = |names: &[NamedSource]| -> Vec<String> {
        let visible = names.iter().filter(|named| named.are_columns_visible);
        visible.flat_map(|named| named.columns.iter().map(|(name, _)| name.clone())).collect()
    };
    let right = of(right);
    of(left).into_iter().filter(|name| right.contains(name)).collect()
}
