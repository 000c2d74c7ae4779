//! serve
use crate::exit::Failure;
use crate::settings::Settings;
pub fn run(_settings: Settings) -> Result<(), Failure> {
    Ok(())
}
