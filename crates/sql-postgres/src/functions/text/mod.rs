//! Functions of texts.

pub mod format;
pub mod ident;
pub mod like;
pub mod quote;
pub mod regex;
pub mod regexp;
pub mod similar;
mod similar_parts;
pub mod strings;
