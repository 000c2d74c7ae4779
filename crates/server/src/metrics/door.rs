//! The door for collectors of metrics. It asks for no password, so by default it does not listen.

use std::sync::Arc;

use reactor::{Connection, Door, Flow, Io};

use super::http::{self, Cut};
use super::{Sources, page};

pub struct MetricsDoor {
    pub sources: Sources,
}

impl Door for MetricsDoor {
    type Session = ();

    fn open(&self, _: &Arc<Connection>) -> Result<(), Vec<u8>> {
        Ok(())
    }

    fn serve(&self, (): &mut (), io: &mut Io<'_>) -> Flow {
        while !io.input().is_empty() {
            match http::answer(io.input(), || page(&self.sources)) {
                Cut::More => return Flow::Continue,
                Cut::Answer { length, response, close } => {
                    io.consume(length);
                    io.out().extend_from_slice(&response);
                    if close {
                        return Flow::Close;
                    }
                }
            }
        }
        Flow::Continue
    }

    fn close(&self, (): ()) {}
}
