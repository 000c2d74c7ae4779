//! os
