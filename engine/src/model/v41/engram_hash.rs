//! The fixed numbers of the Engram hash, derived from the configuration: one odd multiplier per
//! look-back, one prime and one bucket offset per column.

use super::config::Engram;
use super::pcg64::Pcg64;

/// Hash numbers of one Engram layer.
///
/// With `c_s` the compressed id `s` tokens back, the hash of order `k + 1` is the XOR of
/// `c_s * multipliers[s]` for `s = 0..=k`, and the row of column `(k, head)` is that hash modulo
/// the column's prime plus the column's offset. All arithmetic is 64-bit and never overflows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngramHash {
    /// Odd multipliers, one per look-back 0..max_ngram.
    pub multipliers: Vec<u64>,
    /// Bucket sizes, column order (n-gram order, head).
    pub primes: Vec<u64>,
    /// First row of each bucket.
    pub offsets: Vec<u64>,
    /// Rows of the table: the sum of the primes.
    pub table_rows: u64,
}

impl EngramHash {
    /// The table rows of one position, one per column. `look_back[s]` is the compressed id `s`
    /// tokens back, the pad's where history is absent or blocked; it has one entry per multiplier.
    pub fn rows(&self, look_back: &[u64]) -> Vec<u64> {
        assert_eq!(look_back.len(), self.multipliers.len(), "one id per multiplier");
        let heads = self.primes.len() / (self.multipliers.len() - 1);
        let mut terms = look_back.iter().zip(&self.multipliers).map(|(id, by)| id * by);
        let mut hash = terms.next().expect("a hash has at least two multipliers");
        let mut rows = Vec::with_capacity(self.primes.len());
        for (order, term) in terms.enumerate() {
            hash ^= term;
            let columns = order * heads..(order + 1) * heads;
            rows.extend(columns.map(|column| hash % self.primes[column] + self.offsets[column]));
        }
        rows
    }
}

/// The hash numbers of every Engram layer, in the order of [`Engram::layers`].
pub fn hashes(engram: &Engram) -> Vec<EngramHash> {
    let mut last = engram.bucket_base.saturating_sub(1);
    let mut next_prime = || {
        last += 1;
        while !is_prime(last) {
            last += 1;
        }
        last
    };
    engram
        .layers
        .iter()
        .map(|layer| {
            let primes: Vec<u64> = (0..engram.columns()).map(|_| next_prime()).collect();
            let mut table_rows = 0;
            let offsets = primes
                .iter()
                .map(|prime| {
                    let offset = table_rows;
                    table_rows += prime;
                    offset
                })
                .collect();
            EngramHash { multipliers: multipliers(engram, *layer), primes, offsets, table_rows }
        })
        .collect()
}

/// The generator's seed of a layer is this times the layer's number.
const SEED_STRIDE: u32 = 10_007;

/// Multipliers are `2 v + 1` with `v` below half of what keeps a product inside 63 bits.
fn multipliers(engram: &Engram, layer: usize) -> Vec<u64> {
    let bound = (i64::MAX as u64 / engram.compressed_vocab_size / 2).max(1);
    let layer = u32::try_from(layer).expect("a checked configuration has few layers");
    let mut generator = Pcg64::new(SEED_STRIDE * layer);
    (0..engram.max_ngram).map(|_| 2 * generator.below(bound) + 1).collect()
}

