//! Libraries of functions in Rust.

use mlua::{IntoLuaMulti, Lua, MultiValue, Result, Table};

use crate::arguments::Arguments;

/// Adds a function to a library.
pub fn add<R: IntoLuaMulti>(
    lua: &Lua,
    table: &Table,
    name: &str,
    f: impl Fn(&Arguments<'_>) -> Result<R> + 'static,
) -> Result<()> {
    let function = lua.create_function(move |lua, values: MultiValue| f(&Arguments::new(lua, values)))?;
    table.raw_set(name, function)
}
