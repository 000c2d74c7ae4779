//! Views: the text of a view is bound as a query of its own.

use std::sync::Arc;

use query::catalog::view::View;
use syntax::postgres::tree::Statement;

use crate::bind::Binder;
use crate::bind::rules::MAKER;
use crate::bind::scope::BoundQuery;
use crate::bind::typing::unsupported;
use crate::error::{PgError, Result, state};

impl Binder<'_> {
    /// Binds a view's query, in the view's `search_path` and without the names of the statement that reads it.
    pub fn view(&mut self, view: &Arc<View>) -> Result<BoundQuery> {
        if view.maker != MAKER {
            return Err(unsupported(format!("the view \"{}\" of another dialect", view.name)));
        }
        self.check_stack()?;
        if self.open_views.contains(&view.id) {
            let text = format!("infinite recursion detected in rules for relation \"{}\"", view.name);
            return Err(PgError::new(state::INVALID_OBJECT_DEFINITION, text));
        }
        if !self.views.iter().any(|known| known.id == view.id) {
            self.views.push(view.clone());
        }
        let statements = syntax::postgres::parse_script(&view.text, &|| false).map_err(|_| {
            PgError::new(state::DATA_CORRUPTED, format!("the text of view \"{}\" has no meaning", view.name))
        })?;
        let [statement] = &statements[..] else {
            return Err(PgError::new(state::DATA_CORRUPTED, format!("view \"{}\" has no query", view.name)));
        };
        let Statement::Select(query) = &statement.statement else {
            return Err(PgError::new(state::DATA_CORRUPTED, format!("view \"{}\" has no query", view.name)));
        };
        self.open_views.push(view.id);
        let path = view.modes.split(',').filter(|schema| !schema.is_empty()).map(str::to_owned).collect();
        let path = std::mem::replace(&mut self.search_path, path);
        let seen = self.view_definitions.replace(self.environment.snapshot.seen_by_view(view));
        let (commons, keyed) = (std::mem::take(&mut self.commons), std::mem::take(&mut self.keyed));
        // The text of the view has places of its own.
        let name_sites = self.name_sites.take();
        let has_no_parameters = std::mem::replace(&mut self.has_no_parameters, true);
        let bound = self.with_rights_of(view, |binder| binder.apart(|binder| binder.query(query)));
        self.has_no_parameters = has_no_parameters;
        (self.commons, self.keyed, self.name_sites) = (commons, keyed, name_sites);
        (self.search_path, self.view_definitions) = (path, seen);
        self.open_views.pop();
        let mut bound = bound?;
        for (nth, (column, name)) in bound.columns.iter_mut().zip(&view.columns).enumerate() {
            column.column.name = name.clone();
            column.origin = Some((view.id, nth as u16 + 1));
        }
        Ok(bound)
    }
}
