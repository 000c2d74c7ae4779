//! The libraries of functions of an import, by name. Their code runs when the import ends.

use std::collections::BTreeMap;

use stdx::memory;

use crate::errors;
use crate::scripts::libraries::Policy;
use crate::scripts::load::read_name;

#[derive(Default)]
pub(crate) struct LibraryList {
    codes: BTreeMap<String, Vec<u8>>,
}

impl LibraryList {
    /// Adds a library, as FUNCTION LOAD does. The error is a reply.
    pub fn add(&mut self, code: &[u8], policy: Policy) -> Result<(), String> {
        let _claim = memory::claim(2 * code.len()).map_err(errors::out_of_memory)?;
        let name = read_name(code)?;
        if policy != Policy::Replace && self.codes.contains_key(&name) {
            return Err(format!("ERR Library '{name}' already exists"));
        }
        self.codes.insert(name, code.to_vec());
        Ok(())
    }

    pub fn remove(&mut self, name: &str) {
        self.codes.remove(name);
    }

    pub fn clear(&mut self) {
        self.codes.clear();
    }

    pub fn codes(&self) -> Vec<&[u8]> {
        self.codes.values().map(Vec::as_slice).collect()
    }
}
