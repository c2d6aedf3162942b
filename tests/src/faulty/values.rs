//! Faults in what is computed.

use super::launch::{Launch, reals, rows};
use tandem_hal::{Enc, Op, Result};

fn bf16_at(bytes: &[u8], i: usize) -> u16 {
    u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])
}

pub(super) fn element_wrong(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    launch.touch("y", 0x40);
    Ok(())
}

pub(super) fn scale_off_by_one(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    if let Some(scale) = launch.output("y").bytes_mut().1.first_mut() {
        *scale = scale.wrapping_add(1);
    }
    Ok(())
}

pub(super) fn truncation(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    let sums: Vec<Vec<f32>> = {
        let (routed, shared) = (launch.input("routed"), launch.input("shared"));
        let row = |r| routed.row(r).iter().zip(shared.row(r).iter()).map(|(a, b)| a + b).collect();
        (0..routed.rows()).map(row).collect()
    };
    rows(launch.output("y"), |r, bytes| {
        for (to, sum) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(&sums[r]) {
            *to = ((sum.to_bits() >> 16) as u16).to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn tie_upward(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let cols = launch.input("scores").cols().max(1);
    launch.with_bytes("scores", |codes, _| {
        for (i, word) in codes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let x = f32::from_le_bytes(*word);
            // So little that it decides between equals only.
            *word = (x + x.abs().max(1e-30) * 1e-6 * (i % cols) as f32).to_le_bytes();
        }
    })
}

pub(super) fn mask_off_by_one(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("visible", |n| n.saturating_add(1))
}

pub(super) fn sink_scaled(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_reals("sink", |x| x * 0.1)
}

pub(super) fn second_list_ignored(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("selected_at", |_| -1)
}

pub(super) fn bias_in_weight(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    let bias = launch.input("bias").row(0).into_owned();
    let chosen: Vec<Vec<i32>> = {
        let experts = launch.output("expert").read();
        (0..experts.rows()).map(|r| experts.ints(r)).collect()
    };
    rows(launch.output("weight"), |r, bytes| {
        for (word, expert) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&chosen[r]) {
            let more = usize::try_from(*expert).ok().and_then(|e| bias.get(e)).unwrap_or(&0.0);
            *word = (f32::from_le_bytes(*word) + more).to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn factor_twice(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    rows(launch.output("weight"), |_, bytes| reals(Enc::F32, bytes, |x| x * 1.5));
    Ok(())
}

pub(super) fn expert_shifted(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("expert", |e| if e > 0 { e - 1 } else { e })
}

pub(super) fn position_off_by_one(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("position", |p| if p < 0 { p } else { p.saturating_add(1) })
}

pub(super) fn store_off_by_one(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("at", |at| if at < 0 { at } else { at.saturating_add(1) })
}

pub(super) fn hole_is_page_zero(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("table", |page| page.max(0))
}

pub(super) fn comb_transposed(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let n = launch.input("comb").cols();
    launch.with_bytes("comb", |codes, _| {
        for matrix in codes.as_chunks_mut::<4>().0.chunks_mut(n * n) {
            let from = matrix.to_vec();
            for (i, word) in matrix.iter_mut().enumerate() {
                *word = from[i % n * n + i / n];
            }
        }
    })
}

pub(super) fn mean_is_sum(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_reals("streams", |x| x * 4.0)
}

pub(super) fn mask_ignored(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("masked", |_| 0)
}

pub(super) fn none_is_row_zero(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_ints("row", |row| row.max(0))
}

pub(super) fn one_draft_more(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.run()?;
    rows(launch.output("accepted"), |_, bytes| {
        for word in bytes.as_chunks_mut::<4>().0 {
            *word = (i32::from_le_bytes(*word) + 1).to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn temperature_ignored(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_reals("temperature", |_| 1.0)
}

pub(super) fn query_scaled(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    launch.with_reals("q", |x| x * 2.0)
}

pub(super) fn position_major(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    let Op::Unfold(unfold) = launch.op else { return launch.run() };
    let patches = (unfold.side * unfold.side) as usize;
    launch.run()?;
    rows(launch.output("y"), |_, bytes| {
        let from: Vec<u16> = (0..bytes.len() / 2).map(|i| bf16_at(bytes, i)).collect();
        let width = from.len() / patches;
        for (i, to) in bytes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            *to = from[i % width * patches + i / width].to_le_bytes();
        }
    });
    Ok(())
}

pub(super) fn rank_lost(launch: &mut Launch<'_, '_, '_>) -> Result<()> {
    // As if the ranks after the first had posted nothing.
    let own: Vec<Vec<f32>> = {
        let x = launch.input("x");
        (0..x.rows()).map(|r| x.row(r).into_owned()).collect()
    };
    launch.run()?;
    rows(launch.output("y"), |r, bytes| {
        for (word, x) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&own[r]) {
            *word = x.to_le_bytes();
        }
    });
    Ok(())
}
