//! Which numbers of ranks divide a model into whole heads, groups and scale blocks.

use crate::error::{Error, Result};
use crate::model::v41::Config;

/// Largest number of ranks considered.
pub const MOST_RANKS: usize = 64;

/// Refuses a number of ranks, which `flag` names, that would split a head, an output group or a
/// scale block.
///
/// # Errors
/// One line with every reason, and the numbers that work.
pub fn check(flag: &str, config: &Config, ranks: usize) -> Result<()> {
    let reasons = reasons(config, ranks);
    if reasons.is_empty() {
        return Ok(());
    }
    let work: Vec<_> = working(config).map(|ranks| ranks.to_string()).collect();
    Err(Error::argument(
        flag,
        format!("{ranks} ranks cannot share {}; {} work", reasons.join(", "), work.join(", ")),
    ))
}

/// The numbers of ranks that work, ascending.
pub fn working(config: &Config) -> impl Iterator<Item = usize> + '_ {
    (1..=MOST_RANKS).filter(|ranks| reasons(config, *ranks).is_empty())
}

fn reasons(config: &Config, ranks: usize) -> Vec<String> {
    if ranks == 0 || ranks > MOST_RANKS {
        return vec![format!("anything (1 to {MOST_RANKS} ranks are possible)")];
    }
    let attention = &config.attention;
    let mut experts = vec![("n_routed_experts", config.moe.experts)];
    experts.extend(config.dspark.as_ref().map(|d| ("dspark_n_routed_experts", d.experts)));
    let mut reasons: Vec<_> = [
        ("num_attention_heads", attention.heads),
        ("o_groups", attention.o_groups),
        ("index_n_heads", config.indexer.heads),
        ("vocab_size", config.vocab_size),
    ]
    .into_iter()
    .chain(experts)
    .filter(|(_, size)| !size.is_multiple_of(ranks))
    .map(|(key, size)| format!("{key} {size}"))
    .collect();
    let block = config.weight_block[0];
    for (key, width) in [
        ("moe_intermediate_size", config.moe.intermediate_size),
        ("o_groups * o_lora_rank", attention.o_groups * attention.o_lora_rank),
    ] {
        if !width.is_multiple_of(block * ranks) {
            let groups = width as f64 / (block * ranks) as f64;
            reasons.push(format!(
                "{key} {width} ({} a rank is {groups} scale groups of {block})",
                width as f64 / ranks as f64
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c086_tensor_parallel_sizes() {
        let mut config = Config::named("v4.1-flash").unwrap();
        for ranks in [1, 2, 4, 8] {
            check("--tensor-parallel-size", &config, ranks).unwrap();
            assert!((config.moe.intermediate_size / ranks).is_multiple_of(32));
        }
        let message = check("--tensor-parallel-size", &config, 16).unwrap_err().to_string();
        assert_eq!(
            message,
            "--tensor-parallel-size: 16 ranks cannot share o_groups 8, moe_intermediate_size 2304 \
             (144 a rank is 4.5 scale groups of 32); 1, 2, 4, 8 work"
        );
        for (ranks, reason) in
            [(3, "num_attention_heads 64"), (64, "o_groups 8"), (0, "anything"), (65, "anything")]
        {
            let message = check("--tensor-parallel-size", &config, ranks).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
            assert!(message.ends_with("1, 2, 4, 8 work"), "{message}");
        }
        config.vocab_size = 129_281;
        let message = check("--tensor-parallel-size", &config, 2).unwrap_err().to_string();
        assert!(message.contains("vocab_size 129281"), "{message}");
        assert!(message.ends_with("; 1 work"), "{message}");
    }
}
