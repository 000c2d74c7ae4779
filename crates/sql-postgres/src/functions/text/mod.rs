//! Functions of texts.

pub mod format;
pub mod like;
pub mod quote;
pub mod regex;
pub mod regexp;
pub mod similar;
pub mod strings;