/// Trial division: the numbers are a few tens of millions and few.
fn is_prime(number: u64) -> bool {
    if number < 4 {
        return number > 1;
    }
    if number.is_multiple_of(2) {
        return false;
    }
    let mut divisor = 3;
    while divisor * divisor <= number {
        if number.is_multiple_of(divisor) {
            return false;
        }
        divisor += 2;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::v41::Config;

    #[test]
    fn the_release_has_the_published_tables() {
        let config = Config::named("v4.1-flash").unwrap();
        let hashes = hashes(config.engram.as_ref().unwrap());
        assert_eq!(
            hashes[0].multipliers,
            [76632096046245, 4839876093313, 35959672319349, 73987337458391]
        );
        assert_eq!(
            hashes[1].multipliers,
            [67716810739261, 51510806800915, 30921347202721, 82619226485591]
        );
        assert_eq!(
            hashes[0].primes[..8],
            [16000057, 16000079, 16000081, 16000097, 16000121, 16000129, 16000133, 16000183]
        );
        assert_eq!(hashes[0].primes[23], 16000463);
        assert_eq!(
            hashes[1].primes,
            [
                16000477, 16000487, 16000499, 16000507, 16000511, 16000573, 16000609, 16000627,
                16000667, 16000669, 16000693, 16000697, 16000711, 16000729, 16000759, 16000769,
                16000781, 16000799, 16000813, 16000819, 16000841, 16000877, 16000879, 16000889
            ]
        );
        assert_eq!(
            hashes[0].offsets,
            [
                0, 16000057, 32000136, 48000217, 64000314, 80000435, 96000564, 112000697,
                128000880, 144001069, 160001276, 176001487, 192001740, 208002017, 224002306,
                240002613, 256002934, 272003273, 288003654, 304004047, 320004446, 336004849,
                352005258, 368005705
            ]
        );
        assert_eq!(hashes[1].offsets[23], 368015793);
        assert_eq!(hashes.iter().map(|hash| hash.table_rows).sum::<u64>(), 768_022_850);
        assert_eq!(hashes[0].table_rows, 384_006_168);
    }

    fn tiny() -> Engram {
        Engram {
            layers: vec![1, 3],
            table_rows: vec![630, 834],
            max_ngram: 4,
            heads: 2,
            head_dim: 32,
            bucket_base: 96,
            pad_token_id: 2,
            compressed_vocab_size: 48,
        }
    }

    #[test]
    fn the_tiny_configuration_has_the_published_tables() {
        let hashes = hashes(&tiny());
        assert_eq!(
            hashes[0].multipliers,
            [158200576279471525, 9991520871637985, 74235746863936745, 152740692571396361]
        );
        assert_eq!(
            hashes[1].multipliers,
            [56827148138111667, 168578698592727451, 22456582450649171, 145122182424793627]
        );
        assert_eq!(hashes[0].primes, [97, 101, 103, 107, 109, 113]);
        assert_eq!(hashes[1].primes, [127, 131, 137, 139, 149, 151]);
        assert_eq!(hashes[0].offsets, [0, 97, 198, 301, 408, 517]);
        assert_eq!(hashes[1].offsets, [0, 127, 258, 395, 534, 683]);
        assert_eq!((hashes[0].table_rows, hashes[1].table_rows), (630, 834));
    }

    #[test]
    fn the_tiny_configuration_gives_the_published_rows() {
        let hashes = hashes(&tiny());
        assert_eq!(hashes[0].rows(&[0, 1, 1, 1]), [85, 144, 292, 311, 468, 603]);
        assert_eq!(hashes[1].rows(&[0, 1, 1, 1]), [121, 246, 309, 515, 564, 757]);
        assert_eq!(hashes[0].rows(&[4, 2, 0, 1]), [67, 185, 204, 314, 459, 545]);
        assert_eq!(hashes[1].rows(&[1, 1, 1, 1]), [15, 217, 266, 410, 622, 695]);
    }

    #[test]
    fn c048_multipliers_keep_all_64_bits() {
        // One id and a silent second look-back: the row is the product modulo the prime.
        let hash = EngramHash {
            multipliers: vec![9007199254740993, 1],
            primes: vec![97],
            offsets: vec![0],
            table_rows: 97,
        };
        assert_eq!(hash.rows(&[3, 0]), [2]);
        assert!(hashes(&tiny())[0].multipliers[0] > 1 << 53);
    }

    #[test]
    fn c047_rows_of_the_worked_example() {
        let hash = EngramHash {
            multipliers: vec![3, 5, 7],
            primes: vec![11, 13],
            offsets: vec![0, 11],
            table_rows: 24,
        };
        let rows = [[4, 2, 2], [9, 4, 2], [1, 9, 4], [6, 1, 9]].map(|ids| hash.rows(&ids));
        assert_eq!(rows, [[6, 19], [4, 12], [2, 22], [1, 12]]);
    }
}
