//! Boards opened as the ranks of one group, and what they share.

use std::sync::Arc;
use std::time::Duration;

use tandem_hal::{Error, Result};
use tandem_portable::{MOST_RANKS, Peers, window_bytes};

use crate::driver::{self, Board, Context, Queue, Reservation, Span};

/// Elements that one rank sends at once. Larger tensors take several exchanges.
const CAPACITY: u64 = 1 << 20;
/// How long a rank waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

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
            return Err(Error::NoDevice { name: "rocm".into(), reason });
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
    for board in boards {
        context.reach(*board)?;
    }
    let window = Arc::new(Reservation::window(context, bytes)?);
    let queue = Queue::new(context)?;
    queue.fill(&Span::new(&window, 0..bytes)?, 0)?;
    let status = Arc::new(Reservation::pinned(context, size_of::<u64>() as u64)?);
    queue.fill(&Span::new(&status, 0..status.bytes())?, 0)?;
    queue.synchronise()?;
    let status = Arc::into_inner(status).expect("the span of the fill is gone");
    Ok((window, status))
}
