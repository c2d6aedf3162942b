//! What collectives know of a group.

/// Ranks of a group at most: as many windows as `Peers` of the device headers has.
pub const MOST_RANKS: usize = 16;
/// Bytes in front of what ranks send: `HEADER_BYTES` of the device headers.
const HEADER_BYTES: u64 = 4096;

/// A rank's view of its group, as kernels get it.
#[derive(Clone, Debug)]
pub struct Peers {
    /// First byte of each rank's window.
    pub windows: Vec<u64>,
    /// Which of them this one is.
    pub rank: u64,
    /// Elements that one rank sends at once.
    pub capacity: u64,
    /// How long to wait for a rank.
    pub patience_ns: u64,
    /// The word that tells of a rank that did not come.
    pub status: u64,
}

impl Peers {
    /// Ranks of the group.
    pub fn ranks(&self) -> u64 {
        self.windows.len() as u64
    }

    /// `Peers` of the device headers, for an exchange that all ranks must mean by `subject`.
    pub fn words(&self, subject: u32) -> [u64; MOST_RANKS + 6] {
        let mut words = [0; MOST_RANKS + 6];
        words[..self.windows.len()].copy_from_slice(&self.windows);
        let rest = [self.rank, self.ranks(), self.capacity, u64::from(subject)];
        words[MOST_RANKS..MOST_RANKS + 4].copy_from_slice(&rest);
        words[MOST_RANKS + 4..].copy_from_slice(&[self.patience_ns, self.status]);
        words
    }
}

/// Bytes of a rank's window: a header, and room for every rank, twice.
pub fn window_bytes(ranks: u64, capacity: u64) -> u64 {
    HEADER_BYTES + 2 * ranks * capacity * size_of::<f32>() as u64
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
