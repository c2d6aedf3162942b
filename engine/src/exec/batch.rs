//! The device data of one step.
//!
//! Everything that varies from step to step is data: rows are the tokens of all sequences one after
//! another, and each row brings its position, its sequence and its cache addresses. The views are
//! parts of buffers made once, so a captured step finds them at the same place again.

use tandem_hal::View;

/// The rows of a step. Addresses are `page * entries of a page + slot`, -1 for none; a padding row
/// has position -1, no address, no visible entry and no history, and changes nothing.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Rows, padding included.
    pub tokens: u64,
    /// Rows of the page table.
    pub sequences: u64,
    /// Rows of which logits are wanted, padding included.
    pub outputs: u64,
    /// `[tokens]` i32 token ids.
    pub id: View,
    /// `[tokens]` i32, -1 for padding.
    pub position: View,
    /// `[tokens]` i32, the row of the page table.
    pub sequence: View,
    /// `[tokens]` i32, 1 for every position of a picture's span.
    pub picture: View,
    /// `[tokens, window]` i32 addresses of the window up to the row itself, oldest first, -1 in
    /// front.
    pub window_at: View,
    /// `[tokens]` i32, where the row's own window entry goes. Draft stages keep their context entry
    /// of the same token at the same address.
    pub window_store: View,
    /// `[tokens]` i32, where the row's open-group row goes.
    pub open_store: View,
    /// `[tokens, 2]` i32, the members of the group that the row completes, oldest first; -1 -1 for
    /// a row that completes none.
    pub open_members: View,
    /// `[sequences, table_pages]` i32 pages of the compressed caches, -1 past the end.
    pub table: View,
    /// Compressed entries of one token each.
    pub ratio1: RatioLists,
    /// Compressed entries of two tokens each.
    pub ratio2: RatioLists,
    /// `[tokens, history]` i32 token ids, newest first, the row's own included; -1 before the
    /// start. Absent when the model looks at none.
    pub history: View,
    /// `[outputs]` i32 rows whose logits are wanted, -1 for padding.
    pub output_at: View,
    /// What to put over the embeddings, in a step with pictures.
    pub pictures: Option<PictureRows>,
    /// The rows that the upper half runs on, when they are not simply all rows.
    pub upper: Option<Box<UpperRows>>,
}

/// What a compressed cache of one ratio needs to know of each row.
#[derive(Debug, Clone)]
pub struct RatioLists {
    /// `[tokens]` i32 entries that the row may see, its own included.
    pub visible: View,
    /// `[tokens]` i32 address of the entry that the row completes, -1 for none.
    pub store: View,
    /// `[1, entries]` bytes, never read: says how many entries the longest sequence may have.
    pub entries: View,
}

/// Picture rows of a step.
#[derive(Debug, Clone)]
pub struct PictureRows {
    /// `[cells, width]` bf16, the rows of all pictures in flight.
    pub rows: View,
    /// `[tokens]` i32, which of them stands for each row of the step; -1 for none.
    pub at: View,
}

/// The rows that layers above the last compressed source run on.
///
/// Prompt tokens far from the prompt's end need these layers for nothing: their compressed entries
/// come from the source's input alone. The source layer itself therefore makes entries for every
/// row of the step, then everything else runs on these rows only.
#[derive(Debug, Clone)]
pub struct UpperRows {
    /// `[rows.tokens]` i32 rows of the step, ascending; padding rows are -1.
    pub at: View,
    /// The lists of those rows; windows reach no further back than the upper half does, and outputs
    /// count these rows. May have no rows.
    pub rows: Batch,
}

/// The rows of a draft: `block` rows for each of `sequences` sequences. The order of rows does not
/// matter to the model; it is block position by block position.
#[derive(Debug, Clone)]
pub struct DraftBatch {
    /// `block * sequences` rows, padding included.
    pub tokens: u64,
    /// Sequences drafted for.
    pub sequences: u64,
    /// `[tokens]` i32: the anchor, then noise.
    pub id: View,
    /// `[tokens]` i32, -1 for padding.
    pub position: View,
    /// `[tokens, window + block]` i32: the context before the anchor, the same for every row of a
    /// sequence, then the block's own entries; -1 for none.
    pub window_at: View,
    /// `[tokens]` i32, scratch addresses of the block's own entries. They hold nothing between
    /// drafts.
    pub window_store: View,
}
