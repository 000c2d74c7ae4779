//! Materialised rows, in the order of their arrival, which can be read repeatedly or by number: common table
//! expressions, partitions of windows, the rows that UPDATE and DELETE will change.

use std::sync::Arc;

use super::{Run, Writer, decode_row, encode_row};
use datum::Result;

use crate::batch::Row;
use crate::exec::host::host;
use crate::exec::memory::{Held, row_bytes};
use crate::nodes::context::EvalContext;

/// The limits of a block, the unit of reading, in rows and bytes.
const BLOCK_ROWS: usize = 256;
const BLOCK_BYTES: usize = 64 << 10;

/// Blocks of rows: the last ones in memory, earlier ones in a file once memory is short.
#[derive(Default)]
pub struct Rows {
    blocks: Vec<Block>,
    count: usize,
    /// The size of the last block.
    last_bytes: usize,
    held: Held,
    writer: Option<Writer>,
}

struct Block {
    /// The number of its first row.
    first: usize,
    rows: Place,
}

enum Place {
    Here(Arc<Vec<Row>>),
    There(Run),
}

/// A cache of blocks for reads by number.
#[derive(Default)]
pub struct Near {
    blocks: Vec<(usize, Arc<Vec<Row>>)>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.count)
    }
}

impl Rows {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub fn push(&mut self, row: Row, ctx: &mut EvalContext) -> Result<()> {
        let bytes = row_bytes(&row);
        if host(ctx).must_spill(&self.held, bytes) {
            self.write_out(ctx)?;
        }
        host(ctx).count(&mut self.held, bytes)?;
        match self.blocks.last_mut() {
            Some(Block { rows: Place::Here(rows), .. })
                if rows.len() < BLOCK_ROWS && self.last_bytes + bytes <= BLOCK_BYTES =>
            {
                Arc::make_mut(rows).push(row);
                self.last_bytes += bytes;
            }
            _ => {
                self.blocks.push(Block { first: self.count, rows: Place::Here(Arc::new(vec![row])) });
                self.last_bytes = bytes;
            }
        }
        self.count += 1;
        Ok(())
    }

    /// Writes all blocks to the file.
    fn write_out(&mut self, ctx: &mut EvalContext) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(Writer::new(&host(ctx).spill()?)?),
        };
        let here = self.blocks.iter().rposition(|block| matches!(block.rows, Place::There(_))).map_or(0, |at| at + 1);
        for block in &mut self.blocks[here..] {
            let Place::Here(rows) = &block.rows else { continue };
            let from = writer.position();
            for row in rows.iter() {
                writer.put_with(|out| encode_row(row, out))?;
            }
            host(ctx).look_up()?;
            block.rows = Place::There(writer.since(from));
        }
        writer.end()?;
        self.held.clear();
        Ok(())
    }

    /// Returns the rows of a block, or none after the last.
    pub fn block(&self, at: usize) -> Result<Arc<Vec<Row>>> {
        match self.blocks.get(at).map(|block| &block.rows) {
            None => Ok(Arc::default()),
            Some(Place::Here(rows)) => Ok(rows.clone()),
            Some(Place::There(run)) => Ok(Arc::new(read(run)?)),
        }
    }

    /// Returns the rows of the block that holds the row with the number `at`, and that row's place among them.
    pub fn block_from(&self, at: usize) -> Result<(Arc<Vec<Row>>, usize)> {
        let block = self.block_of(at);
        Ok((self.block(block)?, at - self.blocks[block].first))
    }

    fn block_of(&self, at: usize) -> usize {
        self.blocks.partition_point(|block| block.first <= at) - 1
    }

    /// Returns the rows of a block that is read once, and releases its memory.
    pub fn take_block(&mut self, at: usize) -> Result<Vec<Row>> {
        match self.blocks.get_mut(at).map(|block| &mut block.rows) {
            None => Ok(Vec::new()),
            Some(Place::There(run)) => read(run),
            Some(Place::Here(rows)) => {
                let rows = Arc::unwrap_or_clone(std::mem::take(rows));
                self.held.release(rows.iter().map(|row| row_bytes(row)).sum());
                Ok(rows)
            }
        }
    }
}

fn read(run: &Run) -> Result<Vec<Row>> {
    let (mut reader, mut rows) = (run.read(), Vec::new());
    while let Some(mut record) = reader.next()? {
        rows.push(decode_row(&mut record)?);
    }
    Ok(rows)
}

impl Near {
    /// The number of cached blocks.
    const KEPT: usize = 8;

    /// Returns a row by its number.
    pub fn row<'w>(&'w mut self, rows: &Rows, at: usize) -> Result<&'w Row> {
        let block = rows.block_of(at);
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
        Ok(&self.blocks[place].1[at - rows.blocks[block].first])
    }
}
