//! Boards opened as the ranks of one group, and what they share.

use crate::driver::{self, Board, Context, Queue, Reservation, Span};
use std::{sync::Arc, time::Duration};
use tandem_hal::{Error, Result};

/// Ranks of a group at most: as many windows as `Peers` of the device headers has.
pub(crate) const MOST_RANKS: usize = 16;
/// Elements that one rank sends at once. Larger tensors take several exchanges.
pub(crate) const CAPACITY: u64 = 1 << 20;
/// Bytes in front of what ranks send: `HEADER_BYTES` of the device headers.
pub(crate) const HEADER_BYTES: u64 = 4096;
/// How long a rank waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

/// A rank's view of its group, as kernels get it.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    /// First byte of each rank's window.
    pub(crate) windows: Vec<u64>,
    pub(crate) rank: u64,
    pub(crate) capacity: u64,
    pub(crate) patience_ns: u64,
    /// The word that tells of a rank that did not come.
    pub(crate) status: u64,
}

impl Peers {
    /// Ranks of the group.
    pub(crate) fn ranks(&self) -> u64 {
        self.windows.len() as u64
    }

    /// `Peers` of the device headers, for an exchange that all ranks must mean by `subject`.
    pub(crate) fn words(&self, subject: u32) -> [u64; MOST_RANKS + 6] {
        let mut words = [0; MOST_RANKS + 6];
        words[..self.windows.len()].copy_from_slice(&self.windows);
        let rest = [self.rank, self.ranks(), self.capacity, u64::from(subject)];
        words[MOST_RANKS..MOST_RANKS + 4].copy_from_slice(&rest);
        words[MOST_RANKS + 4..].copy_from_slice(&[self.patience_ns, self.status]);
        words
    }
}

/// Bytes of a rank's window: a header, and room for every rank, twice.
pub(crate) fn window_bytes(ranks: u64, capacity: u64) -> u64 {
    HEADER_BYTES + 2 * ranks * capacity * size_of::<f32>() as u64
}

/// What each rank gives the group. All of it lives as long as any rank, whose kernels may still write to
/// the others.
struct Shares {
    windows: Vec<Arc<Reservation>>,
    statuses: Vec<Reservation>,
}

/// One rank's part in a group of several.
#[derive(Clone)]
pub(crate) struct Member {
    shares: Arc<Shares>,
    peers: Peers,
}

impl Member {
    /// The ranks of a group, one a context.
    ///
    /// # Errors
    /// [`Error::NoDevice`] for more than a group takes, or what the driver says, such as boards that
    /// cannot address each other.
    pub(crate) fn all(contexts: &[Arc<Context>]) -> Result<Vec<Member>> {
        let ranks = contexts.len();
        if ranks > MOST_RANKS {
            let reason = format!("a group takes {MOST_RANKS} devices");
            return Err(Error::NoDevice { name: "cuda".into(), reason });
        }
        let boards: Vec<Board> = contexts.iter().map(|context| context.board()).collect();
        let shares = contexts.iter().map(|context| share(context, &boards));
        let (windows, statuses): (Vec<_>, Vec<_>) =
            shares.collect::<driver::Result<Vec<_>>>()?.into_iter().unzip();
        let addresses: Vec<u64> = windows.iter().map(|window| window.address()).collect();
        let words: Vec<u64> = statuses.iter().map(Reservation::address).collect();
        let shares = Arc::new(Shares { windows, statuses });
        let member = |(rank, status)| Member {
            shares: shares.clone(),
            peers: Peers {
                windows: addresses.clone(),
                rank: rank as u64,
                capacity: CAPACITY,
                patience_ns: PATIENCE.as_nanos() as u64,
                status,
            },
        };
        Ok(words.into_iter().enumerate().map(member).collect())
    }

    /// What kernels get.
    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Bytes of this rank's window.
    pub(crate) fn bytes(&self) -> u64 {
        self.shares.windows[self.peers.rank as usize].bytes()
    }

    /// Whether all ranks took part in every exchange that has ended here.
    ///
    /// # Errors
    /// [`Error::Peer`] with the one that did not, for ever after.
    pub(crate) fn whole(&self) -> Result<()> {
        match self.shares.statuses[self.peers.rank as usize].first_word() {
            Some(0) | None => Ok(()),
            Some(broken) => Err(Error::Peer { rank: broken as u32 - 1 }),
        }
    }
}

/// An empty window of a rank, which all boards write to, and the word that its kernels tell the host by.
fn share(
    context: &Arc<Context>,
    boards: &[Board],
) -> driver::Result<(Arc<Reservation>, Reservation)> {
    let bytes = window_bytes(boards.len() as u64, CAPACITY);
    let window = Arc::new(Reservation::window(context, bytes, boards)?);
    let queue = Queue::new(context)?;
    queue.fill(&Span::new(&window, 0..bytes)?, 0)?;
    let status = Arc::new(Reservation::pinned(context, size_of::<u64>() as u64)?);
    queue.fill(&Span::new(&status, 0..status.bytes())?, 0)?;
    queue.synchronise()?;
    let status = Arc::into_inner(status).expect("the span of the fill is gone");
    Ok((window, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_as_the_device_headers_have_them() {
        let peers = Peers {
            windows: vec![0x1000, 0x2000],
            rank: 1,
            capacity: 7,
            patience_ns: 8,
            status: 0x3000,
        };
        let words = peers.words(9);
        assert_eq!(words[..3], [0x1000, 0x2000, 0]);
        assert_eq!(words[MOST_RANKS..], [1, 2, 7, 9, 8, 0x3000]);
        assert_eq!(window_bytes(2, 4), 4096 + 64);
    }
}
