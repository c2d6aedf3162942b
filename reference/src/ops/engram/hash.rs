//! Card of [`EngramHash`].

use crate::{Card, Choices, Context, Host, Tolerance};
use tandem_hal::{EngramHash, EngramHashIo, Extents, Result, Sym};

impl EngramHashRow<'_> {
    /// Compressed id of history position `s`, unless it or a newer one is blocked.
    fn class(&self, token: i32, blocked: &mut bool) -> u64 {
        let id = u64::try_from(token).ok();
        let id = id.filter(|id| *id < self.d.vocab && *id != self.d.picture);
        *blocked |= id.is_none();
        let id = if *blocked { self.d.pad } else { id.unwrap_or(self.d.pad) };
        u64::try_from(self.map[id as usize]).unwrap_or(0)
    }

    /// Table rows of one history, newest token first.
    fn columns(&self, history: &[i32]) -> Vec<i32> {
        let (mut blocked, mut hash, mut offset) = (false, 0u64, 0u64);
        let orders = self.d.multipliers.len() - 1;
        let heads = self.d.primes.len() / orders;
        let mut columns = Vec::with_capacity(self.d.primes.len());
        for (s, (token, multiplier)) in history.iter().zip(&self.d.multipliers).enumerate() {
            // Checked descriptors keep compressed ids below `classes`, and so products in range;
            // a map that breaks its own bound wraps instead of stopping the launch.
            hash ^= self.class(*token, &mut blocked).wrapping_mul(*multiplier);
            let Some(order) = s.checked_sub(1) else { continue };
            for prime in &self.d.primes[order * heads..][..heads] {
                columns.push((hash % prime + offset) as i32);
                offset += prime;
            }
        }
        columns
    }
}

/// What every row of a launch shares.
struct EngramHashRow<'a> {
    d: &'a EngramHash,
    map: &'a [i32],
}

/// Descriptors of small tables: `heads` columns of each order.
fn case(vocab: u64, orders: usize, heads: usize, tokens: u64) -> (EngramHash, Extents) {
    const MULTIPLIERS: [u64; 4] = [
        158_200_576_279_471_525,
        9_991_520_871_637_985,
        74_235_746_863_936_745,
        67_716_810_739_261,
    ];
    const PRIMES: [u64; 9] = [97, 101, 103, 107, 109, 113, 127, 131, 137];
    let d = EngramHash {
        vocab,
        multipliers: MULTIPLIERS[..=orders].to_vec(),
        primes: PRIMES[..orders * heads].to_vec(),
        pad: 2.min(vocab - 1),
        picture: vocab - 1,
        classes: 48,
    };
    (d, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for EngramHash {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let EngramHashIo { history, map, mut y } = io;
        let row = EngramHashRow { d: self, map: &map.ints(0) };
        for t in 0..history.rows() {
            y.set_ints(t, &row.columns(&history.ints(t)));
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Exact
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (orders, heads) = (choices.between(1, 3) as usize, choices.between(1, 3) as usize);
        case(choices.between(1, 64), orders, heads, choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(64, 3, 2, 0), case(64, 3, 2, 1), case(64, 3, 3, 13), case(1, 1, 1, 2)]
    }
}
