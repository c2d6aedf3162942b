//! What collectives share: everyone's rows, in rank order.

use crate::{Context, Tensor};
use std::sync::Arc;
use tandem_hal::{Error, Result};

/// The values that every rank gave, `[rows, cols]` each. A rank without rows takes part as well.
///
/// # Errors
/// [`Error::BadDescriptor`] when the group has another size, [`Error::Peer`] naming a rank that
/// failed, did not arrive, or came with another shape.
pub(super) fn exchange(
    op: &'static str,
    ranks: u64,
    x: &Tensor<'_>,
    context: &Context<'_>,
) -> Result<Vec<Arc<Vec<f32>>>> {
    let group = context.group;
    if u64::from(group.ranks()) != ranks {
        let why = format!("`ranks` is {ranks}, the group has {}", group.ranks());
        return Err(Error::BadDescriptor { op, why });
    }
    let mine: Vec<f32> = (0..x.rows()).flat_map(|t| x.row(t).into_owned()).collect();
    let count = mine.len();
    let all = group.gather(mine)?;
    match all.iter().position(|values| values.len() != count) {
        Some(rank) => Err(Error::Peer { rank: rank as u32 }),
        None => Ok(all),
    }
}
