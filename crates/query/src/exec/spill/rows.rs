//! Rows in the order they came, to be read from the beginning as often as one likes, or by number: common table expressions, partitions of windows.

use std::sync::Arc;

use super::{Run, Writer, decode_row, encode_row};
use crate::error::Result;
use crate::exec::host::{host, row_bytes};
use crate::scalar::EvalContext;
use crate::session::Row;

/// Rows of a block.
const BLOCK: usize = 256;

/// Blocks of rows: the last ones in memory, those before in a file once memory is short.
#[derive(Default)]
pub struct Rows {
    blocks: Vec<Block>,
    count: usize,
    /// Bytes in memory.
    held: usize,
    writer: Option<Writer>,
}

enum Block {
    Here(Arc<Vec<Row>>),
    There(Run),
}

/// Blocks that have been read, kept for the next who asks for a row near by.
#[derive(Default)]
pub struct Near {
    blocks: Vec<(usize, Arc<Vec<Row>>)>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn push(&mut self, row: Row, ctx: &mut EvalContext) -> Result<()> {
        let bytes = row_bytes(&row);
        if host(ctx).must_spill(self.held, bytes) {
            self.write_out(ctx)?;
        }
        host(ctx).count(bytes)?;
        self.held += bytes;
        match self.blocks.last_mut() {
            Some(Block::Here(rows)) if rows.len() < BLOCK && !self.count.is_multiple_of(BLOCK) => {
                Arc::make_mut(rows).push(row);
            }
            _ => {
                let mut rows = Vec::with_capacity(BLOCK);
                rows.push(row);
                self.blocks.push(Block::Here(Arc::new(rows)));
            }
        }
        self.count += 1;
        Ok(())
    }

    /// Whole blocks go to the file.
    fn write_out(&mut self, ctx: &mut EvalContext) -> Result<()> {
        let whole = self.count / BLOCK;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::new(&host(ctx).spill()?)?),
        };
        let mut record = Vec::new();
        let mut freed = 0;
        for block in &mut self.blocks[..whole] {
            let Block::Here(rows) = block else { continue };
            let from = writer.position();
            for row in rows.iter() {
                freed += row_bytes(row);
                record.clear();
                encode_row(row, &mut record);
                writer.put(&record)?;
            }
            host(ctx).look_up()?;
            *block = Block::There(writer.run(from)?);
        }
        self.held = self.held.saturating_sub(freed);
        host(ctx).release(freed);
        Ok(())
    }

    /// The rows of a block; none behind the last.
    pub fn block(&self, at: usize) -> Result<Arc<Vec<Row>>> {
        match self.blocks.get(at) {
            None => Ok(Arc::default()),
            Some(Block::Here(rows)) => Ok(rows.clone()),
            Some(Block::There(run)) => {
                let (mut reader, mut rows) = (run.read(), Vec::with_capacity(BLOCK));
                while let Some(mut record) = reader.next()? {
                    rows.push(decode_row(&mut record)?);
                }
                Ok(Arc::new(rows))
            }
        }
    }

    /// Lets go of the memory it was counted with.
    pub fn release(&mut self, ctx: &mut EvalContext) {
        host(ctx).release(std::mem::take(&mut self.held));
    }
}

impl Near {
    /// Blocks that are remembered.
    const KEPT: usize = 8;

    /// A row by its number.
    pub fn row<'w>(&'w mut self, rows: &Rows, at: usize) -> Result<&'w Row> {
        let block = at / BLOCK;
        let place = match self.blocks.iter().position(|(known, _)| *known == block) {
            Some(place) => place,
            None => {
                if self.blocks.len() == Self::KEPT {
                    self.blocks.remove(0);
                }
                self.blocks.push((block, rows.block(block)?));
                self.blocks.len() - 1
            }
        };
        Ok(&self.blocks[place].1[at % BLOCK])
    }
}
